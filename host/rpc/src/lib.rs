//! The wire protocol between the pi extension (the *client*) and the *host*.
//!
//! Messages are JSON-RPC 2.0, one per line: requests on the host's stdin, replies on its stdout. Raw bytes
//! (the output of commands) are sent as frames on descriptor 3.
//!
//! Terms:
//! - **request**: a message with `id` and `method`; it gets exactly one reply.
//! - **notification**: a message with `method` and no `id`; it gets no reply.
//! - **ask**: the only request from the host to the client.
//! - **stream**: the raw output of one command, with a number that the client chose.
//!
//! This crate frames, parses and validates messages. It must never know the meaning of a request: no policy,
//! no file, no process, no clock. It must never panic on input, and never holds more than
//! [`MAX_MESSAGE_BYTES`] of it.
//!
//! ```
//! use portcullis_rpc::{connection, Incoming, Request, StatusResponse};
//!
//! let input: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
//! let (mut receiver, _sender) = connection(input, Vec::new());
//! // The receiver itself answers `status` before `hello` with an error, then the input ends.
//! assert!(receiver.receive()?.is_none());
//! # Ok::<(), portcullis_rpc::RpcError>(())
//! ```
//!
//! `docs/protocol.md` describes the protocol for authors of other clients.

mod connection;
mod message;

mod session;
mod tools;

mod files;

mod ask;
mod changes;
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
pub use changes::{
    BranchCommitParams, BranchCommitResponse, BranchLine, BranchParams, BranchResponse, ChangedPoint,
    ChangesResponse, PointKind, TurnParams, UndoLine, UndoParams, UndoResponse,
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
