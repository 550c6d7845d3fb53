//! Reads a TLS server's first message, see RFC 8446 4.1.3: it accepts the client hello or requests another.

/// TLS record and message types.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const HELLO_REQUEST: [u8; 4] = [0; 4];
const SERVER_HELLO: u8 = 2;
/// The position of the random number, after the message's header and the version.
const RANDOM: std::ops::Range<usize> = 6..38;
/// The longest accepted answer, in bytes; servers send less, warnings included.
const ANSWER_MAX: usize = 64 * 1024;

/// The random number that marks a server hello as a request for another client hello (HelloRetryRequest).
#[rustfmt::skip]
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A server's answer to a client hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerReply {
    /// More bytes are needed.
    Incomplete,
    Accepted,
    /// The client must send another hello, which may contain another name.
    AnotherHello,
    /// It is not TLS.
    Unreadable,
}

/// Reads the bytes that a server has sent so far.
pub(super) fn read(mut bytes: &[u8]) -> ServerReply {
    if bytes.len() > ANSWER_MAX {
        return ServerReply::Unreadable;
    }
    let mut message = Vec::new();
    loop {
        let begin = message.strip_prefix(&HELLO_REQUEST).unwrap_or(&message);
        match (begin.first(), begin.get(RANDOM)) {
            (Some(&SERVER_HELLO), Some(random)) if random == RETRY => return ServerReply::AnotherHello,
            (Some(&SERVER_HELLO), Some(_)) => return ServerReply::Accepted,
            (Some(&SERVER_HELLO | &0) | None, _) => {}
            (Some(_), _) => return ServerReply::Unreadable,
        }
        match bytes {
            [ALERT | HANDSHAKE, 3, ..] | [ALERT | HANDSHAKE] | [] => {}
            _ => return ServerReply::Unreadable,
        }
        let Some((head, rest)) = bytes.split_at_checked(5) else { return ServerReply::Incomplete };
        let &[kind, _, _, high, low] = head else { return ServerReply::Incomplete };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some((fragment, rest)) = rest.split_at_checked(length) else { return ServerReply::Incomplete };
        if kind == HANDSHAKE {
            message.extend_from_slice(fragment);
        }
        bytes = rest;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
        let length = u16::try_from(fragment.len()).unwrap().to_be_bytes();
        [&[kind, 3, 3], length.as_slice(), fragment].concat()
    }

    fn hello(random: [u8; 32]) -> Vec<u8> {
        [&[SERVER_HELLO, 0, 0, 38, 3, 3], random.as_slice(), &[0, 0x13, 1, 0]].concat()
    }

    /// Returns the answer of a server that accepts the client hello.
    pub(crate) fn accepting() -> Vec<u8> {
        record(HANDSHAKE, &hello([7; 32]))
    }

    /// Returns the answer of a server that requests another client hello.
    pub(crate) fn retrying() -> Vec<u8> {
        record(HANDSHAKE, &hello(RETRY))
    }

    #[test]
    fn an_answer_is_read_however_it_comes() {
        let warning = record(ALERT, &[1, 112]);
        for (bytes, answer) in [
            (accepting(), ServerReply::Accepted),
            (retrying(), ServerReply::AnotherHello),
            ([warning.clone(), retrying()].concat(), ServerReply::AnotherHello),
            (
                hello(RETRY).chunks(5).flat_map(|part| record(HANDSHAKE, part)).collect(),
                ServerReply::AnotherHello,
            ),
            ([record(HANDSHAKE, &HELLO_REQUEST), accepting()].concat(), ServerReply::Accepted),
        ] {
            assert_eq!(read(&bytes), answer);
            let early =
                (0..bytes.len()).map(|end| read(&bytes[..end])).find(|read| *read != ServerReply::Incomplete);
            assert!(early.is_none_or(|early| early == answer), "{early:?}");
        }
        assert_eq!(read(&warning), ServerReply::Incomplete);
    }

    #[test]
    fn what_is_no_answer_is_not_taken_for_one() {
        for bytes in [b"HTTP/1.1 400 Bad Request".as_slice(), b"\x16\x02", b"\x17\x03\x03", b"220 mail"] {
            assert_eq!(read(bytes), ServerReply::Unreadable);
        }
        assert_eq!(read(&record(HANDSHAKE, &[11, 0, 0, 9])), ServerReply::Unreadable);
        assert_eq!(read(&record(ALERT, &[1, 112]).repeat(10_000)), ServerReply::Unreadable);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..99)) {
            let _answer = read(&bytes);
            let _answer = read(&record(HANDSHAKE, &bytes));
        }
    }
}
