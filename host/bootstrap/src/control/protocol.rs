//! Requests to a running session, and its replies.

use serde::{Deserialize, Serialize};

/// A request to a running session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", deny_unknown_fields)]
pub enum Order {
    /// Lists the open questions.
    Questions {},
    /// Answers a question with the code of a listed choice; without a code refuses it.
    Answer {
        /// The question.
        id: u64,
        /// The code of the choice.
        code: Option<String>,
        /// With a refusal: a line for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Lists the answers that the session remembers.
    Remembered {},
    /// Forgets an answer.
    Forget {
        /// The answer.
        id: u64,
    },
    /// Lists the ports on which its commands listen.
    Ports {},
    /// Opens a port to this machine.
    OpenPort {
        /// The port inside.
        port: u16,
        /// The port on this machine.
        at: u16,
    },
    /// Closes an open port.
    ClosePort {
        /// The port inside.
        port: u16,
    },
}

/// The reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Outcome {
    /// The open questions, the oldest first.
    Questions {
        /// The questions.
        questions: Vec<Asked>,
    },
    /// The remembered answers.
    Remembered {
        /// The answers.
        remembered: Vec<Kept>,
    },
    /// The ports, the lowest first.
    Ports {
        /// The ports.
        ports: Vec<Port>,
    },
    /// The request was carried out.
    Done {
        /// What was done.
        what: String,
    },
    /// The request failed; the reason.
    Failed {
        /// Why it failed.
        why: String,
    },
}

/// An open question; all texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Its number in the session.
    pub id: u64,
    /// The project of the session.
    pub project: String,
    /// Who wants to do what; the place follows.
    pub title: String,
    /// What it is about.
    pub subject: String,
    /// The subject as a person writes it, if that differs.
    pub place: Option<String>,
    /// Why it is asked, in one short sentence.
    pub context: String,
    /// The beginning of what would be written.
    pub preview: Option<String>,
    /// Who asks.
    pub asker: String,
    /// The whole reason.
    pub reason: String,
    /// The policy that asks.
    pub policy: String,
    /// The rule of that policy.
    pub rule: String,
    /// The policy's own text.
    pub quote: Option<String>,
    /// The answers that allow or deny more than once.
    pub choices: Vec<AskedChoice>,
}

/// A choice of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedChoice {
    /// The text to type, with a number that is shown nowhere else.
    pub code: String,
    /// Its description.
    pub text: String,
    /// Where the answer is stored.
    pub target: Option<String>,
}

/// A port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Its number inside.
    pub port: u16,
    /// The listening program, safe to show.
    pub program: String,
    /// Its process id; 0 if none listens.
    pub process: u32,
    /// Its address on this machine, if it is open.
    pub open_at: Option<String>,
}

/// An answer that a session remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Its number in the session.
    pub id: u64,
    /// Its description.
    pub text: String,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means the end of the session.
    pub expires_at: u32,
}
