//! Answers from a second terminal, with the number that the list of questions shows.

use serde_json::Value;

use crate::{Finished, Scene};

/// Returns what to type for a key of a question, as `asks list --json` shows it; the key itself if it has no code.
#[must_use]
pub fn code_of(question: &Value, key: &str) -> String {
    let choices = question.pointer("/question/choices").and_then(Value::as_array);
    let mut codes = choices.into_iter().flatten().filter_map(|choice| choice.get("code")?.as_str());
    let code = codes.find(|code| code.rsplit_once('-').is_some_and(|(known, _)| known == key));
    code.unwrap_or(key).to_owned()
}

impl Scene {
    /// Answers a question from a second terminal.
    ///
    /// # Errors
    ///
    /// When the binary is missing, does not end in time, or lists no questions.
    pub fn answer(&self, id: &str, key: &str) -> anyhow::Result<Finished> {
        let listed = self.portcullis(&["asks", "list", "--json"])?.ended_with(0)?;
        let listed: Value = serde_json::from_str(&listed.stdout)?;
        let mut questions = listed.get("questions").and_then(Value::as_array).into_iter().flatten();
        let question = questions.find(|question| question.get("id").and_then(Value::as_str) == Some(id));
        self.portcullis(&["asks", "answer", id, &code_of(question.unwrap_or(&Value::Null), key)])
    }
}
