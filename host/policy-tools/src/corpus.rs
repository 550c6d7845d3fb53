//! Compares the answers of two policies to the same requests.

use portcullis_decision::request::Request;
use portcullis_decision::verdict::Effect;
use portcullis_decision::{Context, Policy};
use portcullis_sdk::cases::{self, CasesError};
use serde::Serialize;

use crate::question;
use crate::run::effect_of;

/// One request of a corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The source: a case, or a line of a log.
    pub name: String,
    /// The request.
    pub request: Request,
    /// The context of the request.
    pub context: Context,
}

/// The answer of a policy to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyAnswer {
    /// `allow`, `ask`, `deny`, `abstain` or `failed`.
    pub verdict: String,
    /// The id of the rule.
    pub rule: String,
    /// The reason, or the error.
    pub reason: String,
}

/// A request to which two policies give different verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The source of the request.
    pub name: String,
    /// The answer of the old policy.
    pub old: PolicyAnswer,
    /// The answer of the new policy.
    pub new: PolicyAnswer,
    /// True if the new answer is less strict, so that a denied action may become possible.
    pub loosens: bool,
}

impl Change {
    /// Returns the difference between two answers; `None` if the verdicts are the same.
    #[must_use]
    pub fn between(name: String, old: PolicyAnswer, new: PolicyAnswer) -> Option<Self> {
        let loosens = new.strength() < old.strength();
        (old.verdict != new.verdict).then_some(Self { name, old, new, loosens })
    }
}

impl PolicyAnswer {
    /// Creates an answer from its texts.
    #[must_use]
    pub fn new(verdict: &str, rule: &str, reason: &str) -> Self {
        Self { verdict: verdict.to_owned(), rule: rule.to_owned(), reason: reason.to_owned() }
    }

    /// Returns the strictness of the answer; an abstention counts as `ask`, its effect.
    fn strength(&self) -> Effect {
        match self.verdict.as_str() {
            "allow" => Effect::Allow,
            "ask" | "abstain" => Effect::Ask,
            _ => Effect::Deny,
        }
    }
}

/// Returns the requests in a file of cases.
///
/// # Errors
/// If it is not a valid file of cases.
pub fn of_cases(file: &str, text: &str) -> Result<Vec<Item>, CasesError> {
    let items = cases::read(text)?.into_iter().filter_map(|case| {
        let context = question::context(&case.given);
        let request = question::request(&case, &context).ok()??;
        Some(Item { name: format!("{file}: {}", case.name), request, context })
    });
    Ok(items.collect())
}

/// Returns the answer of a policy to a request.
#[must_use]
pub fn say(policy: &dyn Policy, item: &Item) -> PolicyAnswer {
    if !policy.handles().includes(&item.request.action) {
        return PolicyAnswer::new("abstain", "", "");
    }
    match policy.evaluate(&item.request, &item.context) {
        Ok(evaluation) => PolicyAnswer::new(
            effect_of(&evaluation.verdict),
            &evaluation.cause.rule,
            &evaluation.cause.reason,
        ),
        Err(error) => PolicyAnswer::new("failed", "", &error.to_string()),
    }
}

/// Returns the requests to which two policies give different verdicts, in the order of the corpus.
pub fn changes<'a>(
    old: &'a dyn Policy,
    new: &'a dyn Policy,
    corpus: &'a [Item],
) -> impl Iterator<Item = Change> + 'a {
    corpus.iter().filter_map(move |item| Change::between(item.name.clone(), say(old, item), say(new, item)))
}
