//! The wire protocol between the pi extension (the *client*) and the *host*.
//!
//! JSON-RPC 2.0, one message a line: requests on the host's stdin, replies on its stdout.
//! Raw bytes (the output of commands) travel beside it as frames on descriptor 3.
//!
//! Terms:
//! - **request**: a message with `id` and `method`; exactly one reply follows.
//! - **notification**: a message with `method` and no `id`; nothing follows.
//! - **ask**: the one request that goes from the host to the client.
//! - **stream**: the raw output of one command, under a number that the client chose.
//!
//! This crate frames, parses and refuses; it does nothing else.
//! It must never know what a request means: no policy, no file, no process, no clock.
//! It must never panic on what arrives, and holds no more of it than [`MAX_MESSAGE_BYTES`].
//!
//! ```
//! use portcullis_rpc::{connection, Incoming, Request, StatusResponse};
//!
//! let input: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
//! let (mut receiver, _sender) = connection(input, Vec::new());
//! // `status` before `hello` was answered with an error by the receiver itself; the input is over.
//! assert!(receiver.receive()?.is_none());
//! # Ok::<(), portcullis_rpc::RpcError>(())
//! ```
//!
//! `docs/protocol.md` describes the same for people who write another client.

mod connection;
mod message;

mod session;
mod tools;

mod files;

mod ask;
mod menu;

mod failure;
mod json;
mod line;
mod stream;
mod text;
mod wire_types;

#[cfg(feature = "typescript")]
pub mod typescript;

pub use ask::{
    AskChoice, AskOption, AskParams, AskResponse, AskWithdrawNotification, EventNotification,
    HostNotification, NoticeLevel, Refusal, RefusalCause, Scope,
};
pub use connection::{Receiver, Sender, connection};
pub use failure::{ErrorCode, ErrorObject, FailureData, FailureKind, RpcError};
pub use files::{
    Edit, FileCloseParams, FileFindParams, FileGrepParams, FileIntent, FileListParams, FileListResponse,
    FileOpenParams, FileOpenResponse, FileOutputParams, FileReadParams, FileReadResponse, FileSearchResponse,
    FileWriteHandleParams, FileWriteParams, FileWriteResponse, ListedKind, ListedName,
};
pub use json::object;
pub use line::MAX_MESSAGE_BYTES;
pub use menu::{MenuEffect, MenuEvent, MenuInput, MenuItem, MenuKey, MenuLine, MenuParams, MenuScreen, Tone};
pub use message::{CancelNotification, ClientNotification, Incoming, Reply, Request, RequestId};
pub use session::{
    Empty, HelloParams, HelloResponse, PROTOCOL_VERSION, Program, RunMode, SandboxState, StatusResponse,
    Switch,
};
pub use stream::{Frame, MAX_FRAME_BYTES, StreamId, StreamWriter, read_frame};
pub use text::{AbsolutePath, Text};
pub use tools::{
    DecideParams, DecideResponse, Denial, EnvironmentName, EscalateParams, ExecOrigin, ExecParams,
    ExecResponse, InspectParams, InspectResponse, OutputBlock, OutputVerdict, ReserveParams, ReserveResponse,
    ReservedPath, ToolEffect,
};

use wire_types::{wire_structs, wire_words};
