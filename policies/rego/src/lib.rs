//! Policies in Rego, from a text in the configuration.
//!
//! The text is a package `portcullis` with the rules `deny`, `ask` and `allow`, or with one rule `decision`. A request
//! for which none of them has a value is for others to decide. Rego has no functions here that read a clock, a file or
//! the network.

mod decision;
mod errors;
mod input;
mod text;

use portcullis_sdk::{ActionKinds, ConfigError, Context, Descriptor, Evaluation, Policy, Request};
use portcullis_text_policy::{RULES_OF_TEXT, TextConfig, combine, questions, shortened};

use text::Text;

/// The rule of a text that failed, or gave a value of another form.
const FAILED: &str = "rego.failed";

/// The policy, configured.
#[derive(Debug)]
pub struct Rego {
    text: Text,
}

impl Policy for Rego {
    type Config = TextConfig;

    fn describe() -> Descriptor {
        Descriptor::new("portcullis:rego", env!("CARGO_PKG_VERSION"), "Policies in Rego, from a file")
            .rule(
                RULES_OF_TEXT,
                "a rule of the text: the `rule` that it names, or `deny`, `ask`, `allow` or `decision`",
            )
            .rule(FAILED, "the text failed, or gave a value that is no answer")
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
        Text::read(&config).map(|text| Self { text }).map_err(|error| vec![error])
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Evaluation {
        let mut trace = Vec::new();
        let answer = |question| self.text.answer(&question, context.explain.then_some(&mut trace));
        let answers = questions(request, context).map(answer).collect();
        Evaluation { trace: shortened(trace), ..combine(request, answers) }
    }
}

portcullis_sdk::export_policy!(Rego);

#[cfg(test)]
mod tests;
