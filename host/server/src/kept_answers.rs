//! Descriptions of answers that are stored in settings files.

use portcullis_settings::KeptGrant;

/// Returns which part of a revoked answer other answers still allow, as the end of a sentence; empty if none.
#[must_use]
pub fn still_allowed(revoked: &KeptGrant, left: &[KeptGrant]) -> String {
    let still = left.iter().filter(|other| other.overlaps(revoked));
    let still: Vec<String> = still.map(|other| format!("{} ({})", spoken(other), other.id)).collect();
    if still.is_empty() { String::new() } else { format!("; still allowed by {}", still.join(", ")) }
}

/// Returns the list that holds an answer, and its entry.
#[must_use]
pub fn spoken(grant: &KeptGrant) -> String {
    format!("{} {}", grant.list, grant.shown())
}
