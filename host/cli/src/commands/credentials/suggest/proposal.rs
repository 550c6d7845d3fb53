//! A proposal of an entry for a credential.

/// A proposal: where a credential was seen, and the command that adds it.
pub(super) struct Proposal {
    pub(super) name: String,
    pub(super) seen: String,
    pub(super) command: String,
    /// The host and the requests that it is for.
    pub(super) allows: String,
}
