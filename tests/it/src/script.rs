//! Builds the script of the model; `tests/pi/scenario.mjs` describes the format.

use serde_json::{Value, json};

/// Returns a script that plays `steps` for every prompt.
#[must_use]
pub fn script(steps: impl IntoIterator<Item = Value>) -> Value {
    json!({ "steps": steps.into_iter().collect::<Vec<_>>() })
}

/// Returns a script that plays the steps of the first pair whose regular expression matches the prompt.
#[must_use]
pub fn turns(turns: impl IntoIterator<Item = (&'static str, Vec<Value>)>) -> Value {
    let turn = |(pattern, steps): (&str, Vec<Value>)| json!({ "match": pattern, "steps": steps });
    json!({ "turns": turns.into_iter().map(turn).collect::<Vec<_>>() })
}

/// Returns a step with only a text of the assistant.
#[must_use]
pub fn say(text: &str) -> Value {
    json!({ "text": text })
}

/// Returns a step with one call of the `bash` tool.
#[must_use]
pub fn bash(command: &str) -> Value {
    calls([call("bash", &json!({ "command": command }))])
}

/// Returns a step with one call of the `read` tool.
#[must_use]
pub fn read(path: &str) -> Value {
    calls([call("read", &json!({ "path": path }))])
}

/// Returns a step with one call of the `write` tool.
#[must_use]
pub fn write(path: &str, content: &str) -> Value {
    calls([call("write", &json!({ "path": path, "content": content }))])
}

/// Returns a step whose calls are all in one message of the assistant.
#[must_use]
pub fn calls(calls: impl IntoIterator<Item = Value>) -> Value {
    json!({ "calls": calls.into_iter().collect::<Vec<_>>() })
}

/// Returns one call for [`calls`].
#[must_use]
pub fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "args": arguments })
}

/// Returns `step`, played only if the results of the previous calls match the regular expression `pattern`; otherwise
/// the run ends with exit code 97.
#[must_use]
pub fn expecting(pattern: &str, step: Value) -> Value {
    with(step, "expect", pattern)
}

/// Returns `step`, played only if the results of the previous calls do not match `pattern`.
#[must_use]
pub fn expecting_no(pattern: &str, step: Value) -> Value {
    with(step, "expect_not", pattern)
}

/// Returns `step`, held back until the file `path` exists.
#[must_use]
pub fn awaiting(path: &str, step: Value) -> Value {
    with(step, "await_file", path)
}

fn with(mut step: Value, key: &str, value: &str) -> Value {
    if let Some(object) = step.as_object_mut() {
        object.insert(key.to_owned(), json!(value));
    }
    step
}
