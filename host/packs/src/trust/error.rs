//! Faults in a trust file.

use crate::key::KeyError;

/// The reason why a trust file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TrustError {
    /// The file is not valid TOML or has the wrong structure.
    #[error("it cannot be read")]
    Shape(#[source] Box<toml::de::Error>),
    /// The file is too long.
    #[error("it is longer than 1 MiB")]
    TooLong,
    /// A key is invalid.
    #[error("the key `{text}`")]
    Key {
        text: String,
        #[source]
        source: KeyError,
    },
    /// A line of an `allowed_signers` file is invalid.
    #[error("line {line} of the file of signers: {reason}")]
    Signers { line: usize, reason: String },
    /// An `allowed_signers` file cannot be read.
    #[error("reading the file of signers `{name}`")]
    Read {
        name: String,
        #[source]
        source: std::io::Error,
    },
    /// A value is invalid.
    #[error("{0}")]
    Value(String),
}
