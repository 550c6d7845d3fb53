//! The digest that identifies a component.

use std::fmt;

use sha2::digest::Output;
use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of a component. Displayed as lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComponentDigest(Output<Sha256>);

impl ComponentDigest {
    pub(crate) fn compute(component: &[u8]) -> Self {
        Self(Sha256::digest(component))
    }
}

impl AsRef<[u8]> for ComponentDigest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, formatter)
    }
}
