//! Search results in the exact format of pi's own tools, which the model knows.
//!
//! Pure functions from results to text, with the differences between the two release lines of pi.

mod find;
mod grep;
mod number;
mod output;

pub(super) use find::{FindText, USUAL_LIMIT as USUAL_NAMES};
pub(super) use grep::{GrepText, USUAL_LIMIT as USUAL_MATCHES};
pub(super) use number::{at_least_one, positive};

use portcullis_rpc::FileSearchResponse;

/// Returns the result of a failed tool.
pub(super) fn failed(text: impl Into<String>) -> FileSearchResponse {
    FileSearchResponse { text: text.into(), failed: true, details: None }
}
