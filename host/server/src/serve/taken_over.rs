//! Tools of other extensions that override one of pi's own by name.
//!
//! A call with the parameters of pi's own tool is decided on as that tool, any other call as an unknown tool.

use portcullis_decision::request::{FileOperation, SearchQuery};
use portcullis_file_gate::spelling::{self, PiLine};
use portcullis_rpc::{DecideParams, DecideResponse, ErrorObject, ToolEffect};
use portcullis_session::{Cancel, FileCall, FileFailure, Session, TakenOver, overridden_tools};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::serve::files::misspelt;
use crate::serve::host::Host;

/// A call of one of pi's own tools, with exactly the parameters of that tool.
enum Reading {
    Bash,
    Read(String),
    Write { path: String, content: String },
    Edit { path: String, edits: Vec<(String, String)> },
    Search { path: String, operation: FileOperation },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Bash {
    #[serde(rename = "command")]
    _command: String,
    #[serde(rename = "timeout")]
    _timeout: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
    #[serde(rename = "offset")]
    _offset: Option<f64>,
    #[serde(rename = "limit")]
    _limit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    edits: Vec<Replacement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Replacement {
    old_text: String,
    new_text: String,
}

/// The parameters of `ls`, `find` and `grep` together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Search {
    pattern: Option<String>,
    path: Option<String>,
    glob: Option<String>,
    #[serde(rename = "ignoreCase")]
    _ignore_case: Option<bool>,
    #[serde(rename = "literal")]
    _literal: Option<bool>,
    #[serde(rename = "context")]
    _context: Option<f64>,
    #[serde(rename = "limit")]
    _limit: Option<f64>,
}

impl Host {
    /// Decides on a call of a tool that overrides one of pi's own, or returns `None` if its parameters differ.
    pub(super) fn judge_taken_over(
        &self,
        session: &Session,
        params: &DecideParams,
        cancel: &Cancel,
    ) -> Result<Option<DecideResponse>, ErrorObject> {
        let Some((cwd, reading)) = params.cwd.as_ref().zip(read(params.tool.as_str(), &params.input)) else {
            return Ok(None);
        };
        let (given, operation) = match &reading {
            Reading::Bash => return Ok(Some(by_exec())),
            Reading::Read(path) => (path, TakenOver::Read),
            Reading::Write { path, content } => (path, TakenOver::Write(content)),
            Reading::Edit { path, edits } => (path, TakenOver::Edit(edits)),
            Reading::Search { path, operation } => (path, TakenOver::Search(operation)),
        };
        let line = PiLine::from_version(&session.agent().version);
        let path = spelling::resolve_as(line, given, cwd.as_path(), &self.around.home);
        let path = path.map_err(|error| misspelt(&error))?;
        let call = FileCall { path: &path, given, call: Some(params.call_id.as_str()), cancel };
        match overridden_tools::authorize(session, call, params.provider.as_str(), operation) {
            Ok(canonical) => Ok(Some(with_path(&params.input, canonical))),
            Err(FileFailure::Denied(decision)) => Ok(Some(super::decide::response(&decision, None))),
            Err(FileFailure::File(error)) => Ok(Some(deny_response(&error.to_string()))),
        }
    }
}

/// Parses the input as pi's own tool, or returns `None` if that tool has no such parameters.
fn read(tool: &str, input: &Map<String, Value>) -> Option<Reading> {
    let input = Value::Object(input.clone());
    match tool {
        "bash" => serde_json::from_value::<Bash>(input).ok().map(|_| Reading::Bash),
        "read" => serde_json::from_value::<Read>(input).ok().map(|read| Reading::Read(read.path)),
        "write" => serde_json::from_value::<Write>(input)
            .ok()
            .map(|Write { path, content }| Reading::Write { path, content }),
        "edit" => serde_json::from_value::<Edit>(input).ok().map(|Edit { path, edits }| Reading::Edit {
            path,
            edits: edits.into_iter().map(|edit| (edit.old_text, edit.new_text)).collect(),
        }),
        "ls" | "find" | "grep" => {
            let Search { pattern, path, glob, .. } = serde_json::from_value(input).ok()?;
            let operation = match (tool, pattern) {
                ("ls", None) => FileOperation::List,
                ("ls", Some(_)) | (_, None) => return None,
                (_, Some(pattern)) => FileOperation::Search(SearchQuery { pattern, glob }),
            };
            // pi takes an empty path for none.
            let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
            Some(Reading::Search { path, operation })
        }
        _ => None,
    }
}

/// Returns a response that continues the call with the path that was decided on.
fn with_path(input: &Map<String, Value>, path: String) -> DecideResponse {
    let mut input = input.clone();
    input.insert("path".to_owned(), Value::String(path));
    DecideResponse {
        rewritten_input: Some(input),
        ..words(ToolEffect::Allow, "host.left-to-others", "it was allowed")
    }
}

fn by_exec() -> DecideResponse {
    words(ToolEffect::Exec, "host.by-exec", "the command is judged when it is run")
}

fn deny_response(why: &str) -> DecideResponse {
    words(ToolEffect::Deny, "host.unusable-path", why)
}

fn words(effect: ToolEffect, rule: &str, reason: &str) -> DecideResponse {
    DecideResponse {
        effect,
        policy: "host".to_owned(),
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        hint: None,
        rewritten_input: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_reads_like_pis_own_is_taken_for_it() {
        for (tool, input, is_known) in [
            ("bash", json!({ "command": "x" }), true),
            ("bash", json!({ "command": "x", "timeout": 1.5 }), true),
            ("bash", json!({ "command": "x", "host": "h" }), false),
            ("bash", json!({ "command": ["x"] }), false),
            ("bash", json!({}), false),
            ("read", json!({ "path": "x", "offset": 1, "limit": null }), true),
            ("read", json!({ "path": "x", "uri": "y" }), false),
            ("read", json!({ "path": { "toString": "x" } }), false),
            ("write", json!({ "path": "x", "content": "y" }), true),
            ("write", json!({ "path": "x", "content": 1 }), false),
            ("edit", json!({ "path": "x", "edits": [{ "oldText": "a", "newText": "b" }] }), true),
            ("edit", json!({ "path": "x", "oldText": "a", "newText": "b" }), false),
            ("edit", json!({ "path": "x", "edits": "[]" }), false),
            ("ls", json!({}), true),
            ("ls", json!({ "pattern": "x" }), false),
            ("find", json!({ "pattern": "x", "path": "" }), true),
            ("grep", json!({ "pattern": "x", "glob": "*", "ignoreCase": true, "context": 1 }), true),
            ("grep", json!({ "path": "x" }), false),
            ("powershell", json!({ "command": "x" }), false),
        ] {
            let input = input.as_object().cloned().unwrap();
            assert_eq!(read(tool, &input).is_some(), is_known, "{tool} {input:?}");
        }
    }
}
