//! The end of a path.

/// The treatment of the last name of a path that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// A link is followed.
    Followed,
    /// A link is opened itself.
    Itself,
    /// A link is followed, and must lead to a directory.
    Directory,
}
