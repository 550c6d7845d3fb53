//! Faults in operations on a registry.

/// The reason why an operation on a registry failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RegistryError {
    /// The registry could not be reached, or the connection broke.
    #[error("asking `{host}`")]
    Transport {
        host: String,
        #[source]
        source: Box<ureq::Error>,
    },
    /// The registry answered with an error status.
    #[error("`{host}` answered {status} to {what}{said}")]
    Status { host: String, status: u16, what: String, said: String },
    /// The version is already published with other bytes.
    #[error(
        "`{0}` already exists with other bytes; a published version does not change, so use a new version"
    )]
    Taken(String),
    /// The requested item does not exist.
    #[error("{0} is not there")]
    Missing(String),
    /// The answer is too large.
    #[error("`{host}` sent more than {max} bytes for {what}")]
    TooLarge { host: String, what: String, max: u64 },
    /// The digest of the content differs from the requested one.
    #[error("the download of `{wanted}` has the digest `{found}`")]
    Digest { wanted: String, found: String },
    /// An answer cannot be parsed.
    #[error("the answer of `{host}` for {what} cannot be read")]
    Answer {
        host: String,
        what: String,
        #[source]
        source: serde_json::Error,
    },
    /// A paged list is invalid.
    #[error("`{host}` gives {what} in pages, and the next one {reason}")]
    Pages { host: String, what: String, reason: &'static str },
    /// A manifest cannot be read.
    #[error("its manifest cannot be read")]
    Manifest(#[source] serde_json::Error),
    /// The artifact is not a policy.
    #[error("it is no policy: {0}")]
    Shape(String),
    /// The artifact has other parts than the requested ones.
    #[error("`{tag}` has the parts `{found}`, so it is something else")]
    Parts { tag: String, found: String },
    /// The signatures cannot be read.
    #[error("its signatures")]
    Signatures(#[source] crate::signature::SignatureError),
    /// The registry asks for credentials at an unsafe address.
    #[error("`{host}` sends its clients to `{realm}` for a token, which is not safe; nothing was sent there")]
    Realm { host: String, realm: String },
    /// The credentials for the registry are not available.
    #[error("finding the credentials for `{host}`: {reason}")]
    Credentials { host: String, reason: String },
}
