//! Requests about tools that the host does not run, and about commands, which it does run.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{AbsolutePath, StreamId, Text, wire_structs, wire_words};

wire_structs! {
    /// A tool call that somebody else carries out if the host allows it.
    pub struct DecideParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The call this one was made from, for nested calls.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parent_call_id: Option<Text>,
        /// The name of the tool.
        pub tool: Text,
        /// The provider of the tool: `builtin`, `extension:<name>`, `mcp:<server>`.
        pub provider: Text,
        /// The base of relative paths, for tools of other extensions that replace one of pi's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cwd: Option<AbsolutePath>,
        /// The arguments, as the model wrote them.
        #[cfg_attr(feature = "typescript", ts(type = "Record<string, unknown>"))]
        pub input: Map<String, Value>,
    }

    /// The verdict on a tool call, after the user was asked where that was needed.
    pub struct DecideResponse {
        /// The decision on the call.
        pub effect: ToolEffect,
        /// The policy that gave the verdict.
        pub policy: String,
        /// The rule inside the policy.
        pub rule: String,
        /// The reason, in one sentence.
        pub reason: String,
        /// Advice on what to do instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub hint: Option<String>,
        /// The arguments to use in place of those sent; they were judged again.
        #[cfg_attr(feature = "typescript", ts(optional, type = "Record<string, unknown>"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rewritten_input: Option<Map<String, Value>>,
    }

    /// A command that the client runs outside of the sandbox if the user lets it; answered as a tool call.
    pub struct EscalateParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The script for the shell.
        pub script: Text,
        /// The directory it starts in.
        pub cwd: AbsolutePath,
    }

    /// The output of a tool, before the model gets it.
    pub struct InspectParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The name of the tool.
        pub tool: Text,
        /// The provider of the tool, as in `decide`.
        pub provider: Text,
        /// The arguments that it was called with.
        #[cfg_attr(feature = "typescript", ts(type = "Record<string, unknown>"))]
        pub input: Map<String, Value>,
        /// True if the tool failed.
        pub is_error: bool,
        /// The blocks of the result.
        pub content: Vec<OutputBlock>,
    }

    /// The decision on the output.
    pub struct InspectResponse {
        /// The effect on the output.
        pub verdict: OutputVerdict,
        /// The replacement, with `replace`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<Vec<OutputBlock>>,
        /// The rule that withholds it, with `withhold`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cause: Option<Denial>,
    }

    /// Claims paths for the agent of the session, or gives them back; without paths nothing changes.
    pub struct ReserveParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The paths, as the model wrote them.
        pub paths: Vec<Text>,
        /// True to release them.
        pub release: bool,
    }

    /// The reservations after the call.
    pub struct ReserveResponse {
        /// The refusal, if nothing was changed because it was not allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub denied: Option<Denial>,
        /// Every claim, of all sessions of the user.
        pub claims: Vec<ReservedPath>,
    }

    /// One claim.
    pub struct ReservedPath {
        /// The reserved path; everything below it is reserved as well.
        pub path: String,
        /// Name of the agent that has it.
        pub agent: String,
        /// True if it belongs to this session.
        pub own: bool,
    }

    /// A command for the confined shell.
    pub struct ExecParams {
        /// pi's id of the call; the client invents one for the user's own commands.
        pub call_id: Text,
        /// The number under which the output comes on descriptor 3; not in use by another `exec`.
        pub stream: StreamId,
        /// The script for the shell.
        pub script: Text,
        /// The directory it starts in.
        pub cwd: AbsolutePath,
        /// The environment pi would give it; the host takes out what commands must not see.
        #[cfg_attr(feature = "typescript", ts(type = "Record<string, string>"))]
        pub env: BTreeMap<EnvironmentName, Text>,
        /// Milliseconds of running time; waiting for an answer does not count.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timeout_ms: Option<u64>,
        /// The author of the script.
        pub origin: ExecOrigin,
    }

    /// The end of a command. The end frame of its stream is written before this, unless `denied` is present.
    pub struct ExecResponse {
        /// The exit status, when it exited by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub exit_code: Option<i32>,
        /// The number of the signal that ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub signal: Option<i32>,
        /// Milliseconds after which its time ran out: its own, or less where the settings give it less; absent when it
        /// did not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timed_out_after_ms: Option<u64>,
        /// The refusal, if the command was not started.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub denied: Option<Denial>,
        /// Lines for the model that policies want it to have with the result.
        pub notes: Vec<String>,
    }

    /// A verdict that said no.
    pub struct Denial {
        /// The policy that gave the verdict.
        pub policy: String,
        /// The rule inside the policy.
        pub rule: String,
        /// The reason, in one sentence.
        pub reason: String,
        /// Advice on what to do instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub hint: Option<String>,
    }
}

wire_words! {
    /// The decision on a tool call. There is no `ask`: the host has asked before it answers.
    pub enum ToolEffect {
        /// It may.
        Allow,
        /// It may not.
        Deny,
        /// It may, with a client of `exec` in the place of its `command`: the command itself is judged when that runs it.
        Exec,
    }

    /// The author of a script.
    pub enum ExecOrigin {
        /// The model.
        Agent,
        /// The user, with `!`.
        User,
    }
}

wire_words! {
    /// The decision on the output of a tool.
    pub enum OutputVerdict {
        /// The model sees it as it is.
        Pass,
        /// The model sees something else in its place.
        Replace,
        /// The model only sees why not.
        Withhold,
    }
}

/// One block of the output of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum OutputBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture; its content is not sent.
    Image {
        /// Its type.
        mime_type: String,
        /// The size in bytes.
        bytes: u32,
    },
    /// Anything else.
    Other {
        /// A JSON document.
        json: String,
    },
}

/// The name of an environment variable: not empty, without `=` and NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct EnvironmentName(String);

impl EnvironmentName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for EnvironmentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(serde::de::Error::custom(format!(
                "`{}` cannot name a variable",
                name.escape_debug()
            )));
        }
        Ok(Self(name))
    }
}
