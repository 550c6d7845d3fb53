//! Classifies a client's stream by its first bytes.
//!
//! Servers are lenient: they skip leading bytes, or accept other white space than the standard allows. So a stream that
//! any server could take for TLS or HTTP is classified as such here, and then parsed strictly.

/// The longest blank space before a request, in bytes; honest clients send less.
const BLANK_MAX: usize = 4 * 1024;
/// The longest word that any server takes for a method; names of URI schemes are shorter as well.
const WORD_MAX: usize = 32;
const METHODS: [&[u8]; 9] =
    [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT"];
/// How versions begin, in lower case; some servers treat the last two as HTTP.
pub(super) const VERSIONS: [&[u8]; 3] = [b"http/", b"rtsp/", b"ice/"];
const HTTP_2: &[u8] = b"PRI * HTTP/2.0";
/// The two forms in which a proxy tells a server the address of its client.
const PROXIED: [&[u8]; 2] = [b"PROXY ", b"\0\r\nQUIT\n"];

/// The classification of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// More bytes are needed.
    Undecided,
    /// A TLS handshake record.
    Tls,
    /// A client hello in SSL 2 format, which has no field for the server's name.
    NamelessHello,
    /// An HTTP/1 request, or what some server could take for one, after this many skipped bytes.
    Http(usize),
    Http2,
    /// Servers may read it differently, for this reason.
    Malformed(&'static str),
    /// Neither TLS nor HTTP to most servers.
    ///
    /// It is forwarded, but watched, because some servers take almost anything for a request; see
    /// [`Watch`](super::watch::Watch).
    Other,
}

impl Opening {
    /// Classifies a stream that begins with `bytes`.
    pub(super) fn classify(bytes: &[u8]) -> Self {
        let tls = tls(bytes);
        let opening = if tls == Self::Other { http(bytes) } else { tls };
        if opening == Self::Undecided && bytes.len() > BLANK_MAX {
            return Self::Malformed("there is too much blank space before the request");
        }
        opening
    }
}

/// TLS record types, see RFC 8446 5.1: all that were ever assigned, and their neighbours.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=31;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

fn tls(bytes: &[u8]) -> Opening {
    const NO_HELLO: Opening = Opening::Malformed("TLS begins with something else than a client hello");
    match *bytes {
        [HANDSHAKE, ..] => Opening::Tls,
        [first] if RECORDS.contains(&first) => Opening::Undecided,
        [first, 3, ..] if RECORDS.contains(&first) => NO_HELLO,
        // Go's server accepts alerts of any early version, and drops warnings.
        [ALERT, 0..0x10, _, 0, 2, ..] => NO_HELLO,
        [ALERT, 0..0x10] | [ALERT, 0..0x10, _] | [ALERT, 0..0x10, _, 0] => Opening::Undecided,
        // Two bytes of length with the highest bit set, the message type, the version. Telnet's first byte (0xff) is
        // left out, since servers accept no such length.
        [0x80..=0xfe, _, 1, 0 | 2 | 3, ..] => Opening::NamelessHello,
        [0x80..=0xfe] | [0x80..=0xfe, _] | [0x80..=0xfe, _, 1] => Opening::Undecided,
        _ => Opening::Other,
    }
}

fn http(bytes: &[u8]) -> Opening {
    // Servers skip empty lines before the first request.
    let skipped = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let after = bytes.get(skipped..).unwrap_or_default();
    if PROXIED.iter().any(|proxied| after.starts_with(proxied)) {
        return Opening::Malformed("the client speaks for another, as only a proxy in front of a server may");
    }
    if after.starts_with(HTTP_2) {
        return Opening::Http2;
    }
    let begin = after.iter().position(|byte| !is_space(*byte)).unwrap_or(after.len());
    let request = after.get(begin..).unwrap_or_default();
    let word = request.iter().position(|byte| !is_token(*byte)).unwrap_or(request.len());
    let (method, rest) = request.split_at_checked(word).unwrap_or_default();
    let is_short_of = |all: &[u8]| !after.is_empty() && after.len() < all.len() && all.starts_with(after);
    match (method.first(), rest.first()) {
        _ if PROXIED.iter().chain([&HTTP_2]).any(|begin| is_short_of(begin)) => Opening::Undecided,
        (None, None) => Opening::Undecided,
        // The result does not depend on how many bytes arrive at once.
        _ if method.len() > WORD_MAX => Opening::Other,
        (Some(_), None) => Opening::Undecided,
        // No method continues like that.
        (_, Some(&next)) if method.is_empty() || !is_space(next) => Opening::Other,
        (_, Some(_)) if METHODS.iter().any(|known| known.eq_ignore_ascii_case(method)) => {
            Opening::Http(skipped)
        }
        // Some servers take any token for a method. Git's protocol begins with a digit, so a letter is required.
        (Some(first), Some(_)) if first.is_ascii_alphabetic() => target(rest, skipped),
        _ => Opening::Other,
    }
}

/// Decides by the second word: if it is a request target, the line is a request, whatever follows.
fn target(behind_method: &[u8], skipped: usize) -> Opening {
    let blank = behind_method.iter().take_while(|byte| is_space(**byte) && !b"\r\n".contains(byte)).count();
    let word = behind_method.get(blank..).unwrap_or_default();
    let length = word.iter().position(|byte| is_space(*byte)).unwrap_or(word.len());
    let begin = word.get(..length.min(WORD_MAX)).unwrap_or(word);
    if names_a_target(begin) {
        return Opening::Http(skipped);
    }
    let may_go_on = length == word.len() && length < WORD_MAX;
    if may_go_on && begin.iter().all(|byte| is_of_scheme(*byte) || b":/".contains(byte)) {
        Opening::Undecided
    } else {
        Opening::Other
    }
}

/// Returns true if a word begins like a request target, with or without the name of a server.
pub(super) fn names_a_target(word: &[u8]) -> bool {
    let scheme = word.iter().take_while(|byte| is_of_scheme(**byte)).count();
    let is_absolute = word.get(scheme..).is_some_and(|rest| rest.starts_with(b"://"));
    word.starts_with(b"/") || word.starts_with(b"*") || is_absolute
}

/// Characters of a URI scheme, see RFC 3986 3.1.
fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Characters that separate words for some server, in ASCII and in Latin-1.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

/// Characters of a method, see RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Opening) {
        assert_eq!(Opening::classify(bytes), expected, "{}", bytes.escape_ascii());
    }

    fn is_malformed(bytes: &[u8]) -> bool {
        matches!(Opening::classify(bytes), Opening::Malformed(_))
    }

    #[test]
    fn records_before_the_hello_are_tls_and_no_hello() {
        for bytes in [
            b"\x15\x03\x01\0\x02\x01\x5a".as_slice(),
            b"\x14\x03\x03\0\x01\x01",
            b"\x17\x03\x03\0\x01\x01",
            b"\x18\x03\x03\0\x01\x01",
            b"\x1a\x03\x03\0\x01\x01",
            b"\x15\0\0\0\x02\x01\x5a",
            b"\x15\x0f\x01\0\x02",
        ] {
            assert!(is_malformed(bytes), "{}", bytes.escape_ascii());
        }
        for bytes in [b"\x15".as_slice(), b"\x14", b"\x1a", b"\x15\0", b"\x15\0\0\0"] {
            check(bytes, Opening::Undecided);
        }
        check(b"\x16", Opening::Tls);
        check(b"\x16\x02", Opening::Tls);
        check(b"\x15\0\0\0\x10\0\0\0", Opening::Other);
    }

    #[test]
    fn a_hello_of_ssl_2_names_nobody() {
        check(b"\x80\x2e\x01\x03\x01", Opening::NamelessHello);
        check(b"\x80\x2e\x01\0\x02", Opening::NamelessHello);
        check(b"\x81", Opening::Undecided);
        check(b"\x80\x2e\x01", Opening::Undecided);
        // Telnet, and an unknown protocol.
        check(b"\xff\xfd\x01", Opening::Other);
        check(b"\x80\x2e\x02\x03", Opening::Other);
    }

    #[test]
    fn what_any_server_takes_for_a_request_is_one() {
        for bytes in [
            b"GET / HTTP/1.1\r\n".as_slice(),
            b"GET ",
            b"get\t",
            b"GET\x0c/ HTTP/1.1\r\n",
            b"GET\xa0/\xa0HTTP/1.1\r\n",
            b"GET\x85",
            b"POST\x1f/",
            b"\x0bGET / HTTP/1.1\r\n",
            b" \xa0GET / HTTP/1.1\r\n",
            b"PROPFIND /\x01 HTTP/1.1\r\n",
            b"PROPFIND /\x7f hTTp/1.1\n",
            b"FOO /\0 HTTP/1.1\r\n",
            b"PUBLISH /x y\r\n",
            b"PROPFIND /x HTTQ/1.1\r\n",
            b"GIT /a b\r\n",
            b"SOURCE / ICE/1.0\r\n",
            b"DESCRIBE / RTSP/1.0\r\n",
            b"PROPFIND /",
            b"PROPFIND /\r\nHost: a\r\n",
            b"M-SEARCH *\r\n",
            b"MKCOL http://a/ \n",
        ] {
            check(bytes, Opening::Http(0));
        }
        check(b"\r\n\r\nGET / HTTP/1.1\r\n", Opening::Http(4));
        check(b"PRI * HTTP/2.0\r\n", Opening::Http2);
        check(b"PRI ", Opening::Undecided);
        assert!(is_malformed(&[b'\n'; BLANK_MAX + 1]), "no beginning");
    }

    #[test]
    fn nobody_speaks_for_another() {
        assert!(is_malformed(b"PROXY TCP4 1.2.3.4 1.2.3.4 1 443\r\n\x16\x03\x01"));
        assert!(is_malformed(b"\r\n\r\n\0\r\nQUIT\n\x21\x11"));
        for bytes in [b"PRO".as_slice(), b"\r\n\r\n\0\r\nQ", b"\r\n\r\n\0"] {
            check(bytes, Opening::Undecided);
        }
    }

    #[test]
    fn other_protocols_are_known_by_two_words_at_most() {
        for bytes in [
            b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(),
            b"EHLO me\r\n",
            b"NICK me\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"1 LOGIN me secret\r\n",
            b"INVITE sip:a@b.test SIP/2.0\r\n",
            b"QUIT\r\n/ x",
            b"{\"a\":1}",
            b"AMQP\0\0\x09\x01",
            b"GIOP\x01\x02",
            b"\x10\x1a\0\x04MQTT",
            b"\0\0\0\x08\x04\xd2\x16/psql",
            b"A\x0b\0\0",
            b"0\x0c\x02\x01",
            b"0 \x02\x01\x01\x60",
            b"0032git-upload-pack /r.git\0host=a.test\0",
            b"! /",
            b"\x05\x01\0",
            b"\x03\0\0\x13",
            b"\x13BitTorrent protocol",
            b"<?xml version='1.0'?>",
            b"Gr\xc3\xbc\xc3\x9fe",
            &[b'a'; WORD_MAX + 1],
            b"LONGER_THAN_ANY_WORD_THAT_IS_A_METHOD /",
        ] {
            check(bytes, Opening::Other);
        }
        for bytes in [b"".as_slice(), b"\r\n", b"EHLO m", b"FOO http:/", b"WHATEVER", b" ", b"003egit-"] {
            check(bytes, Opening::Undecided);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..50)) {
            let _opening = Opening::classify(&bytes);
        }

        /// Once made, a classification does not change when more bytes follow.
        #[test]
        fn more_bytes_change_nothing(bytes in "[\\x00-\\xff]{0,12}", more in "[\\x00-\\xff]{0,6}") {
            let before = Opening::classify(bytes.as_bytes());
            let after = Opening::classify([bytes.as_bytes(), more.as_bytes()].concat().as_slice());
            proptest::prop_assert!(before == Opening::Undecided || before == after, "{before:?} {after:?}");
        }
    }
}
