//! Messages that the host sends on its own: questions, their withdrawal, and events.

use serde::{Deserialize, Serialize};

use crate::{StatusResponse, ToolEffect, wire_structs, wire_words};

wire_structs! {
    /// A question for the user. Title and subject are the host's own words.
    pub struct AskParams {
        /// The id of the question, by which it can be withdrawn.
        pub ask_id: u64,
        /// The call it is about, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub call_id: Option<String>,
        /// The first line, such as `git wants to change the repository`; the place follows it.
        pub title: String,
        /// The subject, such as a path or a host and port.
        pub subject: String,
        /// The subject as a person writes it, such as `~/notes.txt`; absent where it is that already.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub place: Option<String>,
        /// The reason, in one short sentence.
        pub context: String,
        /// The beginning of what would be written: foreign text, to be marked as such.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub preview: Option<String>,
        /// True for something sensitive, such as keys.
        pub sensitive: bool,
        /// The asker, such as `bash` or `curl (pid 812)`.
        pub asker: String,
        /// The whole reason for the question.
        pub reason: String,
        /// The policy that asks.
        pub policy: String,
        /// The rule inside the policy.
        pub rule: String,
        /// A policy's own text, to be shown as a quotation with the policy's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub quote: Option<String>,
        /// The possible answers, besides a plain "no".
        pub options: Vec<AskOption>,
        /// Milliseconds to answer in, counted from when the question is seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timeout_ms: Option<u64>,
    }

    /// One answer beside a plain "no".
    pub struct AskOption {
        /// Its key. Options that differ only in how much they cover have the same.
        pub key: String,
        /// The effect of the answer.
        pub effect: ToolEffect,
        /// The label, such as `For this session`.
        pub label: String,
        /// The paths or hosts that it covers; absent if it covers only this request.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub covers: Option<String>,
        /// The rank among the options with the same key, from 0 for the narrowest.
        pub width: u32,
        /// The file that stores it, such as `default.json`; absent if none does.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub target: Option<String>,
        /// The time for which it applies.
        pub scope: Scope,
    }

    /// The user's answer.
    pub struct AskResponse {
        /// The choice.
        pub choice: AskChoice,
        /// The reason for a refusal without a user's own "no".
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cause: Option<RefusalCause>,
        /// A line for the model, given with the user's own "no".
        #[serde(skip_serializing_if = "Option::is_none")]
        pub because: Option<String>,
    }

    /// Withdraws a question; later answers to it are ignored.
    pub struct AskWithdrawNotification {
        /// The question.
        pub ask_id: u64,
        /// The reason, in a few words.
        pub why: String,
    }
}

wire_words! {
    /// The lifetime of a grant.
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

    /// The reason for a refusal without a user's own "no".
    pub enum RefusalCause {
        /// There is no user interface.
        NoInterface,
        /// The call it was about was aborted.
        Aborted,
        /// The time to answer ran out.
        Timeout,
    }

    /// The importance of a notice.
    pub enum NoticeLevel {
        /// Good to know.
        Info,
        /// A warning.
        Warning,
        /// An error.
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

/// An event that the client shows.
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
        /// The importance.
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
