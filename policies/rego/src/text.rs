//! A package, read and compiled.

use std::cell::RefCell;

use portcullis_sdk::{ConfigError, TraceStep};
use portcullis_text_policy::{Answer, Effect, Question, TextConfig, failure, step};
use regorus::{Engine, Value};

use crate::{FAILED, decision, errors, input};

/// The package that answers.
const PACKAGE: &str = "data.portcullis";

/// The package of a text.
#[derive(Debug)]
pub(crate) struct Text {
    engine: RefCell<Engine>,
    /// The rules of the text that answer.
    rules: Vec<(&'static str, Option<Effect>)>,
}

impl Text {
    /// Reads a text and prepares it.
    pub(crate) fn read(config: &TextConfig) -> Result<Self, ConfigError> {
        let mut engine = Engine::new();
        // What the text prints is not shown: a set of texts can say more.
        engine.set_gather_prints(true);
        engine.set_strict_builtin_errors(true);
        let wrong = |error: String| errors::config_error(config, &error);
        let file = config.file_name().to_owned();
        let package = engine
            .add_policy(file.clone(), config.policy_text.clone())
            .map_err(|error| wrong(error.to_string()))?;
        if package != PACKAGE {
            let name = package.trim_start_matches("data.");
            return Err(config.error(&format!("the package is `{name}`; write `package portcullis`")));
        }
        let data = serde_json::Value::Object(config.data.clone()).to_string();
        engine.add_data_json(&data).map_err(|error| ConfigError::new("/data", error.to_string()))?;
        let mut rules = Vec::new();
        for (rule, effect) in decision::RULES {
            let is_there = engine.has_declared_rule_rooted_at(&file, rule);
            if is_there.map_err(|error| wrong(error.to_string()))? {
                rules.push((rule, effect));
            }
        }
        if rules.is_empty() {
            return Err(config.error("it has none of the rules `deny`, `ask`, `allow` and `decision`"));
        }
        let text = Self { engine: RefCell::new(engine), rules };
        text.try_out().map_err(wrong)?;
        Ok(text)
    }

    /// Evaluates the rules without an input: only this compiles them, and finds unknown functions and loops.
    fn try_out(&self) -> Result<(), String> {
        let mut engine = self.engine.borrow_mut();
        engine.set_input(Value::new_object());
        for (rule, _) in &self.rules {
            engine.eval_rule(format!("{PACKAGE}.{rule}")).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Returns the strictest answer to a question; `None` if no rule has one.
    pub(crate) fn answer(&self, question: &Question, trace: Option<&mut Vec<TraceStep>>) -> Option<Answer> {
        let answers = match self.answers(question) {
            Ok(answers) => answers,
            Err(error) => return Some(failure(FAILED, &errors::one_line(&error))),
        };
        if let Some(trace) = trace {
            trace.extend(answers.iter().map(|answer| step(question, &answer.rule, true)));
        }
        answers.into_iter().reduce(|best, next| if next.effect > best.effect { next } else { best })
    }

    fn answers(&self, question: &Question) -> Result<Vec<Answer>, String> {
        let mut engine = self.engine.borrow_mut();
        let input = input::input(question).to_string();
        engine.set_input(Value::from_json_str(&input).map_err(|error| error.to_string())?);
        let mut answers = Vec::new();
        for (rule, effect) in &self.rules {
            let value = engine.eval_rule(format!("{PACKAGE}.{rule}")).map_err(|error| error.to_string())?;
            if value == Value::Undefined {
                continue;
            }
            // As JSON, a set is a list.
            let value = value.to_json_str().map_err(|error| error.to_string())?;
            let value = serde_json::from_str(&value).map_err(|error| error.to_string())?;
            answers.extend(decision::answers(rule, *effect, &value)?);
        }
        Ok(answers)
    }
}
