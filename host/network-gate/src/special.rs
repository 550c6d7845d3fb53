//! Kinds of addresses outside the public internet.

/// The kind of an address that is outside the public internet or belongs to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A loopback address of this machine.
    Loopback,
    /// Another address of this machine.
    Own,
    /// An address in a private network.
    Private,
    /// A link-local address.
    Link,
    /// The metadata service of a cloud.
    Metadata,
    /// An address in a range that is not part of the public internet: multicast, reserved, or for benchmarks.
    Nowhere,
}

impl Special {
    /// Returns a description that can follow "which is".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Loopback => "this machine itself (loopback)",
            Self::Own => "one of this machine's own addresses",
            Self::Private => "in a private network",
            Self::Link => "on the local link",
            Self::Metadata => "the metadata service of a cloud, which hands out credentials",
            Self::Nowhere => "in a range that is no place on the internet",
        }
    }
}
