//! Puts one question to one policy.

use portcullis_decision::verdict::{Cause, Evaluation, Verdict};
use portcullis_decision::{Context, Policy};
use portcullis_sdk::cases::{Case, Expected, Given, Question};

use crate::question;

/// Asks a policy, with the request to explain its answer.
///
/// The result is an abstention if the policy does not handle such requests.
///
/// # Errors
/// If the question cannot be put, or the policy fails; the text says which.
pub fn ask(policy: &dyn Policy, question: Question, context: &Context) -> Result<Evaluation, String> {
    let expected = Expected::Refused(Vec::new());
    let case = Case { name: String::new(), given: Given::plain(), question, expected };
    let context = Context { explain: true, ..context.clone() };
    let request = question::request(&case, &context)?.ok_or("this is no question about one request")?;
    if !policy.handles().includes(&request.action) {
        return Ok(Evaluation { verdict: Verdict::Abstain, cause: Cause::default(), trace: Vec::new() });
    }
    policy.evaluate(&request, &context).map_err(|error| format!("the policy {error}"))
}
