//! Directories of version control systems other than git.

use std::ffi::OsStr;
use std::path::Path;

use crate::change::{Change, Class};
use crate::rules::TOOL_FILES;

/// Directories of version control systems other than git.
const SYSTEMS: [&str; 6] = [".bzr", ".hg", ".jj", ".pijul", ".sl", ".svn"];

/// Classifies changes in directories of other version control systems, which protect their own links as git does.
/// Mercurial's locks are dangling links, and it creates others to test for support of links.
pub(crate) fn class(path: &Path, change: Change) -> Class {
    let is_system = |name: &OsStr| SYSTEMS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let is_inside = || path.iter().rev().skip(1).any(is_system);
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // As a file it leads to the repository, whose settings then apply.
    let is_pointer = || {
        let holder = path.parent().and_then(Path::file_name).unwrap_or_default();
        name.eq_ignore_ascii_case(b"repo") && holder.eq_ignore_ascii_case(".jj")
    };
    let is_own = || name == b"lock" || name == b"wlock" || name.starts_with(b"checklink");
    let class = if change == Change::Symlink && !is_own() {
        Class::Asked(&TOOL_FILES)
    } else if change == Change::Special {
        Class::Denied(&TOOL_FILES)
    } else if change == Change::MoveTree {
        Class::Walk
    } else if matches!(change, Change::Write | Change::Install) && is_pointer() {
        Class::Asked(&TOOL_FILES)
    } else {
        return Class::Free;
    };
    if is_inside() { class } else { Class::Free }
}
