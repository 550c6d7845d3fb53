//! Operations of commands on names, as questions and reports describe them.

use std::ffi::OsString;
use std::path::PathBuf;

/// The kind of access of a waiting call to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameAccess {
    /// Reads a file.
    Read,
    /// Creates or changes a file.
    Write,
    /// Creates a directory.
    MakeDirectory,
    /// Removes the name.
    Remove,
}

/// Details of a waiting call beyond its [`NameAccess`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallDetails {
    /// Nothing else.
    Plain,
    /// The name becomes a symbolic link with this target.
    Symlink(OsString),
    /// The name becomes a hard link to the file with this name.
    LinkOf(PathBuf),
    /// The file gets this name as a hard link.
    LinkTo(PathBuf),
    /// The file or directory with this name is renamed to the call's name.
    MoveOf(PathBuf),
    /// The call's name is renamed to this one.
    MoveTo(PathBuf),
    /// The name becomes a pipe, a socket or a device.
    Special,
}
