//! Answers in which a credential would not have the bytes that it has in ASCII.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

/// Character sets in which characters of ASCII have their bytes, without signs in the names; those of the Encoding
/// standard, and some that servers use besides.
const READABLE: &str = "\
    866 ansi ansix341968 arabic ascii asmo708 big5 big5hkscs binary chinese cesu8 cnbig5 cp437 cp819 cp850 cp852 cp858 cp866 cp932 cp936 \
    cp949 cp950 csbig5 cseuckr cseucpkdfmtjapanese csgb2312 csibm866 csiso58gb231280 csiso88596e \
    csiso88596i csiso88598e csiso88598i csisolatin1 csisolatin2 csisolatin3 csisolatin4 csisolatin5 \
    csisolatin6 csisolatin9 csisolatinarabic csisolatincyrillic csisolatingreek csisolatinhebrew cskoi8r \
    csksc56011987 csmacintosh csshiftjis cyrillic dos874 ecma114 ecma118 elot928 eucjp euckr euctw gb18030 \
    gb2312 gb231280 gbk greek greek8 hebrew ibm437 ibm819 ibm850 ibm852 ibm866 isoir100 isoir101 isoir109 isoir110 isoir126 isoir127 isoir138 \
    isoir144 isoir148 isoir149 isoir157 isoir58 koi koi8 koi8r koi8ru koi8u korean ksc5601 \
    ksc56011987 ksc56011989 logical mac macintosh macroman ms932 mskanji none shiftjis sjis suneugreek tis620 \
    unicode11utf8 unicode20utf8 usascii utf8 utf8mb3 utf8mb4 utf8sig viscii visual windows31j windows874 windows949 xeucjp xgbk \
    xmaccyrillic xmacroman xmacukrainian xsjis xunicode20utf8 xuserdefined xxbig5";
/// Beginnings of the names of such sets; a number follows.
const NUMBERED: [&str; 6] = ["iso8859", "latin", "l", "windows125", "cp125", "xcp125"];

/// Parts of the names of media types that are texts, beside `text/`.
const TEXTS: [&str; 12] = [
    "csv",
    "ecmascript",
    "graphql",
    "html",
    "javascript",
    "json",
    "jsonl",
    "ndjson",
    "urlencoded",
    "xhtml",
    "xml",
    "yaml",
];

/// The number of bytes at the beginning of an answer that show its encoding.
const OPENING: usize = 4;

/// Returns true if a media type names no character set, or one in which characters of ASCII have their bytes.
#[must_use]
pub fn is_readable(kind: &HeaderValue) -> bool {
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let is_wide = ["utf16", "utf32", "utf7"].iter().any(|name| without_signs(&kind).contains(name));
    // Each one counts, wherever it stands: programs differ in how they read several, or broken ones.
    let mut sets = kind.split("charset").skip(1).map(|rest| {
        let value = rest.trim_start_matches([' ', '\t', '=', '"', '\'']);
        value.split([';', ',', ' ', '\t', '"', '\'']).next().unwrap_or_default()
    });
    !is_wide
        && sets.all(|set| set.bytes().all(|byte| byte.is_ascii_graphic()) && is_known(&without_signs(set)))
}

/// Names of character sets have several spellings.
fn without_signs(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn is_known(set: &str) -> bool {
    let is_numbered = |start: &&str| {
        let number = set.strip_prefix(*start).map(|rest| rest.trim_end_matches(['e', 'i']));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    set.is_empty() || READABLE.split(' ').any(|known| known == set) || NUMBERED.iter().any(is_numbered)
}

/// The first bytes of an answer, if it is a text.
#[derive(Debug, Default)]
pub struct Opening {
    is_text: bool,
    bytes: Vec<u8>,
}

impl Opening {
    /// Returns the opening of an answer with these headers, before any of its bytes has come.
    #[must_use]
    pub fn new(headers: &HeaderMap) -> Self {
        let mut kinds = headers.get_all(CONTENT_TYPE).iter().peekable();
        let is_text = kinds.peek().is_none() || kinds.any(is_text);
        Self { is_text, bytes: Vec::new() }
    }

    /// Takes the next bytes, and returns true if they show UTF-16, UTF-32 or EBCDIC.
    pub fn is_wide_after(&mut self, piece: &[u8]) -> bool {
        if !self.is_text || self.bytes.len() >= OPENING {
            return false;
        }
        self.bytes.extend(piece.iter().take(OPENING - self.bytes.len()));
        match *self.bytes {
            // The marks of their byte orders, and `<?xm` in EBCDIC.
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 0, 0xfe, 0xff] | [0x4c, 0x6f, 0xa7, 0x94] => true,
            // Without a mark, characters of ASCII show themselves by their zeros. Many other files begin with one byte
            // among zeros, so of UTF-32 only the beginnings of XML, HTML and JSON count.
            [one, 0, 0, 0] | [0, 0, 0, one] => b"<{[\"".contains(&one),
            [one, 0, other, 0] | [0, one, 0, other] => is_written(one) && is_written(other),
            _ => false,
        }
    }
}

/// Returns true for a character of ASCII that stands in texts.
fn is_written(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Returns true for the media type of a text.
fn is_text(kind: &HeaderValue) -> bool {
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.is_empty()
        || kind.starts_with("text/")
        || kind.split(['/', '.', '-', '+']).any(|part| TEXTS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_character_sets_with_the_bytes_of_ascii_are_read() {
        for kind in [
            "text/html; charset=UTF-16",
            "text/html; charset=utf_16le",
            "text/html;charset=\"unicode\"",
            "text/html; charset = UCS-2",
            "text/html; charset=IBM037",
            "text/html; charset=cp037",
            "text/html; charset=cp1140",
            "text/html; charset=x-cp1026",
            "text/html; charset=ISO-10646-UCS-4",
            "text/html; charset=unheard-of",
            "text/html; charset=utf-8; charset=cp1140",
            "text/html; charset*=cp1140",
            "text/html; charset=\"\"cp1140",
        ] {
            assert!(!is_readable(&HeaderValue::from_static(kind)), "{kind}");
        }
        for kind in [
            "application/json",
            "text/html; charset=utf-8",
            "text/html;charset=\"UTF-8\"; boundary=x",
            "text/plain; charset=ISO-8859-16",
            "text/plain; charset=iso-8859-8-i",
            "text/plain; charset=us-ascii",
            "text/plain; charset=windows-1252",
            "text/plain; charset=Shift_JIS",
            "text/plain; charset=KOI8-R",
            "text/plain; charset=ks_c_5601-1987",
            "application/gzip; charset=binary",
            "text/plain; charset=utf8mb4",
            "text/plain; charset=utf-8-sig",
            "text/plain; charset=cp437",
            "text/plain; charset=",
            "x/focus",
        ] {
            assert!(is_readable(&HeaderValue::from_static(kind)), "{kind}");
        }
    }

    #[test]
    fn the_first_bytes_of_a_text_show_wide_characters() {
        let check = |kind: Option<&'static str>, bytes: &[u8]| {
            let kind = kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind)));
            let headers: HeaderMap = kind.into_iter().collect();
            let mut small = Opening::new(&headers);
            let in_small_pieces = bytes.chunks(1).any(|piece| small.is_wide_after(piece));
            assert_eq!(Opening::new(&headers).is_wide_after(bytes), in_small_pieces);
            in_small_pieces
        };
        let wide: [&[u8]; 7] = [
            b"\xff\xfe<\0",
            b"\xfe\xff\0<",
            b"{\0\"\0a\0",
            b"\0{\0\"\0a",
            b"<\0\0\0?\0\0\0",
            b"\0\0\0<\0\0\0?",
            b"\x4c\x6f\xa7\x94\x93",
        ];
        for bytes in wide {
            for kind in ["text/html", "text/xml; charset=utf-8", "application/json", "application/hal+json"] {
                assert!(check(Some(kind), bytes), "{kind}: {bytes:?}");
            }
            assert!(check(None, bytes), "{bytes:?}");
            for kind in [
                "application/octet-stream",
                "application/x-git-upload-pack-result",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                "image/png",
            ] {
                assert!(!check(Some(kind), bytes), "{kind}: {bytes:?}");
            }
        }
        // The last ones are a font, a film and an icon.
        let others: [&[u8]; 9] = [
            b"{\"a\":1}",
            b"\xef\xbb\xbf{}",
            b"\x1f\x8b\x08\0\0",
            b"\0\0\0\0\0",
            b"",
            b"\0asm\x01\0\0\0",
            b"\0\x01\0\0\0",
            b"\0\0\0\x20ftyp",
            b"\0\0\x01\0\x01\0",
        ];
        for bytes in others {
            assert!(!check(Some("text/plain"), bytes), "{bytes:?}");
        }
    }
}
