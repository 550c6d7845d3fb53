//! The answers to the questions of one request, and the verdict that they make together.

use portcullis_sdk::{Action, Evaluation, GrantOption, GrantScope, Request};

/// The effect of an answer, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Allowed.
    Allow,
    /// The user is asked.
    Ask,
    /// Denied.
    Deny,
}

/// The answer of a text to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The effect.
    pub effect: Effect,
    /// The id of the rule.
    pub rule: String,
    /// One sentence for the user.
    pub reason: String,
    /// For the model: what to do instead of a denied action.
    pub hint: Option<String>,
}

/// Returns the verdict on a request from the answers to all of its questions; `None` is no opinion.
///
/// `deny` beats `ask`. It is `allow` only if each question is allowed: one allowed command does not make a script
/// allowed. A command outside the sandbox is never allowed, since a text that permits all actions hardly means that.
pub fn combine(request: &Request, answers: Vec<Option<Answer>>) -> Evaluation {
    let every = !answers.is_empty() && answers.iter().all(Option::is_some);
    // The first of the strictest answers.
    let strictest = answers.into_iter().flatten().reduce(
        |best, next| {
            if next.effect > best.effect { next } else { best }
        },
    );
    let Some(Answer { effect, rule, reason, hint }) = strictest else { return Evaluation::abstain() };
    match effect {
        Effect::Deny => {
            let denial = Evaluation::deny(rule, reason);
            match hint {
                Some(hint) => denial.hint(hint),
                None => denial,
            }
        }
        Effect::Ask => {
            let question = Evaluation::ask(rule, reason.clone(), reason);
            question
                .offer(GrantOption::exact("Once", GrantScope::Once))
                .offer(GrantOption::exact("For this session", GrantScope::Session))
        }
        Effect::Allow if every && !matches!(request.action, Action::Escalation(_)) => {
            Evaluation::allow(rule, reason)
        }
        Effect::Allow => Evaluation::abstain(),
    }
}

/// Returns the denial of a request on which a text failed.
pub fn failure(rule: &str, error: &str) -> Answer {
    let reason = format!("the policy failed: {error}");
    Answer { effect: Effect::Deny, rule: rule.to_owned(), reason, hint: None }
}

#[cfg(test)]
mod tests {
    use portcullis_sdk::{Verdict, testing};

    use super::*;

    fn answer(effect: Effect, rule: &str) -> Option<Answer> {
        Some(Answer { effect, rule: rule.into(), reason: "because".into(), hint: None })
    }

    #[test]
    fn the_strictest_answer_counts() {
        let context = testing::context("/srv/app");
        let request = testing::command(&context, "ls");
        let rule = |answers| combine(&request, answers).cause.rule;
        let (allow, ask, deny) =
            (answer(Effect::Allow, "a"), answer(Effect::Ask, "b"), answer(Effect::Deny, "c"));
        assert_eq!(
            rule(vec![allow.clone(), deny.clone(), ask.clone(), answer(Effect::Deny, "d"), None]),
            "c"
        );
        assert_eq!(rule(vec![allow.clone(), None, ask]), "b");
        assert_eq!(rule(vec![allow.clone(), allow.clone()]), "a");
        assert_eq!(rule(vec![allow.clone(), None]), "", "the other command has no rule");
        assert_eq!(rule(vec![None]), "");
        assert_eq!(rule(Vec::new()), "");

        let escalation = testing::escalation(&context, "ls");
        assert_eq!(combine(&escalation, vec![allow]).verdict, Verdict::Abstain);
        assert_eq!(combine(&escalation, vec![deny]).cause.rule, "c");
    }
}
