//! The versions of HTTP that a connection to a brokered host can speak.

/// The size of the read buffer of a connection of HTTP/1.1, in bytes. A longer head of a request or answer is refused.
pub(super) const BUFFER: usize = 64 * 1024;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    /// HTTP/1.0 and HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
}

impl HttpVersion {
    /// Returns the names of the version in TLS (RFC 7301).
    pub(super) fn protocols(self) -> &'static [&'static [u8]] {
        match self {
            Self::One => &[b"http/1.1", b"http/1.0"],
            Self::Two => &[b"h2"],
        }
    }

    /// Returns the version that TLS has agreed on. Without an agreement it is the first.
    pub(super) fn agreed(protocol: Option<&[u8]>) -> Self {
        if protocol.is_some_and(|name| Self::Two.protocols().contains(&name)) { Self::Two } else { Self::One }
    }
}

/// The versions that a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) one: bool,
    pub(super) two: bool,
}

impl Offer {
    /// Reads the names in a client's hello; a client that names none speaks the first version.
    pub(super) fn new<'a>(protocols: Option<impl Iterator<Item = &'a [u8]>>) -> Self {
        let Some(protocols) = protocols else { return Self { one: true, two: false } };
        let named: Vec<&[u8]> = protocols.collect();
        let has = |version: HttpVersion| named.iter().any(|name| version.protocols().contains(name));
        Self { one: has(HttpVersion::One), two: has(HttpVersion::Two) }
    }

    /// Returns the version to speak with the client, so that as little as possible is translated; `None` if it offers
    /// none that the gate speaks.
    pub(super) fn choose(self, server: HttpVersion) -> Option<HttpVersion> {
        match (self, server) {
            (Self { two: true, .. }, HttpVersion::Two)
            | (Self { one: false, two: true }, HttpVersion::One) => Some(HttpVersion::Two),
            (Self { one: true, .. }, _) => Some(HttpVersion::One),
            (Self { one: false, two: false }, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_speaks_the_version_of_the_server_if_it_can() {
        use HttpVersion::{One, Two};
        let check = |names: Option<&[&str]>, server, wanted| {
            let offer = Offer::new(names.map(|names| names.iter().map(|name| name.as_bytes())));
            assert_eq!(offer.choose(server), wanted, "{names:?} {server:?}");
        };
        check(Some(&["h2", "http/1.1"]), Two, Some(Two));
        check(Some(&["http/1.1", "h2"]), Two, Some(Two));
        check(Some(&["h2", "http/1.1"]), One, Some(One));
        check(Some(&["h2"]), One, Some(Two));
        check(Some(&["h2"]), Two, Some(Two));
        check(Some(&["http/1.1"]), Two, Some(One));
        check(None, Two, Some(One));
        check(None, One, Some(One));
        check(Some(&["http/1.0"]), Two, Some(One));
        check(Some(&["h3", "h2c"]), Two, None);
        check(Some(&[]), One, None);
    }

    #[test]
    fn without_an_agreement_the_first_version_is_spoken() {
        assert_eq!(HttpVersion::agreed(None), HttpVersion::One);
        assert_eq!(HttpVersion::agreed(Some(b"http/1.1")), HttpVersion::One);
        assert_eq!(HttpVersion::agreed(Some(b"h2")), HttpVersion::Two);
        assert_eq!(HttpVersion::agreed(Some(b"h2c")), HttpVersion::One);
    }
}
