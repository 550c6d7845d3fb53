//! Git hooks of the user that are symbolic links: git executes their targets as well.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskEntry};

/// One sentence for the user.
pub(crate) const REASON: &str = "your own git runs it as a hook";

/// The hooks that git runs, see githooks(5).
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Returns the hooks in `directory` that are links.
pub(crate) fn links<'a>(directory: &'a Path, disk: &'a dyn Disk) -> impl Iterator<Item = PathBuf> + 'a {
    let is_link = |hook: &PathBuf| matches!(disk.look(hook), Ok(DiskEntry::Link(_)));
    HOOKS.iter().map(|name| directory.join(name)).filter(is_link)
}
