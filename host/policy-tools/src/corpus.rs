//! Requests, and the different answers of two policies to them.

use portcullis_decision::Context;
use portcullis_decision::request::Request;
use portcullis_decision::verdict::Effect;
use portcullis_sdk::cases::{self, CasesError};
use serde::Serialize;

use crate::contribution::Beside;
use crate::question;

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
    /// `allow`, `ask`, `deny`, `abstain` or `failed`; for outputs and limits, their own words.
    pub verdict: String,
    /// The id of the rule.
    pub rule: String,
    /// The reason, or the error.
    pub reason: String,
}

/// A request to which two policies give different answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The source of the request, or the request itself.
    pub name: String,
    /// The answer of the old policy.
    pub old: PolicyAnswer,
    /// The answer of the new policy.
    pub new: PolicyAnswer,
    /// True if the new answer can make a decision less strict.
    pub loosens: bool,
    /// The other policies with which the decision becomes less strict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
}

impl Change {
    /// Returns the difference between two decisions; `None` if the effects are the same.
    #[must_use]
    pub fn between(name: String, old: PolicyAnswer, new: PolicyAnswer) -> Option<Self> {
        let loosens = new.strength() < old.strength();
        (old.verdict != new.verdict).then_some(Self { name, old, new, loosens, beside: None })
    }
}

impl PolicyAnswer {
    /// Creates an answer from its texts.
    #[must_use]
    pub fn new(verdict: &str, rule: &str, reason: &str) -> Self {
        Self { verdict: verdict.to_owned(), rule: rule.to_owned(), reason: reason.to_owned() }
    }

    /// Returns the strictness of a decision.
    fn strength(&self) -> Effect {
        match self.verdict.as_str() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            _ => Effect::Deny,
        }
    }
}

/// Returns the requests in a file of cases. A case on a standing rule counts as a request of a tool or a connection.
///
/// # Errors
/// If it is not a valid file of cases.
pub fn of_cases(file: &str, text: &str) -> Result<Vec<Item>, CasesError> {
    let items = cases::read(text)?.into_iter().filter_map(|case| {
        let context = question::context(&case.given);
        let request = question::concerned(&case, &context).ok()??;
        Some(Item { name: format!("{file}: {}", case.name), request, context })
    });
    Ok(items.collect())
}
