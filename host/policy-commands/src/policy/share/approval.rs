//! What the user has agreed to on the command line.

use portcullis_command_line::args::share::Agreement;
use portcullis_packs::Approval;

/// Returns the approval that the arguments express.
pub(super) fn approval(agreement: &Agreement) -> Approval {
    Approval {
        capabilities: agreement.allow.iter().cloned().collect(),
        unsigned: agreement.unsigned,
        older: agreement.allow_older,
        similar: agreement.similar_name,
    }
}
