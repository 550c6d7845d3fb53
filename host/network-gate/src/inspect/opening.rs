//! What a stream from a client may be, told by its first bytes.
//!
//! Servers are lenient: they skip what comes before, or take other white space than they should. So what could
//! be TLS or HTTP to any of them is one of the two here, and is read strictly then.

/// A first line that is longer belongs to no HTTP request that any server takes.
pub(super) const LINE_MAX: usize = 64 * 1024;
const METHODS: [&[u8]; 9] =
    [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT"];
/// What versions begin with; some servers take the last two for HTTP.
const VERSIONS: [&[u8]; 3] = [b"http/", b"rtsp/", b"ice/"];
const HTTP_2: &[u8] = b"PRI * HTTP/2.0";
/// A NUL among so many bytes is of another protocol.
const WITHOUT_NUL: usize = 4;
/// The two forms in which a proxy tells a server who its client is.
const PROXIED: [&[u8]; 2] = [b"PROXY ", b"\0\r\nQUIT\n"];

/// What the beginning of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// More bytes are needed.
    Undecided,
    /// A record of a TLS handshake.
    Tls,
    /// A client hello in the form of SSL 2, which has no room for the name of a server.
    NamelessHello,
    /// A request of HTTP/1, or what some server could take for one, behind so many bytes.
    Http(usize),
    Http2,
    /// What servers may read otherwise, and why.
    Malformed(&'static str),
    /// Begins as no request should. It may go on, but servers that take anything for a method are there, so its
    /// first line is looked at when it is whole, see [`is_request`].
    Unlikely,
    /// Neither TLS nor HTTP.
    Other,
}

impl Opening {
    /// Says what a stream is that begins with `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let tls = tls(bytes);
        let opening = if tls == Self::Other { http(bytes) } else { tls };
        if opening == Self::Undecided && bytes.len() > LINE_MAX {
            return Self::Malformed("the first line of the request is too long");
        }
        opening
    }
}

/// Kinds of records, see RFC 8446 5.1: those that were ever given a meaning, and their neighbours.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=31;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

fn tls(bytes: &[u8]) -> Opening {
    const NO_HELLO: Opening = Opening::Malformed("TLS begins with something else than a client hello");
    match *bytes {
        [HANDSHAKE, ..] => Opening::Tls,
        [first] if RECORDS.contains(&first) => Opening::Undecided,
        [first, 3, ..] if RECORDS.contains(&first) => NO_HELLO,
        // Go's takes alerts of any early version, and drops those that are warnings.
        [ALERT, 0..0x10, _, 0, 2, ..] => NO_HELLO,
        [ALERT, 0..0x10] | [ALERT, 0..0x10, _] | [ALERT, 0..0x10, _, 0] => Opening::Undecided,
        // Two bytes of length with the highest bit set, the message, the version. Servers take no such length as
        // telnet's first byte would make.
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
        _ if PROXIED.iter().any(|proxied| is_short_of(proxied)) => Opening::Undecided,
        (None, None) => Opening::Undecided,
        // No method should go on like that.
        (_, Some(&next)) if method.is_empty() || !is_space(next) => Opening::Unlikely,
        // Some servers take any token for a method, but few other bytes in their lines than those of text; those are
        // in what begins like that and is no text, in LDAP and git's own protocol.
        (Some(first), Some(_)) if !first.is_ascii_alphabetic() && has_controls(rest) => Opening::Unlikely,
        (Some(_), None) => Opening::Undecided,
        (_, Some(_)) if METHODS.iter().any(|known| known.eq_ignore_ascii_case(method)) => {
            Opening::Http(skipped)
        }
        _ if request.get(..WITHOUT_NUL).unwrap_or(request).contains(&0) => Opening::Unlikely,
        _ => line(request, skipped),
    }
}

/// Decides by the whole first line; one that has no end yet could still become a request.
fn line(request: &[u8], skipped: usize) -> Opening {
    let Some(end) = request.iter().position(|&byte| byte == b'\n') else { return Opening::Undecided };
    let line = request.get(..end).unwrap_or_default().to_ascii_lowercase();
    let has = |version: &[u8]| line.windows(version.len()).any(|part| part == version);
    let is_request = VERSIONS.iter().any(|version| has(version)) || is_without_version(&line);
    if is_request { Opening::Http(skipped) } else { Opening::Other }
}

/// Whether some server could take a line, without its end, for the first one of a request.
pub(super) fn is_request(line: &[u8]) -> bool {
    let line = line.to_ascii_lowercase();
    let names_a_version = |words: &[u8]| {
        let [space, word @ ..] = words else { return false };
        let is_numbered = |version: &[u8]| {
            word.strip_prefix(version).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        };
        is_space(*space) && VERSIONS.iter().any(|version| is_numbered(version))
    };
    (0..line.len()).any(|at| line.get(at..).is_some_and(names_a_version)) || is_without_version(&line)
}

/// A request as before HTTP/1.0, which some servers take with the headers of a later one.
fn is_without_version(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
    let (Some(_method), Some(target), None) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let scheme = target.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_absolute = target.get(scheme..).is_some_and(|rest| rest.starts_with(b"://"));
    (target.starts_with(b"/") || target.starts_with(b"*") || is_absolute) && !target.contains(&0)
}

/// Whether there are bytes before the end of the line that are neither text nor white space.
fn has_controls(request: &[u8]) -> bool {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().any(|byte| byte.is_ascii_control() && !is_space(*byte))
}

/// What parts words for one server or another, in ASCII and in Latin 1.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

/// Of what methods consist, see RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Opening) {
        assert_eq!(Opening::of(bytes), expected, "{}", bytes.escape_ascii());
    }

    fn is_malformed(bytes: &[u8]) -> bool {
        matches!(Opening::of(bytes), Opening::Malformed(_))
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
        check(b"\x15\0\0\0\x10\0\0\0", Opening::Unlikely);
    }

    #[test]
    fn a_hello_of_ssl_2_names_nobody() {
        check(b"\x80\x2e\x01\x03\x01", Opening::NamelessHello);
        check(b"\x80\x2e\x01\0\x02", Opening::NamelessHello);
        check(b"\x81", Opening::Undecided);
        check(b"\x80\x2e\x01", Opening::Undecided);
        // Telnet, and whatever else.
        check(b"\xff\xfd\x01", Opening::Unlikely);
        check(b"\x80\x2e\x02\x03", Opening::Unlikely);
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
            b"X\tY\tHTTP/1.1\n",
            b"SOURCE / ICE/1.0\r\n",
            b"DESCRIBE / RTSP/1.0\r\n",
            // What takes any token for a method does not ask for letters.
            b"! / HTTP/1.1\r\n",
            b"0032git-upload-pack / HTTP/1.1\r\n",
            b"`\x0c/\tHTTP/1.0\n",
            b"PROPFIND /\r\nHost: a\r\n",
            b"M-SEARCH *\r\n",
            b"MKCOL http://a/ \n",
        ] {
            check(bytes, Opening::Http(0));
        }
        check(b"\r\n\r\nGET / HTTP/1.1\r\n", Opening::Http(4));
        check(b"PRI * HTTP/2.0\r\n", Opening::Http2);
        assert!(is_malformed(&[b"PROPFIND /".as_slice(), &[b'a'; LINE_MAX]].concat()), "no end");
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
    fn other_protocols_are_known_at_once_or_by_their_first_line() {
        for bytes in [
            b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(),
            b"EHLO me\r\n",
            b"NICK me\r\n",
            b"GIT /a b\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"1 LOGIN me secret\r\n",
        ] {
            check(bytes, Opening::Other);
        }
        for bytes in [
            b"{\"a\":1}".as_slice(),
            b"AMQP\0\0\x09\x01",
            b"GIOP\x01\x02",
            b"\x10\x1a\0\x04MQTT",
            b"\0\0\0\x08\x04\xd2\x16/psql",
            b"A\x0b\0\0",
            b"0\x0c\x02\x01",
            b"0 \x02\x01\x01\x60",
            b"0032git-upload-pack /r.git\0host=a.test\0",
            b"\x05\x01\0",
            b"\x03\0\0\x13",
            b"\x13BitTorrent protocol",
            b"<?xml version='1.0'?>",
            b"Gr\xc3\xbc\xc3\x9fe",
            b"A /\0 HTTP/1.1",
        ] {
            check(bytes, Opening::Unlikely);
        }
        for bytes in [b"".as_slice(), b"\r\n", b"EHLO m", b"WHATEVER", b" ", b"003egit-", b"! /"] {
            check(bytes, Opening::Undecided);
        }
    }

    #[test]
    fn any_word_is_a_method_to_somebody() {
        for line in [
            b"!X / HTTP/1.1\r".as_slice(),
            b"1 / HTTP/1.1",
            b"\0GET / HTTP/1.1",
            b"GE(T / HTTP/1.1",
            b"GE\x01T\t/\thttp/1.0",
            b"A /\0 HTTP/1.1",
            b"{ /",
            b"1 http://a/",
        ] {
            assert!(is_request(line), "{}", line.escape_ascii());
        }
        for line in [
            b"*1".as_slice(),
            b"{\"url\": \"http://a/\"}",
            b"{\"version\":\"HTTP/1.1\"}",
            b"0032git-upload-pack /a.git\0host=a.test\0",
            b"0032git-upload-pack /a.git\0host=a.test\x000098want 0123 multi_ack",
            b"\x13BitTorrent protocol",
            b"<?xml version='1.0'?>",
        ] {
            assert!(!is_request(line), "{}", line.escape_ascii());
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..50)) {
            let _opening = Opening::of(&bytes);
        }

        /// What was decided is not changed by what follows.
        #[test]
        fn more_bytes_change_nothing(bytes in "[\\x00-\\xff]{0,12}", more in "[\\x00-\\xff]{0,6}") {
            let before = Opening::of(bytes.as_bytes());
            let after = Opening::of([bytes.as_bytes(), more.as_bytes()].concat().as_slice());
            proptest::prop_assert!(before == Opening::Undecided || before == after, "{before:?} {after:?}");
        }
    }
}
