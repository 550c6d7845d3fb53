//! The steps of an explanation.

use portcullis_sdk::TraceStep;

use crate::question::Question;

/// The most steps of an explanation; the contract allows 1,000.
const MOST_STEPS: usize = 900;
/// The most characters of a resource in a step.
const SHOWN: usize = 80;

/// Returns the step of a rule that was evaluated for a question.
pub fn step(question: &Question, rule: &str, matched: bool) -> TraceStep {
    let resource: String = question.resource.id.chars().take(SHOWN).collect();
    TraceStep { rule: rule.to_owned(), matched, detail: format!("{} {resource}", question.action) }
}

/// Leaves an explanation the most important steps: those of rules that match.
pub fn shortened(mut steps: Vec<TraceStep>) -> Vec<TraceStep> {
    if steps.len() > MOST_STEPS {
        steps.sort_by_key(|step| !step.matched);
        steps.truncate(MOST_STEPS);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_steps_are_kept() {
        let step = |matched| TraceStep { rule: "a".into(), matched, detail: String::new() };
        let mut steps = vec![step(false); MOST_STEPS];
        steps.push(step(true));
        let short = shortened(steps);
        assert!(short.len() == MOST_STEPS && short.first().is_some_and(|step| step.matched));
    }
}
