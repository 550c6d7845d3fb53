//! Why a request or a body ended early.

use portcullis_decision::ConnectionRefusal;

/// The reason why a body ended early.
#[derive(Debug)]
pub(crate) struct Broken(pub(super) String);

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// Why a request got no answer of the server.
#[derive(Debug)]
pub(crate) enum Unanswered {
    Refused(ConnectionRefusal),
    /// Its body was refused, which is noted already.
    Stopped(ConnectionRefusal),
    Unreachable(String),
    /// The server has not taken it, so it can be made again on another connection.
    NotTaken(String),
    /// The client has gone.
    Abandoned,
}
