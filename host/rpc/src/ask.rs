//! Messages that the host sends on its own: questions, their withdrawal, and events.

use serde::{Deserialize, Serialize};

use crate::{StatusResponse, ToolEffect, wire_structs, wire_words};

wire_structs! {
    /// A question for the user. Title and subject are the host's own words.
    pub struct AskParams {
        /// Names the question when it is withdrawn.
        pub ask_id: u64,
        /// The call it is about, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub call_id: Option<String>,
        /// Who wants to do what, such as `git wants to change the repository`; the place follows.
        pub title: String,
        /// What it is asked for, such as a path or a host and port.
        pub subject: String,
        /// The subject as a person writes it, such as `~/notes.txt`; absent where it is that already.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub place: Option<String>,
        /// Why it is asked, in one short sentence.
        pub context: String,
        /// The beginning of what would be written: foreign text, to be marked as such.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub preview: Option<String>,
        /// Whether it is about something that deserves a second look.
        pub sensitive: bool,
        /// Who asks, such as `bash` or `curl (pid 812)`.
        pub asker: String,
        /// The whole reason for the question.
        pub reason: String,
        /// The policy that wants it asked.
        pub policy: String,
        /// The rule inside the policy.
        pub rule: String,
        /// A policy's own text, to be shown as a quotation with the policy's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub quote: Option<String>,
        /// What can be answered beside a refusal.
        pub options: Vec<AskOption>,
        /// Milliseconds to answer in, counted from when the question is seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timeout_ms: Option<u64>,
    }

    /// One answer beside a plain "no".
    pub struct AskOption {
        /// Its key. Options that differ only in how much they cover have the same.
        pub key: String,
        /// Whether it permits.
        pub effect: ToolEffect,
        /// The label, such as `For this session`.
        pub label: String,
        /// What it covers, spelled out; absent for the very request alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub covers: Option<String>,
        /// How much it covers among the options with its key, from 0 for the least.
        pub width: u32,
        /// Where it is written down, such as `default.json`; absent where nowhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub target: Option<String>,
        /// How long it holds.
        pub scope: Scope,
    }

    /// The user's answer.
    pub struct AskResponse {
        /// What was chosen.
        pub choice: AskChoice,
        /// Why nothing was chosen; absent for a person's own "no".
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cause: Option<RefusalCause>,
        /// With a person's own "no": a line of theirs for the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub because: Option<String>,
    }

    /// Takes a question back: an answer that still comes means nothing.
    pub struct AskWithdrawNotification {
        /// The question.
        pub ask_id: u64,
        /// Why, in a few words.
        pub why: String,
    }
}

wire_words! {
    /// How long a grant lives.
    pub enum Scope {
        /// This once.
        Once,
        /// Until the session ends.
        Session,
        /// In this project from now on.
        Project,
        /// In every project from now on.
        User,
    }

    /// The word for "no".
    pub enum Refusal {
        /// Do not permit it.
        Refuse,
    }

    /// Why a question was refused without a person's "no".
    pub enum RefusalCause {
        /// Nobody can be asked here.
        NoInterface,
        /// The call it was about was aborted.
        Aborted,
        /// The time to answer ran out.
        Timeout,
    }

    /// How much a notice matters.
    pub enum NoticeLevel {
        /// Good to know.
        Info,
        /// Something is not as it should be.
        Warning,
        /// Something broke.
        Error,
    }
}

/// The number of an option, or `"refuse"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(untagged)]
pub enum AskChoice {
    /// The option at this place in `options`, counted from zero.
    Option(u32),
    /// None of them.
    Refuse(Refusal),
}

/// Something the client should show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub enum EventNotification {
    /// The status changed.
    Status {
        /// The new one.
        status: StatusResponse,
    },
    /// A line for the user.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// The line.
        text: String,
    },
    /// A request was refused; sent only to a client without an interface.
    Refused {
        /// The refused action, and the reason.
        text: String,
        /// True if a policy wanted to ask, and the session has no user.
        unasked: bool,
        /// True if the client should end with an exit status that tells of it.
        fails: bool,
    },
}

/// A notification of the host, as a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", content = "params")]
pub enum HostNotification {
    /// Withdraws a question.
    #[serde(rename = "ask/withdraw")]
    AskWithdraw(AskWithdrawNotification),
    /// An event for the client to show.
    #[serde(rename = "event")]
    Event(EventNotification),
}
