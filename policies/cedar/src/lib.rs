//! Policies in Cedar, from a text in the configuration.
//!
//! `permit` allows, `forbid` denies, and `@effect("ask") forbid` asks the user. A request that no policy of the text
//! matches is for others to decide. Cedar's validator checks the text against `portcullis.cedarschema` when it is
//! loaded, so a wrong name is an error there and not a rule that never matches.

mod annotations;
mod entities;
mod errors;
mod text;

use portcullis_sdk::{ActionKinds, ConfigError, Context, Descriptor, Evaluation, Policy, Request};
use portcullis_text_policy::{RULES_OF_TEXT, TextConfig, combine, questions, shortened};

use text::Text;

/// The rule of a text that failed.
const FAILED: &str = "cedar.failed";

/// The policy, configured.
#[derive(Debug)]
pub struct Cedar {
    text: Text,
}

impl Policy for Cedar {
    type Config = TextConfig;

    fn describe() -> Descriptor {
        Descriptor::new("portcullis:cedar", env!("CARGO_PKG_VERSION"), "Policies in Cedar, from a file")
            .rule(RULES_OF_TEXT, "a policy of the text: its `@id`, or its line")
            .rule(FAILED, "a policy of the text failed")
            .handles(
                ActionKinds::FILE
                    | ActionKinds::COMMAND
                    | ActionKinds::NETWORK
                    | ActionKinds::TOOL
                    | ActionKinds::ESCALATION,
            )
            .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: TextConfig) -> Result<Self, Vec<ConfigError>> {
        Text::read(&config).map(|text| Self { text })
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Evaluation {
        let mut trace = Vec::new();
        let answer = |question| self.text.answer(&question, context.explain.then_some(&mut trace));
        let answers = questions(request, context).map(answer).collect();
        Evaluation { trace: shortened(trace), ..combine(request, answers) }
    }
}

portcullis_sdk::export_policy!(Cedar);

#[cfg(test)]
mod tests;
