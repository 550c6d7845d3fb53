//! The references by which HTML writes a character: `&lt;`, `&#60;`, `&#x3c;`.

/// The most bytes that stand for one character: `&amp;DiacriticalGrave;`.
pub(super) const ESCAPED_MAX: usize = 22;

/// All names of characters of ASCII in HTML (HTML 13.5), in order, and the characters.
const NAMED: &[(&[u8], u8)] = &[
    (b"AMP", b'&'),
    (b"DiacriticalGrave", b'`'),
    (b"GT", b'>'),
    (b"Hat", b'^'),
    (b"LT", b'<'),
    (b"NewLine", b'\n'),
    (b"QUOT", b'"'),
    (b"Tab", b'\t'),
    (b"UnderBar", b'_'),
    (b"VerticalLine", b'|'),
    (b"amp", b'&'),
    (b"apos", b'\''),
    (b"ast", b'*'),
    (b"bsol", b'\\'),
    (b"colon", b':'),
    (b"comma", b','),
    (b"commat", b'@'),
    (b"dollar", b'$'),
    (b"equals", b'='),
    (b"excl", b'!'),
    (b"grave", b'`'),
    (b"gt", b'>'),
    (b"lbrace", b'{'),
    (b"lbrack", b'['),
    (b"lcub", b'{'),
    (b"lowbar", b'_'),
    (b"lpar", b'('),
    (b"lsqb", b'['),
    (b"lt", b'<'),
    (b"midast", b'*'),
    (b"num", b'#'),
    (b"percnt", b'%'),
    (b"period", b'.'),
    (b"plus", b'+'),
    (b"quest", b'?'),
    (b"quot", b'"'),
    (b"rbrace", b'}'),
    (b"rbrack", b']'),
    (b"rcub", b'}'),
    (b"rpar", b')'),
    (b"rsqb", b']'),
    (b"semi", b';'),
    (b"sol", b'/'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
];

/// The names that count without a semicolon as well.
const UNENDED: [&[u8]; 8] = [b"AMP", b"GT", b"LT", b"QUOT", b"amp", b"gt", b"lt", b"quot"];

/// How a reference begins in a text that was escaped twice.
const ESCAPED_TWICE: &[u8] = b"&amp;";

/// Returns the second bytes of all references to a character.
pub(super) fn second_bytes(wanted: u8) -> impl Iterator<Item = u8> {
    let is_wanted = move |(_, found): &&(&[u8], u8)| found.eq_ignore_ascii_case(&wanted);
    let named = NAMED.iter().filter(is_wanted).filter_map(|(name, _)| name.first().copied());
    named.chain(ESCAPED_TWICE.get(1).copied()).chain([b'#'])
}

pub(super) fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 16).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the characters that the reference at the beginning of `bytes` can stand for, and its length for each.
pub(super) fn references(bytes: &[u8]) -> impl Iterator<Item = (u8, usize)> {
    let bytes = bytes.get(..ESCAPED_MAX).unwrap_or(bytes);
    let inner = bytes.strip_prefix(ESCAPED_TWICE).and_then(reference);
    let inner = inner.map(|(found, length)| (found, length + ESCAPED_TWICE.len()));
    let outer = bytes.strip_prefix(b"&").and_then(reference).map(|(found, length)| (found, length + 1));
    outer.into_iter().chain(inner)
}

/// Returns the character and the length of a reference without its `&`. One by number may have no semicolon.
fn reference(bytes: &[u8]) -> Option<(u8, usize)> {
    let run = |from: usize, belongs: fn(&u8) -> bool| {
        from + bytes.get(from..).unwrap_or_default().iter().take_while(|byte| belongs(byte)).count()
    };
    let (found, end) = match bytes {
        [b'#', b'x' | b'X', ..] => {
            let end = run(2, u8::is_ascii_hexdigit);
            (hexadecimal(bytes.get(2..end)?)?, end)
        }
        [b'#', ..] => {
            let end = run(1, u8::is_ascii_digit);
            (std::str::from_utf8(bytes.get(1..end)?).ok()?.parse().ok()?, end)
        }
        _ => return named(bytes, run(0, u8::is_ascii_alphabetic)),
    };
    Some((found, if bytes.get(end) == Some(&b';') { end + 1 } else { end }))
}

/// Returns the character and the length of a reference by a name of at most `end` letters.
fn named(bytes: &[u8], end: usize) -> Option<(u8, usize)> {
    let find = |name: &[u8]| {
        let at = NAMED.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        NAMED.get(at).map(|(_, found)| *found)
    };
    let ended = bytes.get(..end).filter(|_| bytes.get(end) == Some(&b';')).and_then(find);
    ended.map(|found| (found, end + 1)).or_else(|| {
        let name = UNENDED.iter().find(|name| bytes.starts_with(name))?;
        Some((find(name)?, name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_escape_is_the_longest_name_escaped_twice() {
        let longest = NAMED.iter().map(|(name, _)| name.len()).max().unwrap();
        assert_eq!(ESCAPED_TWICE.len() + longest + 1, ESCAPED_MAX);
    }

    #[test]
    fn every_name_is_found() {
        assert!(NAMED.is_sorted());
        for (name, character) in NAMED {
            assert_eq!(
                named(&[name, b";".as_slice()].concat(), name.len()),
                Some((*character, name.len() + 1))
            );
        }
    }

    #[test]
    fn references_are_read_as_browsers_read_them() {
        let check = |text: &str, wanted: &[(u8, usize)]| {
            assert_eq!(references(text.as_bytes()).collect::<Vec<_>>(), wanted, "{text}");
        };
        check("&lowbar;x", &[(b'_', 8)]);
        check("&ltx", &[(b'<', 3)]);
        check("&#95x", &[(b'_', 4)]);
        check("&#x5F;", &[(b'_', 6)]);
        check("&amp;#95;", &[(b'&', 5), (b'_', 9)]);
        check("&lowbarx", &[]);
        check("& lt;", &[]);
    }
}
