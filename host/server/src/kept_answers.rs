//! Descriptions of answers that are stored in settings files.

use std::path::Path;

use portcullis_settings::KeptGrant;

/// Returns which part of a revoked answer other answers still allow, as the end of a sentence; empty if none.
#[must_use]
pub fn still_allowed(revoked: &KeptGrant, left: &[KeptGrant], home: &Path) -> String {
    let still = left.iter().filter(|other| other.overlaps(revoked));
    let still: Vec<String> = still.map(|other| format!("{} ({})", spoken(other, home), other.id)).collect();
    if still.is_empty() { String::new() } else { format!("; still allowed by {}", still.join(", ")) }
}

/// Returns the permission of an answer in words, such as `reading ~/notes`.
#[must_use]
pub fn spoken(grant: &KeptGrant, home: &Path) -> String {
    grant.in_words(&home.to_string_lossy())
}
