//! Reads the server's name from a TLS client hello, see RFC 8446 4.1.2.
//!
//! Written by hand: only two extensions count, and a hello that could be read in two ways is refused.

/// The longest accepted client hello.
///
/// An honest one has a few hundred bytes, or about two thousand with post-quantum keys.
const HELLO_MAX: usize = 64 * 1024;
/// The most records that a client hello may span.
const RECORDS_MAX: usize = 128;
/// TLS record and message types.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// Extension types: `server_name` and `encrypted_client_hello`.
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;
/// `host_name` in `server_name`.
const HOST_NAME: u8 = 0;

/// The result of reading the beginning of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// More bytes are needed.
    Incomplete,
    /// A client hello, and the length of its records in bytes.
    Whole(ClientHello, usize),
    /// It is not a valid client hello, for this reason.
    Malformed(&'static str),
}

/// The fields of a client hello that matter for the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The server's name as written; `None` if there is none.
    pub server_name: Option<String>,
    /// It may contain another, encrypted name.
    pub is_hiding: bool,
}

/// Returns true if a stream that begins with `first` is TLS.
pub fn is_tls(first: u8) -> bool {
    first == HANDSHAKE
}

/// Reads the beginning of a stream for which [`is_tls`] holds.
pub fn read(bytes: &[u8]) -> Hello {
    let (message, length) = match message(bytes) {
        Ok(Some(message)) => message,
        Ok(None) => return Hello::Incomplete,
        Err(problem) => return Hello::Malformed(problem),
    };
    match client_hello(&message) {
        Some(hello) => Hello::Whole(hello, length),
        None => Hello::Malformed("the TLS client hello is malformed"),
    }
}

/// Joins the first message from its records; `None` while it is incomplete.
///
/// The number is the length of the records in bytes.
fn message(mut bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let all = bytes.len();
    let mut message = Vec::new();
    for _record in 0..=RECORDS_MAX {
        if let Some(length) = message.get(1..4).and_then(number) {
            if length > HELLO_MAX {
                return Err("the TLS client hello is too long");
            }
            if message.len() > 4 + length {
                return Err("something follows the TLS client hello in its record");
            }
            if let Some(whole) = message.get(4..4 + length) {
                return match message.first() {
                    Some(&CLIENT_HELLO) => Ok(Some((whole.to_vec(), all - bytes.len()))),
                    _ => Err("the first TLS message is no client hello"),
                };
            }
        }
        let Some((head, rest)) = bytes.split_at_checked(5) else { return Ok(None) };
        let &[kind, major, _, high, low] = head else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 || length == 0 {
            return Err("the first TLS record is no handshake");
        }
        let Some((fragment, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        message.extend_from_slice(fragment);
        if message.len() > HELLO_MAX {
            return Err("the TLS client hello is too long");
        }
        bytes = rest;
    }
    Err("the TLS client hello is in too many pieces")
}

fn client_hello(message: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader(message);
    // Version and random number.
    reader.take(2 + 32)?;
    // Session id, cipher suites, compression methods.
    reader.vector(1)?;
    reader.vector(2)?;
    reader.vector(1)?;
    let mut hello = ClientHello { server_name: None, is_hiding: false };
    if reader.0.is_empty() {
        // Before TLS 1.2 there may be no extensions at all.
        return Some(hello);
    }
    let mut extensions = Reader(reader.vector(2)?);
    if !reader.0.is_empty() {
        return None;
    }
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let content = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) {
            // Servers would read two of them differently.
            if hello.server_name.is_some() {
                return None;
            }
            hello.server_name = Some(server_name(content)?);
        }
        hello.is_hiding |= kind == usize::from(ENCRYPTED_HELLO);
    }
    Some(hello)
}

/// Returns the only name in the extension, see RFC 6066 3.
fn server_name(content: &[u8]) -> Option<String> {
    let mut reader = Reader(content);
    let mut list = Reader(reader.vector(2)?);
    let kind = list.number(1)?;
    let name = list.vector(2)?;
    let is_alone = reader.0.is_empty() && list.0.is_empty() && kind == usize::from(HOST_NAME);
    is_alone.then(|| String::from_utf8(name.to_vec()).ok()).flatten()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        self.take(bytes).and_then(number)
    }

    /// Takes a byte string preceded by its length, which has `length_bytes` bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.number(length_bytes)?;
        self.take(length)
    }
}

fn number(bytes: &[u8]) -> Option<usize> {
    (bytes.len() < size_of::<usize>())
        .then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn vector(length_bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = content.len().to_be_bytes();
        [&length[length.len() - length_bytes..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes(), vector(2, content).as_slice()].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &vector(2, &[&[HOST_NAME], vector(2, name).as_slice()].concat()))
    }

    fn handshake(extensions: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            vec![3, 3],
            vec![7; 32],
            vector(1, &[]),
            vector(2, &[0x13, 1]),
            vector(1, &[0]),
            vector(2, &extensions.concat()),
        ];
        [&[CLIENT_HELLO], vector(3, &body.concat()).as_slice()].concat()
    }

    fn record(fragment: &[u8]) -> Vec<u8> {
        [&[HANDSHAKE, 3, 1], vector(2, fragment).as_slice()].concat()
    }

    /// Returns a client hello for `name`.
    pub(crate) fn hello(name: &str) -> Vec<u8> {
        record(&handshake(&[extension(23, &[]), sni(name.as_bytes())]))
    }

    fn whole(server_name: Option<&str>, is_hiding: bool) -> ClientHello {
        ClientHello { server_name: server_name.map(str::to_owned), is_hiding }
    }

    #[test]
    fn the_name_is_read() {
        let hiding = record(&handshake(&[sni(b"outer.test"), extension(ENCRYPTED_HELLO, &[0])]));
        for (bytes, expected) in [
            (hello("a.test"), whole(Some("a.test"), false)),
            (record(&handshake(&[])), whole(None, false)),
            (hiding, whole(Some("outer.test"), true)),
        ] {
            assert_eq!(
                read(&[bytes.as_slice(), b"\x17\x03\x03"].concat()),
                Hello::Whole(expected, bytes.len())
            );
        }
    }

    #[test]
    fn pieces_are_put_together_and_nothing_is_said_before_all_are_there() {
        let message = handshake(&[sni(b"a.test")]);
        let pieces: Vec<u8> = message.chunks(7).flat_map(record).collect();
        for end in 0..pieces.len() {
            assert_eq!(read(&pieces[..end]), Hello::Incomplete, "{end}");
        }
        assert_eq!(read(&pieces), Hello::Whole(whole(Some("a.test"), false), pieces.len()));
    }

    #[test]
    fn oddities_are_malformed() {
        let malformed = |bytes: &[u8]| matches!(read(bytes), Hello::Malformed(_));
        assert!(malformed(&record(&handshake(&[sni(b"a.test"), sni(b"b.test")]))), "two names");
        assert!(malformed(&record(&handshake(&[extension(SERVER_NAME, &[])]))), "an empty list");
        let two = [&[HOST_NAME], vector(2, b"a").as_slice(), &[HOST_NAME], &vector(2, b"b")].concat();
        assert!(malformed(&record(&handshake(&[extension(SERVER_NAME, &vector(2, &two))]))), "two in one");
        assert!(malformed(&[HANDSHAKE, 2, 0, 0, 9]), "another protocol");
        assert!(malformed(&[HANDSHAKE, 3, 1, 0, 0]), "an empty record");
        assert!(malformed(&record(&[2, 0, 0, 0])), "another message");
        assert!(malformed(&record(&[CLIENT_HELLO, 0xff, 0xff, 0xff])), "no end");
        let another = [handshake(&[sni(b"a.test")]), handshake(&[sni(b"b.test")])].concat();
        assert!(malformed(&record(&another)), "another message in the same record");
        let mut cut = handshake(&[sni(b"a.test")]);
        cut[3] -= 1;
        assert!(malformed(&record(&cut)), "shorter than its content");
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            drop(read(&bytes));
            drop(read(&record(&[vec![CLIENT_HELLO], vector(3, &bytes)].concat())));
        }

        #[test]
        fn one_changed_byte_never_makes_another_name_of_it(at in 0_usize..70, to: u8) {
            let mut bytes = hello("allowed.test");
            let at = at % bytes.len();
            bytes[at] = to;
            if let Hello::Whole(hello, _) = read(&bytes) {
                let name = hello.server_name.unwrap_or_default();
                proptest::prop_assert!(name.is_empty() || name.len() == "allowed.test".len());
            }
        }
    }
}
