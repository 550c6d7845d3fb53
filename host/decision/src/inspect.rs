//! Inspection of tool output before the model sees it.

use crate::chain::{Chain, fail_closed};
use crate::context::Context;
use crate::decision::Mode;
use crate::policy::PolicyError;
use crate::verdict::{Cause, ContentBlock, OutputVerdict, ToolOutput};

/// The result of inspecting a tool's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// It goes to the model unchanged.
    Pass,
    /// This goes to the model instead.
    Replace {
        /// The policy that requires it.
        policy: String,
        /// The rule and the reason.
        cause: Cause,
        /// The blocks.
        content: Vec<ContentBlock>,
    },
    /// The model sees only the cause.
    Withhold {
        /// The policy that requires it.
        policy: String,
        /// The rule and the reason.
        cause: Cause,
    },
}

impl Chain {
    /// Shows `output` to every policy. Withholding beats replacing; two different replacements withhold, and so does a
    /// policy that fails. A policy that can only tighten cannot replace: its replacement withholds.
    #[must_use]
    pub fn inspect(&self, output: &ToolOutput, context: &Context) -> Inspection {
        let mut result = Inspection::Pass;
        for member in self.members.iter().filter(|member| member.mode != Mode::Observe) {
            let name = member.policy.name();
            let next = match member.policy.inspect(output, context) {
                Ok(None) => continue,
                Ok(Some(answer)) => match answer.verdict {
                    OutputVerdict::Abstain | OutputVerdict::Pass => continue,
                    OutputVerdict::Replace(_) if member.mode == Mode::Tighten => {
                        Inspection::Withhold { policy: name.to_owned(), cause: answer.cause }
                    }
                    OutputVerdict::Replace(content) if is_like(&content, &output.content) => {
                        Inspection::Replace { policy: name.to_owned(), cause: answer.cause, content }
                    }
                    OutputVerdict::Replace(_) => {
                        let detail = "a replacement has other blocks than the output".to_owned();
                        let cause = fail_closed(name, &PolicyError::BadAnswer { detail }).cause;
                        Inspection::Withhold { policy: name.to_owned(), cause }
                    }
                    OutputVerdict::Withhold => {
                        Inspection::Withhold { policy: name.to_owned(), cause: answer.cause }
                    }
                },
                Err(error) => {
                    Inspection::Withhold { policy: name.to_owned(), cause: fail_closed(name, &error).cause }
                }
            };
            result = stricter(result, next);
        }
        result
    }
}

/// Returns true if a replacement has the same number and kinds of blocks, and no new image.
#[must_use]
pub fn is_like(new: &[ContentBlock], old: &[ContentBlock]) -> bool {
    let same = |(new, old): (&ContentBlock, &ContentBlock)| match (new, old) {
        (ContentBlock::Text(_), ContentBlock::Text(_)) | (ContentBlock::Other(_), ContentBlock::Other(_)) => {
            true
        }
        (ContentBlock::Image(..), ContentBlock::Image(..)) => new == old,
        (ContentBlock::Text(_) | ContentBlock::Image(..) | ContentBlock::Other(_), _) => false,
    };
    new.len() == old.len() && new.iter().zip(old).all(same)
}

fn stricter(known: Inspection, next: Inspection) -> Inspection {
    match (known, next) {
        (known @ Inspection::Withhold { .. }, _) => known,
        (_, next @ Inspection::Withhold { .. }) => next,
        (Inspection::Pass, next) => next,
        (known, Inspection::Pass) => known,
        (
            Inspection::Replace { policy, cause, content },
            Inspection::Replace { policy: other, content: different, .. },
        ) => {
            if content == different {
                return Inspection::Replace { policy, cause, content };
            }
            let reason = format!("policies `{policy}` and `{other}` want different things in its place");
            let cause = Cause { rule: "host.replacements-differ".to_owned(), reason, ..Cause::default() };
            Inspection::Withhold { policy: "host".to_owned(), cause }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chain::Member;
    use crate::policy::Policy;
    use crate::profile::Profile;
    use crate::request::{Action, ActionKinds, Origin, Request, ToolCall};
    use crate::verdict::{Evaluation, OutputEvaluation};

    struct Filter(&'static str, Option<Result<OutputVerdict, PolicyError>>);

    impl Policy for Filter {
        fn name(&self) -> &str {
            self.0
        }
        fn digest(&self) -> &str {
            ""
        }
        fn handles(&self) -> ActionKinds {
            ActionKinds::default()
        }
        fn evaluate(&self, _: &Request, _: &Context) -> Result<Evaluation, PolicyError> {
            unreachable!("handles nothing")
        }
        fn standing(&self, _: &Context) -> Result<Option<Profile>, PolicyError> {
            Ok(None)
        }
        fn for_command(&self, _: &Request, _: &Context) -> Result<Option<Profile>, PolicyError> {
            Ok(None)
        }
        fn inspect(&self, _: &ToolOutput, _: &Context) -> Result<Option<OutputEvaluation>, PolicyError> {
            let answer = |verdict| OutputEvaluation { verdict, cause: Cause::default() };
            self.1.clone().map(|verdict| verdict.map(answer)).transpose()
        }
        fn brief(&self, _: &Context) -> Result<String, PolicyError> {
            Ok(String::new())
        }
    }

    fn replace(text: &str) -> Option<Result<OutputVerdict, PolicyError>> {
        Some(Ok(OutputVerdict::Replace(vec![ContentBlock::Text(text.to_owned())])))
    }

    fn inspect(filters: Vec<Filter>) -> Inspection {
        let member = |filter| Member { policy: Arc::new(filter) as _, mode: Mode::Enforce };
        let chain = Chain { members: filters.into_iter().map(member).collect(), ..Chain::default() };
        let call = ToolCall { name: "x".into(), provider: "mcp:x".into(), input: "{}".into() };
        let request = Request {
            id: "1".into(),
            parent: None,
            origin: Origin::Agent,
            action: Action::Tool(call),
            facts: vec![],
        };
        let output = ToolOutput {
            request,
            is_error: false,
            truncated: false,
            content: vec![ContentBlock::Text("hunter2".into())],
        };
        let context = Context { session_id: "s".into(), ..Context::default() };
        chain.inspect(&output, &context)
    }

    fn who(inspection: &Inspection) -> (&str, &str) {
        match inspection {
            Inspection::Pass => ("pass", ""),
            Inspection::Replace { policy, .. } => ("replace", policy),
            Inspection::Withhold { policy, .. } => ("withhold", policy),
        }
    }

    #[test]
    fn the_strictest_answer_counts() {
        let crash = || Some(Err(PolicyError::TimeLimit { limit_ms: 1 }));
        let two = vec![ContentBlock::Text("***".into()), ContentBlock::Text("more".into())];
        let table: [(Vec<Filter>, (&str, &str)); 8] = [
            (vec![Filter("a", Some(Ok(OutputVerdict::Replace(two))))], ("withhold", "a")),
            (vec![], ("pass", "")),
            (vec![Filter("a", None), Filter("b", Some(Ok(OutputVerdict::Pass)))], ("pass", "")),
            (vec![Filter("a", replace("***")), Filter("b", None)], ("replace", "a")),
            (vec![Filter("a", replace("***")), Filter("b", replace("***"))], ("replace", "a")),
            (vec![Filter("a", replace("***")), Filter("b", replace("---"))], ("withhold", "host")),
            (
                vec![Filter("a", replace("***")), Filter("b", Some(Ok(OutputVerdict::Withhold)))],
                ("withhold", "b"),
            ),
            (vec![Filter("a", Some(Ok(OutputVerdict::Pass))), Filter("b", crash())], ("withhold", "b")),
        ];
        for (filters, expected) in table {
            assert_eq!(who(&inspect(filters)), expected);
        }
    }
}
