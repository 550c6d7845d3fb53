//! What addresses are that are no place on the internet.

/// What an address is that is no place on the internet, or is this machine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// This machine, by its loopback.
    Loopback,
    /// This machine, by another address that it has.
    Own,
    /// A machine in a private network.
    Private,
    /// A machine on the same link.
    Link,
    /// The metadata service of a cloud.
    Metadata,
    /// Nothing that a program connects to on the internet.
    Nowhere,
}

impl Special {
    /// Says what it is, so that it can follow "which is".
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
