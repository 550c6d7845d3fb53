//! Registries: what is pushed and pulled, and how.

pub(crate) mod artifact;
mod client;
mod credentials;
mod exchange;
#[cfg(test)]
mod lies;
mod proof;
mod reference;

pub use client::{Registry, Transfer};
pub use credentials::Credentials;
pub use reference::{Reference, ReferenceError, tag_of, version_of};

/// Why a registry did not give or take something.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It could not be reached, or broke off.
    #[error("asking `{host}`")]
    Transport {
        /// The registry.
        host: String,
        /// What went wrong.
        #[source]
        source: Box<ureq::Error>,
    },
    /// It said no.
    #[error("`{host}` answered {status} to {what}{said}")]
    Status {
        /// The registry.
        host: String,
        /// Status of HTTP.
        status: u16,
        /// What was wanted.
        what: String,
        /// What it said, after a colon; empty: nothing.
        said: String,
    },
    /// A version is there already, with other bytes.
    #[error(
        "`{0}` is there already, with other bytes; what is published stays as it is, so take a new version"
    )]
    Taken(String),
    /// There is no such thing.
    #[error("{0} is not there")]
    Missing(String),
    /// The answer is larger than it may be.
    #[error("`{host}` sent more than {max} bytes for {what}")]
    TooLarge {
        /// The registry.
        host: String,
        /// What was wanted.
        what: String,
        /// The limit.
        max: u64,
    },
    /// The answer is not what was asked for.
    #[error("what came for `{wanted}` has the digest `{found}`")]
    Digest {
        /// What was asked for.
        wanted: String,
        /// What came.
        found: String,
    },
    /// An answer cannot be read.
    #[error("what `{host}` sent for {what} cannot be read")]
    Answer {
        /// The registry.
        host: String,
        /// What was wanted.
        what: String,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// A list does not come to its end.
    #[error("`{host}` gives {what} in pages, and the next one {reason}")]
    Pages {
        /// The registry.
        host: String,
        /// What was wanted.
        what: String,
        /// What is wrong with the next page.
        reason: &'static str,
    },
    /// A manifest cannot be read.
    #[error("its manifest cannot be read")]
    Manifest(#[source] serde_json::Error),
    /// It is something else than a policy.
    #[error("it is no policy: {0}")]
    Shape(String),
    /// Signatures cannot be read.
    #[error("its signatures")]
    Signatures(#[source] crate::signature::SignatureError),
    /// It wants to see credentials in a place where they do not belong.
    #[error("`{host}` sends its clients to `{realm}` for a token, which is not safe; nothing was sent there")]
    Realm {
        /// The registry.
        host: String,
        /// Where it sends them.
        realm: String,
    },
    /// The credentials for it cannot be had.
    #[error("finding the credentials for `{host}`: {reason}")]
    Credentials {
        /// The registry.
        host: String,
        /// Why.
        reason: String,
    },
}
