//! Cases made of the verdicts of a policy in a log.

use std::path::Path;

use anyhow::Context as _;
use portcullis_audit::PolicyLine;
use portcullis_bootstrap::streams::say;
use portcullis_text::counted;

use crate::case_writer::{case, given};
use crate::logged;
use crate::project::component::Component;

/// Returns the logged verdicts of a policy as a file of cases.
///
/// # Errors
/// If the log or the configuration cannot be read.
pub fn cases_of_log(component: &Component, log: &Path, config: &str) -> anyhow::Result<String> {
    let configuration = serde_json::from_str(config).context("reading `--config`")?;
    let (name, digest) = (component.name(), portcullis_packs::digest(&component.bytes));
    let mut text = given(&configuration);
    let mut left_out = 0_usize;
    for logged in logged::read(log)? {
        let is_its = |vote: &&PolicyLine| vote.digest == digest || vote.name == name;
        let Some(vote) = logged.votes.iter().find(is_its) else { continue };
        let written = match (&logged.context, logged.lacks(), vote.verdict.as_str()) {
            // A failure is no useful expectation.
            (_, _, "failed") | (_, Some(_), _) | (None, _, _) => None,
            (Some(context), None, verdict) => {
                case(&logged.name, &logged.request, context, verdict, &vote.rule)
            }
        };
        match written {
            Some(written) => text += &written,
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        say(&format!(
            "left out, as they have no form as a case or are not whole: {}",
            counted(left_out, "decision")
        ));
    }
    Ok(text)
}
