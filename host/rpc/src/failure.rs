//! Errors: those that travel in a reply, and those that end the connection.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{wire_structs, wire_words};

/// The connection itself broke; nothing more can be received or sent on it.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The other side cannot be read.
    #[error("cannot read from the client")]
    Read(#[source] std::io::Error),
    /// The other side cannot be written to.
    #[error("cannot write to the client")]
    Write(#[source] std::io::Error),
    /// A reply cannot be put into JSON.
    #[error("cannot encode a message")]
    Encode(#[source] serde_json::Error),
    /// The input ended in the middle of a message, or of a frame.
    #[error("the client's input ends inside a message")]
    Truncated,
    /// A frame says it is longer than any frame may be.
    #[error("a frame of {length} bytes is longer than the permitted {limit}")]
    FrameTooLong {
        /// What the frame says.
        length: u32,
        /// What is permitted.
        limit: u32,
    },
    /// A thread died while it held the connection.
    #[error("the connection was left in an unknown state by another thread")]
    Poisoned,
}

/// The numbers that stand in `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The line is no JSON: not UTF-8, cut off, too deep, or with a key twice.
    Parse,
    /// JSON, but no message of this protocol.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// The method is known, its parameters are wrong.
    InvalidParams,
    /// The host failed; the request had no effect that it knows of.
    Internal,
    /// The client speaks another version of the protocol.
    VersionMismatch,
    /// `hello` has not been answered yet.
    NotReady,
    /// Too many requests at once.
    Busy,
    /// The host cannot do this kind of thing at present, such as when no sandbox can be set up.
    Unavailable,
    /// A file operation failed or was denied; see [`FailureData`].
    File,
    /// The client cancelled the request.
    Cancelled,
}

impl ErrorCode {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::VersionMismatch => -32001,
            Self::NotReady => -32002,
            Self::Busy => -32003,
            Self::Unavailable => -32004,
            Self::File => -32010,
            Self::Cancelled => -32800,
        }
    }
}

/// What stands under `error` in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// See [`ErrorCode`].
    pub code: i32,
    /// One line for people.
    pub message: String,
    /// More for programs; a [`FailureData`] with [`ErrorCode::File`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// Returns an error without data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None }
    }

    /// Returns the error of a file operation.
    #[must_use]
    pub fn file(message: impl Into<String>, data: &FailureData) -> Self {
        // A struct of strings and numbers always encodes; without data the client still sees an error.
        let data = serde_json::to_value(data).ok();
        Self { code: ErrorCode::File.number(), message: message.into(), data }
    }
}

wire_structs! {
    /// Why a file operation failed.
    pub struct FailureData {
        /// What kind of failure it is.
        pub kind: FailureKind,
        /// The error number of the system, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub errno: Option<i32>,
        /// The policy that denied it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy: Option<String>,
        /// The rule inside the policy.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rule: Option<String>,
        /// Why, in one sentence.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// What could be done instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub hint: Option<String>,
    }
}

wire_words! {
    /// The kinds of failure of a file operation.
    pub enum FailureKind {
        /// A verdict said no, or the user did.
        Denied,
        /// There is no such file.
        NotFound,
        /// The file is a directory.
        IsDirectory,
        /// A part of the path is not a directory.
        NotDirectory,
        /// The file is neither regular nor a directory.
        NotRegular,
        /// The system does not permit it.
        NotPermitted,
        /// The file changed since it was read.
        Conflict,
        /// The file is larger than the host reads.
        TooLarge,
        /// The handle is not open, or was opened for something else.
        BadHandle,
        /// Anything else; `errno` says more.
        Other,
    }
}
