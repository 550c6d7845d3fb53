//! Comparing what two policies say to the same requests.

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
    /// Where it comes from: a case, or a line of a log.
    pub name: String,
    /// What is asked.
    pub request: Request,
    /// In which surroundings.
    pub context: Context,
}

/// What a policy says to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// `allow`, `ask`, `deny`, `abstain` or `failed`.
    pub verdict: String,
    /// The rule.
    pub rule: String,
    /// The reason, or what failed.
    pub reason: String,
}

/// A request to which two policies say something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where the request comes from.
    pub name: String,
    /// What the one says.
    pub old: Said,
    /// What the other says.
    pub new: Said,
    /// Whether the new answer is milder, so that something may now go ahead that did not.
    pub loosens: bool,
}

impl Change {
    /// The difference between two answers; none where there is none.
    #[must_use]
    pub fn between(name: String, old: Said, new: Said) -> Option<Self> {
        let loosens = new.strength() < old.strength();
        (old.verdict != new.verdict).then_some(Self { name, old, new, loosens })
    }
}

impl Said {
    /// An answer that was written down.
    #[must_use]
    pub fn new(verdict: &str, rule: &str, reason: &str) -> Self {
        Self { verdict: verdict.to_owned(), rule: rule.to_owned(), reason: reason.to_owned() }
    }

    /// How strict it is; abstaining counts as the `ask` that comes of it.
    fn strength(&self) -> Effect {
        match self.verdict.as_str() {
            "allow" => Effect::Allow,
            "ask" | "abstain" => Effect::Ask,
            _ => Effect::Deny,
        }
    }
}

/// The requests of a file of cases.
///
/// # Errors
/// When it is no file of cases.
pub fn of_cases(file: &str, text: &str) -> Result<Vec<Item>, CasesError> {
    let items = cases::read(text)?.into_iter().filter_map(|case| {
        let context = question::context(&case.given);
        let request = question::request(&case, &context).ok()??;
        Some(Item { name: format!("{file}: {}", case.name), request, context })
    });
    Ok(items.collect())
}

/// Asks a policy.
#[must_use]
pub fn say(policy: &dyn Policy, item: &Item) -> Said {
    if !policy.handles().includes(&item.request.action) {
        return Said::new("abstain", "", "");
    }
    match policy.evaluate(&item.request, &item.context) {
        Ok(evaluation) => {
            Said::new(effect_of(&evaluation.verdict), &evaluation.cause.rule, &evaluation.cause.reason)
        }
        Err(error) => Said::new("failed", "", &error.to_string()),
    }
}

/// The requests to which two policies say something else, in their order.
pub fn changes<'a>(
    old: &'a dyn Policy,
    new: &'a dyn Policy,
    corpus: &'a [Item],
) -> impl Iterator<Item = Change> + 'a {
    corpus.iter().filter_map(move |item| Change::between(item.name.clone(), say(old, item), say(new, item)))
}
