//! Descriptions of answers that are stored in settings files.

use portcullis_settings::KeptGrant;

/// The list of answers that the allow lists cannot hold.
const GRANTS: &str = "grants";

/// Returns which part of a revoked answer other answers still allow, as the end of a sentence; empty if none.
#[must_use]
pub fn still_allowed(revoked: &KeptGrant, left: &[KeptGrant]) -> String {
    let still = left.iter().filter(|other| other.overlaps(revoked));
    let still: Vec<String> = still.map(|other| format!("{} ({})", spoken(other), other.id)).collect();
    if still.is_empty() { String::new() } else { format!("; still allowed by {}", still.join(", ")) }
}

/// Returns the list that holds an answer, and its entry; for the list `grants` the entry says all.
#[must_use]
pub fn spoken(grant: &KeptGrant) -> String {
    if grant.list == GRANTS { grant.shown() } else { format!("{} {}", grant.list, grant.shown()) }
}
