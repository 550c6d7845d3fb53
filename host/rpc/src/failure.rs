//! Errors in replies, and errors that end the connection.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{wire_structs, wire_words};

/// An error that ends the connection. It cannot receive or send any more.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RpcError {
    /// Reading from the client failed.
    #[error("cannot read from the client")]
    Read(#[source] std::io::Error),
    /// Writing to the client failed.
    #[error("cannot write to the client")]
    Write(#[source] std::io::Error),
    /// A message could not be encoded as JSON.
    #[error("cannot encode a message")]
    Encode(#[source] serde_json::Error),
    /// The input ended inside a message or a frame.
    #[error("the client's input ends inside a message")]
    Truncated,
    /// A frame announces more bytes than a frame may have.
    #[error("a frame of {length} bytes is longer than the permitted {limit}")]
    FrameTooLong { length: u32, limit: u32 },
    /// A thread panicked while it held the connection's lock.
    #[error("the connection was left in an unknown state by another thread")]
    Poisoned,
}

/// The values of `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The line is not valid JSON: not UTF-8, truncated, nested too deep, or with a duplicate key.
    Parse,
    /// The JSON is not a message of this protocol.
    InvalidRequest,
    /// The method does not exist.
    MethodNotFound,
    /// The parameters of the method are invalid.
    InvalidParams,
    /// The host failed. As far as it knows, the request had no effect.
    Internal,
    /// The client uses another version of the protocol.
    VersionMismatch,
    /// `hello` has not been answered yet.
    NotReady,
    /// There are too many requests at once.
    Busy,
    /// The host cannot do this at present, for example because it cannot set up a sandbox.
    Unavailable,
    /// A file operation failed or was denied; see [`FailureData`].
    File,
    /// The client cancelled the request.
    Cancelled,
}

impl ErrorCode {
    /// Returns the number that is sent.
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

/// The `error` object of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The number of an [`ErrorCode`].
    pub code: i32,
    /// One line for people.
    pub message: String,
    /// Data for programs: a [`FailureData`] with [`ErrorCode::File`].
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
        // A struct of strings and numbers always encodes. Even without data the client gets an error.
        let data = serde_json::to_value(data).ok();
        Self { code: ErrorCode::File.number(), message: message.into(), data }
    }
}

wire_structs! {
    /// The failure of a file operation.
    pub struct FailureData {
        /// The kind of failure.
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
        /// The reason, in one sentence.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
        /// Advice on what to do instead.
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
