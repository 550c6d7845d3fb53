//! Messages of the client, parsed once into validated types.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AskResponse, BranchCommitParams, BranchParams, DecideParams, Empty, ErrorCode, ErrorObject,
    EscalateParams, ExecParams, FileCloseParams, FileFindParams, FileGrepParams, FileListParams,
    FileOpenParams, FileOutputParams, FileReadParams, FileWriteHandleParams, FileWriteParams, HelloParams,
    InspectParams, MenuParams, ReserveParams, TurnParams, UndoParams, json, wire_structs,
};

/// The largest id. JavaScript numbers represent every integer up to this one exactly.
const MAX_REQUEST_ID: u64 = (1 << 53) - 1;

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A request. It gets exactly one reply under its id.
    Request(RequestId, Request),
    /// A notification. It gets no reply.
    Notification(ClientNotification),
    /// The reply to an `ask`.
    Reply(Reply),
}

/// The requests of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `hello`, answered with a `HelloResponse`.
    Hello(HelloParams),
    /// `decide`, answered with a `DecideResponse`.
    Decide(DecideParams),
    /// `escalate`, answered with a `DecideResponse`.
    Escalate(EscalateParams),
    /// `file/open`, answered with a `FileOpenResponse`.
    FileOpen(FileOpenParams),
    /// `file/read`, answered with a `FileReadResponse`.
    FileRead(FileReadParams),
    /// `file/write`, answered with a `FileWriteResponse`.
    FileWrite(FileWriteParams),
    /// `file/writeHandle`, answered with a `FileWriteResponse`.
    FileWriteHandle(FileWriteHandleParams),
    /// `file/close`, answered with `Empty`.
    FileClose(FileCloseParams),
    /// `file/list`, answered with a `FileListResponse`.
    FileList(FileListParams),
    /// `file/find`, answered with a `FileSearchResponse`.
    FileFind(FileFindParams),
    /// `file/grep`, answered with a `FileSearchResponse`.
    FileGrep(FileGrepParams),
    /// `file/output`, answered with `Empty`.
    FileOutput(FileOutputParams),
    /// `inspect`, answered with an `InspectResponse`.
    Inspect(InspectParams),
    /// `reserve`, answered with a `ReserveResponse`.
    Reserve(ReserveParams),
    /// `exec`, answered with an `ExecResponse`.
    Exec(ExecParams),
    /// `status`, answered with a `StatusResponse`.
    Status,
    /// `menu`, answered with a `MenuScreen`.
    Menu(MenuParams),
    /// `turn`, answered with `Empty`.
    Turn(TurnParams),
    /// `changes`, answered with a `ChangesResponse`.
    Changes,
    /// `undo`, answered with an `UndoResponse`.
    Undo(UndoParams),
    /// `branch`, answered with a `BranchResponse`.
    Branch(BranchParams),
    /// `branch/commit`, answered with a `BranchCommitResponse`.
    BranchCommit(BranchCommitParams),
    /// `shutdown`, answered with `Empty` after the cleanup.
    Shutdown,
}

/// The notifications of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientNotification {
    /// Aborts a request, which still gets its reply.
    Cancel(CancelNotification),
}

/// The client's reply to a request of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The id of the host's request.
    pub id: RequestId,
    /// The answer, or an error, which permits nothing.
    pub outcome: Result<AskResponse, ErrorObject>,
}

/// The id of a request, unique among those of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "number"))]
#[serde(try_from = "u64", into = "u64")]
pub struct RequestId(u64);

wire_structs! {
    /// Aborts a request: kills its command, takes its question back.
    pub struct CancelNotification {
        /// The request.
        pub id: RequestId,
    }
}

impl RequestId {
    /// Returns the id, or `None` if it is above 2^53 - 1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number <= MAX_REQUEST_ID).then_some(Self(number))
    }
}

impl TryFrom<u64> for RequestId {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, Self::Error> {
        Self::new(number).ok_or("an id is larger than 9007199254740991")
    }
}

impl From<RequestId> for u64 {
    fn from(id: RequestId) -> Self {
        id.0
    }
}

/// An invalid message, with its id if that could be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorObject,
}

/// Parses one line.
pub(crate) fn parse(line: &[u8]) -> Result<Incoming, Refused> {
    let value =
        json::parse(line).map_err(|error| invalid_message(None, ErrorCode::Parse, error.to_string()))?;
    let Value::Object(mut fields) = value else {
        return Err(invalid_message(
            None,
            ErrorCode::InvalidRequest,
            "a message is one object; batches are not supported",
        ));
    };
    let id = take_id(&mut fields)?;
    let invalid = |text: &str| invalid_message(id, ErrorCode::InvalidRequest, text);
    if fields.remove("jsonrpc") != Some(Value::from("2.0")) {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let incoming = match (fields.remove("method"), id) {
        (Some(Value::String(method)), Some(number)) => {
            let params = fields.remove("params");
            Incoming::Request(number, request(&method, params).map_err(|error| Refused { id, error })?)
        }
        (Some(Value::String(method)), None) => {
            let params = fields.remove("params");
            Incoming::Notification(notification(&method, params).map_err(|error| Refused { id, error })?)
        }
        (Some(_), _) => return Err(invalid("`method` must be a string")),
        (None, Some(number)) => {
            return Ok(Incoming::Reply(Reply { id: number, outcome: outcome(&mut fields) }));
        }
        (None, None) => return Err(invalid("a message needs a `method` or an `id`")),
    };
    match fields.keys().next() {
        Some(key) => Err(invalid(&format!("unknown field `{}`", key.escape_debug()))),
        None => Ok(incoming),
    }
}

fn invalid_message(id: Option<RequestId>, code: ErrorCode, text: impl Into<String>) -> Refused {
    Refused { id, error: ErrorObject::new(code, text) }
}

fn take_id(fields: &mut Map<String, Value>) -> Result<Option<RequestId>, Refused> {
    let Some(id) = fields.remove("id") else { return Ok(None) };
    id.as_u64().and_then(RequestId::new).map(Some).ok_or_else(|| {
        invalid_message(
            None,
            ErrorCode::InvalidRequest,
            "an `id` must be an integer from 0 to 9007199254740991",
        )
    })
}

fn request(method: &str, params: Option<Value>) -> Result<Request, ErrorObject> {
    Ok(match method {
        "hello" => Request::Hello(typed(method, params)?),
        "decide" => Request::Decide(typed(method, params)?),
        "escalate" => Request::Escalate(typed(method, params)?),
        "file/open" => Request::FileOpen(typed(method, params)?),
        "file/read" => Request::FileRead(typed(method, params)?),
        "file/write" => Request::FileWrite(typed(method, params)?),
        "file/writeHandle" => Request::FileWriteHandle(typed(method, params)?),
        "file/close" => Request::FileClose(typed(method, params)?),
        "file/list" => Request::FileList(typed(method, params)?),
        "file/find" => Request::FileFind(typed(method, params)?),
        "file/grep" => Request::FileGrep(typed(method, params)?),
        "file/output" => Request::FileOutput(typed(method, params)?),
        "inspect" => Request::Inspect(typed(method, params)?),
        "reserve" => Request::Reserve(typed(method, params)?),
        "exec" => Request::Exec(typed(method, params)?),
        "status" => typed::<Empty>(method, params).map(|_| Request::Status)?,
        "menu" => Request::Menu(typed(method, params)?),
        "turn" => Request::Turn(typed(method, params)?),
        "changes" => typed::<Empty>(method, params).map(|_| Request::Changes)?,
        "undo" => Request::Undo(typed(method, params)?),
        "branch" => Request::Branch(typed(method, params)?),
        "branch/commit" => Request::BranchCommit(typed(method, params)?),
        "shutdown" => typed::<Empty>(method, params).map(|_| Request::Shutdown)?,
        unknown => return Err(unknown_method(unknown)),
    })
}

fn notification(method: &str, params: Option<Value>) -> Result<ClientNotification, ErrorObject> {
    match method {
        "cancel" => Ok(ClientNotification::Cancel(typed(method, params)?)),
        unknown => Err(unknown_method(unknown)),
    }
}

fn typed<T: DeserializeOwned>(method: &str, params: Option<Value>) -> Result<T, ErrorObject> {
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    if !params.is_object() {
        // serde would accept an array as well, field by field.
        return Err(ErrorObject::new(
            ErrorCode::InvalidParams,
            format!("`{method}` takes an object of parameters"),
        ));
    }
    serde_json::from_value(params).map_err(|error| {
        ErrorObject::new(ErrorCode::InvalidParams, format!("parameters of `{method}`: {error}"))
    })
}

fn unknown_method(method: &str) -> ErrorObject {
    let shown: String = method.chars().take(64).flat_map(char::escape_debug).collect();
    ErrorObject::new(
        ErrorCode::MethodNotFound,
        format!("no method `{shown}`; the host may be older than the client"),
    )
}

/// Reads the answer to a question. An unreadable answer permits nothing and ends the question.
fn outcome(fields: &mut Map<String, Value>) -> Result<AskResponse, ErrorObject> {
    let unreadable = |what: &str| Err(ErrorObject::new(ErrorCode::InvalidRequest, what));
    let read = match (fields.remove("result"), fields.remove("error")) {
        (Some(result @ Value::Object(_)), None) => match serde_json::from_value(result) {
            Ok(response) => Ok(response),
            Err(_) => unreadable("the answer to a question cannot be read"),
        },
        (None, Some(error @ Value::Object(_))) => match serde_json::from_value(error) {
            Ok(error) => Err(error),
            Err(_) => unreadable("the error of a question cannot be read"),
        },
        _ => unreadable("a reply holds one object, `result` or `error`"),
    };
    match fields.keys().next() {
        Some(_) => unreadable("a reply has an unknown field"),
        None => read,
    }
}
