//! What the user has agreed to on the command line.

use portcullis_packs::Approval;

use crate::args::share::Agreement;

/// Returns the approval that the arguments express.
pub(super) fn approval(agreement: &Agreement) -> Approval {
    Approval {
        capabilities: agreement.allow.iter().cloned().collect(),
        unsigned: agreement.unsigned,
        older: agreement.allow_older,
        similar: agreement.similar_name,
    }
}
