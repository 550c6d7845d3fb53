//! The ways in which servers escape a character.

/// The most bytes that stand for one character: `&#x00000000002f;`, or seven backslashes and `u002f`.
pub(super) const ESCAPED_MAX: usize = 16;
/// The most backslashes in front of a character: those of JSON in JSON in JSON.
const BACKSLASHES_MAX: usize = 7;

/// Returns true for a byte with which an escape can begin.
pub(super) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'+')
}

/// Returns the end of a text that begins at a place, in whatever way its characters are escaped. Of a text that goes on
/// in another way, its first characters count if there are at least so many.
pub(super) fn end_of(text: &[u8], least: usize, bytes: &[u8], at: usize) -> Option<usize> {
    // Most places are no beginning, so a look at the first two characters comes first.
    let may_be = |offset: usize| {
        let byte = bytes.get(at + offset)?;
        Some(begins_escape(*byte) || byte.eq_ignore_ascii_case(text.get(offset)?))
    };
    if may_be(0) != Some(true)
        || !bytes.get(at).copied().is_some_and(begins_escape) && may_be(1) != Some(true)
    {
        return None;
    }
    // Several, since a text may itself have characters that begin an escape.
    let mut ends = vec![at];
    for (count, &wanted) in text.iter().enumerate() {
        let mut next = Vec::new();
        for &at in &ends {
            for length in lengths(wanted, bytes.get(at..).unwrap_or_default()) {
                if !next.contains(&(at + length)) {
                    next.push(at + length);
                }
            }
        }
        if next.is_empty() {
            return ends.into_iter().max().filter(|_| count >= least);
        }
        ends = next;
    }
    ends.into_iter().max()
}

/// Returns the lengths of the texts at the beginning of `bytes` that stand for a character.
fn lengths(wanted: u8, bytes: &[u8]) -> impl Iterator<Item = usize> {
    let is_itself = |byte: &&u8| byte.eq_ignore_ascii_case(&wanted) || wanted == b' ' && **byte == b'+';
    [bytes.first().filter(is_itself).map(|_| 1), escape(wanted, bytes)].into_iter().flatten()
}

/// Returns the length of the escape at the beginning of `bytes` if it stands for this character.
fn escape(wanted: u8, bytes: &[u8]) -> Option<usize> {
    let is_wanted = |byte: u8| byte.eq_ignore_ascii_case(&wanted);
    let coded =
        |digits: &[u8], length: usize| hexadecimal(digits).filter(|byte| is_wanted(*byte)).map(|_| length);
    match bytes {
        [b'%', b'2', b'5', high, low, ..] if coded(&[*high, *low], 5).is_some() => Some(5),
        [b'%', high, low, ..] => coded(&[*high, *low], 3),
        [b'\\', b'\\', ..] if wanted == b'\\' => Some(2),
        [b'\\', ..] => {
            // JSON in a string of JSON escapes each backslash once more.
            let run = bytes.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
            match bytes.get(run..)? {
                [b'u', b'0', b'0', high, low, ..] if coded(&[*high, *low], 5).is_some() => Some(run + 5),
                [b'x', high, low, ..] if coded(&[*high, *low], 3).is_some() => Some(run + 3),
                [byte, ..] => is_wanted(*byte).then_some(run + 1),
                [] => None,
            }
        }
        [b'&', ..] => {
            let (found, length) = reference(bytes)?;
            is_wanted(found).then_some(length)
        }
        _ => None,
    }
}

/// Names of characters of ASCII in HTML (HTML 13.5).
const NAMED: &[(&[u8], u8)] = &[
    (b"AMP", b'&'),
    (b"GT", b'>'),
    (b"Hat", b'^'),
    (b"LT", b'<'),
    (b"NewLine", b'\n'),
    (b"QUOT", b'"'),
    (b"Tab", b'\t'),
    (b"UnderBar", b'_'),
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

/// Returns the character that a reference of HTML stands for, and the length of the reference. One by number may have no
/// semicolon.
fn reference(bytes: &[u8]) -> Option<(u8, usize)> {
    let bytes = bytes.get(..ESCAPED_MAX).unwrap_or(bytes);
    let run = |from: usize, belongs: fn(&u8) -> bool| {
        from + bytes.get(from..).unwrap_or_default().iter().take_while(|byte| belongs(byte)).count()
    };
    let (found, end) = match bytes {
        [b'&', b'#', b'x' | b'X', ..] => {
            let end = run(3, u8::is_ascii_hexdigit);
            (hexadecimal(bytes.get(3..end)?)?, end)
        }
        [b'&', b'#', ..] => {
            let end = run(2, u8::is_ascii_digit);
            (std::str::from_utf8(bytes.get(2..end)?).ok()?.parse().ok()?, end)
        }
        _ => {
            let end = run(1, u8::is_ascii_alphabetic);
            let name = bytes.get(1..end).filter(|_| bytes.get(end) == Some(&b';'))?;
            (NAMED.iter().find(|(known, _)| *known == name)?.1, end)
        }
    };
    Some((found, if bytes.get(end) == Some(&b';') { end + 1 } else { end }))
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 16).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns true for what stands between the pieces of encoded texts.
pub(super) fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':')
}
