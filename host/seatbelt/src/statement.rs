//! Statements of a profile. The last one that speaks about an operation and a path counts.

use crate::filter::{Filter, quoted};

/// Operations on files that create, change, move or remove.
///
/// Others stay denied: `file-write-setugid`, `file-link` (hard links) and mounts.
pub(crate) const WRITES: &[&str] = &[
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-owner",
    "file-write-times",
    "file-write-unlink",
    "file-write-xattr",
];
/// Operations that read content, names or metadata.
pub(crate) const READS: &[&str] = &["file-read*", "file-map-executable"];
/// The operation that sees that a file is there.
pub(crate) const LOOKS: &[&str] = &["file-read-metadata"];
/// Operations that start a program.
pub(crate) const EXECUTES: &[&str] = &["process-exec*"];
/// Operations that give content to a name.
pub(crate) const CONTENT: &[&str] = &["file-write-create", "file-write-data", "file-write-unlink"];
/// Operations that make a name, or take it away.
pub(crate) const NAMES: &[&str] = &["file-write-create", "file-write-unlink"];
/// The operation that makes a name.
pub(crate) const CREATES: &[&str] = &["file-write-create"];

/// A statement with the comment above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) comment: &'static str,
    pub(crate) effect: &'static str,
    pub(crate) operations: &'static [&'static str],
    pub(crate) filter: Filter,
}

impl Statement {
    pub(crate) fn allow(comment: &'static str, operations: &'static [&'static str], filter: Filter) -> Self {
        Self { comment, effect: "allow", operations, filter }
    }

    pub(crate) fn deny(comment: &'static str, operations: &'static [&'static str], filter: Filter) -> Self {
        Self { comment, effect: "deny", operations, filter }
    }

    /// Writes the statement, unless its condition never holds.
    pub(crate) fn write(&self, text: &mut String) {
        if self.filter == Filter::NEVER {
            return;
        }
        text.push_str("\n; ");
        text.push_str(self.comment);
        text.push_str("\n(");
        text.push_str(self.effect);
        for operation in self.operations {
            text.push(' ');
            text.push_str(operation);
        }
        text.push('\n');
        // Conditions of a statement are joined by "or".
        self.filter.parts().iter().for_each(|part| part.write(text, 1));
        text.truncate(text.trim_end_matches('\n').len());
        text.push_str(")\n");
    }
}

/// Writes a statement whose condition is given as text with one string in it.
pub(crate) fn write_with(text: &mut String, before: &str, value: &str, after: &str) {
    text.push_str(before);
    text.push_str(&quoted(value));
    text.push_str(after);
}
