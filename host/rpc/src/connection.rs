//! Both directions of a connection, with its own state: the handshake, and the ids and streams in use.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::line::{Line, Lines};
use crate::message::{self, Refused};
use crate::{
    AskParams, ErrorCode, ErrorObject, HostNotification, Incoming, MAX_MESSAGE_BYTES, PROTOCOL_VERSION,
    Request, RequestId, RpcError, StreamId,
};

/// Largest number of requests without a reply. pi runs a handful of tools at once.
const MAX_IN_FLIGHT: usize = 1024;

/// Returns the two ends of a connection on `input` and `output`.
pub fn connection<R: Read, W: Write>(input: R, output: W) -> (Receiver<R, W>, Sender<W>) {
    let sender =
        Sender { shared: Arc::new(Mutex::new(Shared { output, state: ConnectionState::default() })) };
    (Receiver { lines: Lines::new(input, MAX_MESSAGE_BYTES), sender: sender.clone(), length: 0 }, sender)
}

/// Receives messages. It answers invalid messages with an error itself and does not pass them on.
#[derive(Debug)]
pub struct Receiver<R, W> {
    lines: Lines<R>,
    sender: Sender<W>,
    /// Length of the last message, in bytes.
    length: usize,
}

/// Sends messages. Clones write to the same output, one message at a time.
#[derive(Debug)]
pub struct Sender<W> {
    shared: Arc<Mutex<Shared<W>>>,
}

#[derive(Debug)]
struct Shared<W> {
    output: W,
    state: ConnectionState,
}

#[derive(Debug, Default)]
struct ConnectionState {
    handshake: Handshake,
    /// Requests without a reply, each with the stream that it uses.
    in_flight: HashMap<RequestId, Option<StreamId>>,
    next_ask: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Handshake {
    #[default]
    Missing,
    /// The host has received the `hello` with this id and has not answered it.
    Pending(RequestId),
    Done,
}

impl<R: Read, W: Write> Receiver<R, W> {
    /// Returns the next valid message, or `None` when the client has closed its end.
    ///
    /// # Errors
    /// Fails when the connection broke. The caller must then end everything that was permitted.
    pub fn receive(&mut self) -> Result<Option<Incoming>, RpcError> {
        while let Some(line) = self.lines.next_line()? {
            self.length = match &line {
                Line::Complete(bytes) => bytes.len(),
                Line::TooLong => 0,
            };
            match self.accept(line)? {
                Ok(incoming) => return Ok(Some(incoming)),
                Err(refused) => self.sender.refuse(refused)?,
            }
        }
        Ok(None)
    }

    /// Returns the length of the last message in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    fn accept(&self, line: Line) -> Result<Result<Incoming, Refused>, RpcError> {
        let bytes = match line {
            Line::Complete(bytes) => bytes,
            Line::TooLong => {
                let text = format!("a message is longer than {MAX_MESSAGE_BYTES} bytes");
                let error = ErrorObject::new(ErrorCode::InvalidRequest, text);
                return Ok(Err(Refused { id: None, error }));
            }
        };
        let incoming = match message::parse(&bytes) {
            Ok(incoming) => incoming,
            Err(mut refused) => {
                // A request in progress gets its one reply from the host, so this error must not use its id.
                let state = &self.sender.lock()?.state;
                refused.id = refused.id.filter(|id| !state.in_flight.contains_key(id));
                return Ok(Err(refused));
            }
        };
        Ok(match &incoming {
            Incoming::Request(id, request) => {
                self.sender.lock()?.state.admit(*id, request).map(|()| incoming)
            }
            Incoming::Notification(_) | Incoming::Reply(_) => Ok(incoming),
        })
    }
}

impl ConnectionState {
    /// Registers a request, or returns the reason to refuse it.
    fn admit(&mut self, id: RequestId, request: &Request) -> Result<(), Refused> {
        if self.in_flight.contains_key(&id) {
            // The error has no id: the client would take it for the reply to the first request.
            let text = format!("the id {} is in use by a request that has no reply yet", u64::from(id));
            return Err(Refused { id: None, error: ErrorObject::new(ErrorCode::InvalidRequest, text) });
        }
        let stream = self.check(request).map_err(|error| Refused { id: Some(id), error })?;
        if matches!(request, Request::Hello(_)) {
            self.handshake = Handshake::Pending(id);
        }
        self.in_flight.insert(id, stream);
        Ok(())
    }

    fn check(&self, request: &Request) -> Result<Option<StreamId>, ErrorObject> {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return Err(ErrorObject::new(
                ErrorCode::Busy,
                format!("{MAX_IN_FLIGHT} requests are waiting already"),
            ));
        }
        match (request, &self.handshake) {
            (Request::Hello(hello), Handshake::Missing) => same_version(hello.protocol).map(|()| None),
            (Request::Hello(_), _) => {
                Err(ErrorObject::new(ErrorCode::InvalidRequest, "`hello` is said once on a connection"))
            }
            (_, Handshake::Missing | Handshake::Pending(_)) => {
                Err(ErrorObject::new(ErrorCode::NotReady, "nothing is answered before `hello`"))
            }
            (Request::Exec(exec), Handshake::Done) => self.free_stream(exec.stream).map(Some),
            (_, Handshake::Done) => Ok(None),
        }
    }

    fn free_stream(&self, stream: StreamId) -> Result<StreamId, ErrorObject> {
        if self.in_flight.values().any(|used| *used == Some(stream)) {
            let text = format!("the stream {} is in use by another command", stream.0);
            return Err(ErrorObject::new(ErrorCode::InvalidParams, text));
        }
        Ok(stream)
    }

    fn mark_answered(&mut self, id: RequestId, answered: Answered) {
        self.in_flight.remove(&id);
        if self.handshake == Handshake::Pending(id) {
            self.handshake = match answered {
                Answered::Well => Handshake::Done,
                Answered::Badly => Handshake::Missing,
            };
        }
    }
}

#[derive(Clone, Copy)]
enum Answered {
    Well,
    Badly,
}

fn same_version(client: u32) -> Result<(), ErrorObject> {
    if client == PROTOCOL_VERSION {
        return Ok(());
    }
    let older = if client < PROTOCOL_VERSION { "pi extension" } else { "host" };
    let text = format!(
        "the pi extension speaks version {client} of the protocol, the host version {PROTOCOL_VERSION}; \
         update the {older}"
    );
    Err(ErrorObject::new(ErrorCode::VersionMismatch, text))
}

impl<W> Clone for Sender<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<W: Write> Sender<W> {
    /// Answers a request.
    ///
    /// # Errors
    /// Fails when the client is gone.
    pub fn respond(&self, id: RequestId, result: &impl Serialize) -> Result<(), RpcError> {
        let result = raw(result)?;
        self.answer(
            id,
            Answered::Well,
            &Outgoing { id: Some(Some(id)), result: Some(result), ..Outgoing::default() },
        )
    }

    /// Answers a request with an error.
    ///
    /// # Errors
    /// Fails when the client is gone.
    pub fn fail(&self, id: RequestId, error: &ErrorObject) -> Result<(), RpcError> {
        self.answer(
            id,
            Answered::Badly,
            &Outgoing { id: Some(Some(id)), error: Some(error), ..Outgoing::default() },
        )
    }

    /// Sends a question and returns the id of its reply.
    ///
    /// # Errors
    /// Fails when the client is gone.
    pub fn ask(&self, params: &AskParams) -> Result<RequestId, RpcError> {
        let params = raw(params)?;
        let mut shared = self.lock()?;
        let id = RequestId::new(shared.state.next_ask).ok_or(RpcError::Poisoned)?;
        shared.state.next_ask += 1;
        let message =
            Outgoing { id: Some(Some(id)), method: Some("ask"), params: Some(params), ..Outgoing::default() };
        shared.send(&message)?;
        Ok(id)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// Fails when the client is gone.
    pub fn notify(&self, notification: &HostNotification) -> Result<(), RpcError> {
        #[derive(Serialize)]
        struct Notification<'a> {
            jsonrpc: &'static str,
            #[serde(flatten)]
            notification: &'a HostNotification,
        }
        self.lock()?.send(&Notification { jsonrpc: "2.0", notification })
    }

    fn refuse(&self, refused: Refused) -> Result<(), RpcError> {
        let message = Outgoing { id: Some(refused.id), error: Some(&refused.error), ..Outgoing::default() };
        self.lock()?.send(&message)
    }

    fn answer(&self, id: RequestId, answered: Answered, message: &Outgoing<'_>) -> Result<(), RpcError> {
        let mut shared = self.lock()?;
        // INVARIANT: the id is released before the reply is sent, so the client may reuse it at once.
        shared.state.mark_answered(id, answered);
        shared.send(message)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Shared<W>>, RpcError> {
        self.shared.lock().map_err(|_| RpcError::Poisoned)
    }
}

impl<W: Write> Shared<W> {
    fn send(&mut self, message: &impl Serialize) -> Result<(), RpcError> {
        let mut line = serde_json::to_vec(message).map_err(RpcError::Encode)?;
        line.push(b'\n');
        self.output.write_all(&line).and_then(|()| self.output.flush()).map_err(RpcError::Write)
    }
}

/// A message to the client. `id` is null if the id of the request could not be read.
#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<RequestId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObject>,
}

impl Default for Outgoing<'_> {
    fn default() -> Self {
        Self { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None }
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(value).map_err(RpcError::Encode)
}
