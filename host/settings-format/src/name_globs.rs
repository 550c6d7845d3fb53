//! Names in `denyWrite` of the layered layout, which match at any depth.

use crate::entry::{Entry, PathEntry};

/// Turns names in `denyWrite` into globs that match at any depth, as this layout defines them.
///
/// A text with a `/` is a path, as elsewhere.
pub fn names_at_every_depth(entries: &mut [Entry<PathEntry>]) {
    for entry in entries {
        if is_name(&entry.value) {
            entry.value.text = format!("/**/{}", entry.value.text);
        }
    }
}

fn is_name(path: &PathEntry) -> bool {
    !path.literal && !path.text.contains('/') && ![".", "..", "~"].contains(&path.text.as_str())
}
