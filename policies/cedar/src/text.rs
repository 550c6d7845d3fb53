//! A text of policies, read and validated.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{Authorizer, Entities, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use portcullis_sdk::{ConfigError, TraceStep};
use portcullis_text_policy::{Answer, Place, Question, TextConfig, failure, step};

use crate::{FAILED, annotations, entities, errors};

const SCHEMA: &str = include_str!("../portcullis.cedarschema");

/// The policies of a text.
#[derive(Debug)]
pub(crate) struct Text {
    policies: PolicySet,
    /// What each policy answers.
    answers: BTreeMap<PolicyId, Answer>,
    /// The actions of the schema with their groups.
    actions: Entities,
}

impl Text {
    /// Reads a text and checks it against the schema.
    pub(crate) fn read(config: &TextConfig) -> Result<Self, Vec<ConfigError>> {
        if !config.data.is_empty() {
            return Err(vec![ConfigError::new("/data", "Cedar has no data; write the values into the text")]);
        }
        let schema: Schema = SCHEMA.parse().map_err(|error| vec![own_fault(&error)])?;
        let policies: PolicySet =
            config.policy_text.parse().map_err(|error| errors::syntax(config, &error))?;
        if let Some(template) = policies.templates().next() {
            let place = template.as_ref().loc().map_or(0, |loc| loc.start());
            let place = Place::of_offset(&config.policy_text, place);
            let message = "a template has no values here";
            return Err(vec![config.error_at(place, message, Some("write the entity in place of `?...`"))]);
        }
        let actions = schema.action_entities().map_err(|error| vec![own_fault(&error)])?;
        let answers = answers(config, &policies)?;
        let result = Validator::new(schema).validate(&policies, ValidationMode::default());
        match errors::validation(config, &result) {
            faults if faults.is_empty() => Ok(Self { policies, answers, actions }),
            faults => Err(faults),
        }
    }

    /// Returns the answer to a question; `None` if no policy matches.
    pub(crate) fn answer(&self, question: &Question, trace: Option<&mut Vec<TraceStep>>) -> Option<Answer> {
        let (request, entities) = match entities::request(question, &self.actions) {
            Ok(request) => request,
            Err(error) => return Some(failure(FAILED, &error.to_string())),
        };
        let response = Authorizer::new().is_authorized(&request, &self.policies, &entities);
        // Cedar ignores a policy that fails. Here it denies: it may have been a `forbid`.
        if let Some(error) = response.diagnostics().errors().next() {
            return Some(failure(FAILED, &error.to_string()));
        }
        let matching: BTreeSet<&PolicyId> = response.diagnostics().reason().collect();
        if let Some(trace) = trace {
            let one =
                |(id, answer): (&PolicyId, &Answer)| step(question, &answer.rule, matching.contains(id));
            trace.extend(self.answers.iter().map(one));
        }
        let answers = self.answers.iter().filter(|(id, _)| matching.contains(id)).map(|(_, answer)| answer);
        let strictest = answers.reduce(|best, next| if precedes(next, best) { next } else { best });
        strictest.cloned()
    }
}

/// Returns true if an answer is stricter than another, or as strict with an earlier rule id.
fn precedes(next: &Answer, best: &Answer) -> bool {
    (next.effect, &best.rule) > (best.effect, &next.rule)
}

/// Returns the answer of each policy. Ids must be unique.
fn answers(
    config: &TextConfig,
    policies: &PolicySet,
) -> Result<BTreeMap<PolicyId, Answer>, Vec<ConfigError>> {
    let mut places: Vec<_> = policies
        .policies()
        .map(|policy| {
            let offset = policy.as_ref().loc().map_or(0, |loc| loc.start());
            (Place::of_offset(&config.policy_text, offset), policy)
        })
        .collect();
    places.sort_by_key(|(place, _)| *place);
    let (mut answers, mut faults) = (BTreeMap::new(), Vec::new());
    let mut rules = BTreeMap::new();
    for (place, policy) in places {
        match annotations::answer(policy, place.line) {
            Err((message, hint)) => faults.push(config.error_at(place, &message, Some(&hint))),
            Ok(answer) => {
                if let Some(first) = rules.insert(answer.rule.clone(), place) {
                    let message = format!("the rule `{}` is also in line {}", answer.rule, first.line);
                    faults.push(config.error_at(place, &message, Some("give one of them another `@id`")));
                }
                answers.insert(policy.id().clone(), answer);
            }
        }
    }
    if faults.is_empty() { Ok(answers) } else { Err(faults) }
}

fn own_fault(error: &dyn std::error::Error) -> ConfigError {
    ConfigError::new("", format!("the schema of this policy: {error}"))
}
