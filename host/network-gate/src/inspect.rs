//! What a client sends first, and every plain HTTP request: whether they name the server that was allowed.
//!
//! A connection is allowed to a name, but it goes to an address, behind which there may be many servers. Which of
//! them answers is said in the content: in the TLS client hello, or in each HTTP request. Bytes are forwarded only
//! after that has been read, so nothing that was not looked at leaves.
//!
//! What a connection inside TLS asks for is not seen. Other protocols are not looked into; but until the server has
//! answered in one, what some server could take for a request is not forwarded.

mod chunked;
pub mod client_hello;
pub mod head;
mod opening;
mod server_hello;
mod watch;

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{Endpoint, Stage};

use crate::Refusal;
use crate::judge::{Checks, Stages};
use chunked::Chunked;
use client_hello::{ClientHello, Hello};
use head::{Body, Named};
use opening::{Opening, VERSIONS};
use server_hello::Answer;
use watch::{Found, Watch};

/// `HTTP/1.1 101`, and its length.
const SWITCHED: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.0 101"];
const STATUS: usize = 12;
/// So many of a server's first bytes tell whether it speaks HTTP, or what is read like that.
const SAID: usize = 5;
/// Records of TLS that may stand between two client hellos: the change of ciphers, alerts, and data that was sent
/// early. They are skipped, and no longer than this, see RFC 8446 4.2.10 and 5.2.
const BETWEEN_HELLOS: [u8; 3] = [20, 21, 23];
const RECORD_MAX: usize = (1 << 14) + 256;

/// Why a connection may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It names another server, or hides which one it names.
    Forbidden(Refusal),
    /// A request that servers could read differently.
    Malformed(&'static str),
}

/// Looks at one direction of one connection, from the client to the server.
#[derive(Debug)]
pub struct Inspector {
    host: Endpoint,
    port: u16,
    checks: Checks,
    state: State,
    /// What may not be forwarded yet.
    pending: Vec<u8>,
    /// So much of it is known to have no end of a head in it.
    known: usize,
    /// The first bytes of the server.
    said: Vec<u8>,
    /// Requests that were read whole.
    requests: u64,
    /// Which of the later stages are to be decided about.
    stages: Stages,
    /// What waits for that; nothing behind it goes on.
    seen: Option<Stage>,
    /// What is read next has been decided about.
    is_cleared: bool,
}

#[derive(Debug)]
enum State {
    /// Nothing is known of the protocol.
    Start,
    /// In what seems to be another protocol, as long as the server has not answered in one.
    Other(Watch),
    /// Before or inside the head of a request.
    Head,
    /// Inside a body, with so much left.
    Body(u64),
    Chunked(Chunked),
    /// The client has offered these protocols; what it sends waits for the answer of the server.
    Offered {
        protocols: String,
        answer: Vec<u8>,
    },
    /// The client has said hello in TLS; what it sends waits for the answer of the server.
    Greeted {
        answer: Vec<u8>,
    },
    /// The server wants another hello.
    AnotherHello,
    /// The server has answered in no way that would let the client go on.
    Silenced,
    /// Nothing that follows can be looked at.
    Free,
}

impl Inspector {
    /// Looks at a connection that was allowed to `host` and `port`. An address was judged as itself, whatever the
    /// content says.
    pub fn new(host: &Endpoint, port: u16, checks: Checks, stages: Stages) -> Self {
        let names_match = checks.names_match && matches!(host, Endpoint::Domain(_));
        let is_free = !names_match && !stages.client_hello && !stages.http;
        Self {
            host: host.clone(),
            port,
            checks: Checks { names_match, ..checks },
            state: if is_free { State::Free } else { State::Start },
            pending: Vec::new(),
            known: 0,
            said: Vec::new(),
            requests: 0,
            stages,
            seen: None,
            is_cleared: false,
        }
    }

    /// What has to be decided before [`Self::clear`] lets the rest go on.
    pub fn seen(&self) -> Option<Stage> {
        self.seen.clone()
    }

    /// Says that what was seen may go on.
    pub fn clear(&mut self) {
        self.is_cleared = self.seen.take().is_some();
    }

    /// Whether a stage has to wait for a decision.
    fn waits(&mut self, is_wanted: bool, stage: impl FnOnce() -> Stage) -> bool {
        if !is_wanted || std::mem::take(&mut self.is_cleared) {
            return false;
        }
        self.seen = Some(stage());
        true
    }

    /// Whether everything that follows goes through unseen.
    pub fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether the server has to answer before the client goes on.
    pub fn awaits_answer(&self) -> bool {
        matches!(self.state, State::Offered { .. } | State::Greeted { .. } | State::Silenced)
    }

    /// The server has sent its last; returns whether it never gave an answer that was awaited.
    pub fn server_has_ended(&mut self) -> bool {
        let unanswered = self.awaits_answer();
        if unanswered {
            self.state = State::Silenced;
        }
        unanswered
    }

    /// What was not forwarded.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes what the client sent and returns what may be forwarded.
    ///
    /// # Errors
    /// When the connection may not go on. Nothing of what was not returned before may be forwarded then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        self.pending.extend_from_slice(bytes);
        let mut forward = Vec::new();
        while self.step(&mut forward)? {}
        // Most connections never hold anything again.
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        Ok(forward)
    }

    /// Takes what the server sent, of which only the beginning matters, and what comes while an answer is awaited;
    /// returns whether that was there.
    ///
    /// # Errors
    /// When the two have agreed on what cannot be looked at.
    pub fn answered(&mut self, bytes: &[u8]) -> Result<bool, Stop> {
        let missing = SAID - self.said.len();
        self.said.extend(bytes.iter().take(missing).map(u8::to_ascii_lowercase));
        if matches!(self.state, State::Other(_)) {
            // It has taken for a request what was none here, and the next one is nothing that was looked at.
            if VERSIONS.iter().any(|version| self.said.starts_with(version)) {
                return Err(Stop::Malformed("the server answers in HTTP what is no request of HTTP"));
            }
            if self.has_said_otherwise() {
                self.state = State::Free;
            }
            return Ok(false);
        }
        if let State::Greeted { answer } = &mut self.state {
            answer.extend_from_slice(bytes);
            self.state = match server_hello::read(answer) {
                Answer::Incomplete => return Ok(false),
                Answer::Accepted => State::Free,
                Answer::AnotherHello => State::AnotherHello,
                Answer::Unreadable => State::Silenced,
            };
            return Ok(true);
        }
        let State::Offered { protocols, answer } = &mut self.state else { return Ok(false) };
        answer.extend_from_slice(bytes);
        let Some(status) = answer.get(..STATUS) else { return Ok(false) };
        let is_switched = SWITCHED.contains(&status);
        if is_switched && protocols.split(',').any(|protocol| protocol.trim() == "h2c") {
            return Err(Stop::Forbidden(unreadable()));
        }
        self.state = if is_switched { State::Free } else { State::Head };
        Ok(true)
    }

    /// Whether the server has begun with what is no answer of HTTP.
    fn has_said_otherwise(&self) -> bool {
        let may_be = |version: &&[u8]| {
            let length = self.said.len().min(version.len());
            self.said.get(..length) == version.get(..length)
        };
        !VERSIONS.iter().any(may_be)
    }

    /// Goes on by one step; returns whether there may be another.
    fn step(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        if self.pending.is_empty() || self.seen.is_some() {
            return Ok(false);
        }
        match &mut self.state {
            State::Start => self.start(forward),
            State::Other(_) => self.other(forward),
            State::Head => self.head(forward),
            State::Body(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(self.pending.len());
                *left -= u64::try_from(count).unwrap_or(*left);
                if *left == 0 {
                    self.state = State::Head;
                }
                forward.extend(self.pending.drain(..count));
                Ok(true)
            }
            State::Chunked(chunked) => {
                let count = chunked.take(&self.pending).map_err(Stop::Malformed)?;
                if chunked.is_over() {
                    self.state = State::Head;
                }
                forward.extend(self.pending.drain(..count));
                Ok(count > 0)
            }
            State::AnotherHello => self.another_hello(forward),
            State::Offered { .. } | State::Greeted { .. } => Ok(false),
            State::Silenced => {
                self.pending.clear();
                Ok(false)
            }
            State::Free => {
                forward.append(&mut self.pending);
                Ok(false)
            }
        }
    }

    /// Finds out what the connection speaks.
    fn start(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let opening = Opening::of(&self.pending);
        let is_of_interest = match opening {
            Opening::Tls | Opening::NamelessHello => self.stages.client_hello,
            Opening::Http(_) | Opening::Http2 => self.stages.http,
            Opening::Undecided | Opening::Malformed(_) | Opening::Other => true,
        };
        if !self.checks.names_match && !is_of_interest {
            self.state = State::Free;
            return Ok(true);
        }
        self.state = match opening {
            Opening::Undecided => return Ok(false),
            Opening::Tls => {
                if !self.takes_hello(forward)? {
                    return Ok(false);
                }
                State::Greeted { answer: Vec::new() }
            }
            Opening::NamelessHello => {
                self.hello(&ClientHello { server_name: None, is_hiding: false })?;
                if self.waits(self.stages.client_hello, || Stage::ClientHello(String::new())) {
                    return Ok(false);
                }
                State::Free
            }
            Opening::Http(skipped) => {
                self.pending.drain(..skipped);
                State::Head
            }
            Opening::Http2 => return Err(Stop::Forbidden(unreadable())),
            Opening::Malformed(problem) => return Err(Stop::Malformed(problem)),
            Opening::Other if self.has_said_otherwise() => State::Free,
            Opening::Other => State::Other(Watch::default()),
        };
        Ok(true)
    }

    /// Forwards what comes as long as nothing in it is a request, or names another server, to some servers.
    fn other(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let State::Other(watch) = &mut self.state else { return Ok(false) };
        let found: Vec<Found> = self.pending.iter().filter_map(|&byte| watch.take(byte)).collect();
        for found in found {
            match found {
                Found::Request => {
                    return Err(Stop::Malformed(
                        "the first line is a request to some servers and none to others",
                    ));
                }
                Found::Host(name) => self.line_names(&String::from_utf8_lossy(&name))?,
            }
        }
        forward.append(&mut self.pending);
        Ok(false)
    }

    /// Judges what a line says behind `Host:`. A slash is what STOMP asks for, and the name of no server.
    fn line_names(&self, name: &str) -> Result<(), Stop> {
        let named = head::authority(name).ok();
        let is_allowed = named.as_ref().is_some_and(|named| self.is_allowed(named));
        if is_allowed || name == "/" || !self.checks.names_match {
            return Ok(());
        }
        Err(self.another(named.as_ref().map(|named| &named.host), "a line `Host` of what is no request"))
    }

    /// Forwards the hello that comes next, and nothing behind it, once it is whole and names the right server.
    fn takes_hello(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        match client_hello::read(&self.pending) {
            Hello::Incomplete => Ok(false),
            Hello::Malformed(problem) => Err(Stop::Malformed(problem)),
            Hello::Whole(hello, length) => {
                self.hello(&hello)?;
                let name = || Stage::ClientHello(hello.server_name.clone().unwrap_or_default());
                if self.waits(self.stages.client_hello, name) {
                    return Ok(false);
                }
                forward.extend(self.pending.drain(..length));
                Ok(true)
            }
        }
    }

    /// Goes on to the second hello.
    fn another_hello(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let &[kind, ref rest @ ..] = self.pending.as_slice() else { return Ok(false) };
        if !BETWEEN_HELLOS.contains(&kind) {
            let is_there = self.takes_hello(forward)?;
            if is_there {
                self.state = State::Free;
            }
            return Ok(is_there);
        }
        let &[major, _, high, low, ..] = rest else { return Ok(false) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if major != 3 || length > RECORD_MAX {
            return Err(Stop::Malformed("a TLS record before the second client hello is malformed"));
        }
        let is_whole = self.pending.len() >= 5 + length;
        if is_whole {
            forward.extend(self.pending.drain(..5 + length));
        }
        Ok(is_whole)
    }

    fn hello(&self, hello: &ClientHello) -> Result<(), Stop> {
        if !self.checks.names_match {
            return Ok(());
        }
        if hello.is_hiding && !self.checks.hidden_names {
            let reason =
                "TLS hides the name of the server (ECH), so it cannot be compared to the allowed one";
            return Err(forbidden("host.hidden-server-name", reason.to_owned()));
        }
        let Some(name) = &hello.server_name else {
            if self.checks.hidden_names {
                return Ok(());
            }
            let reason =
                "TLS does not say the name of the server, so it cannot be compared to the allowed one";
            return Err(forbidden("host.no-server-name", reason.to_owned()));
        };
        let named = HostName::parse(name).ok().filter(|_| name.is_ascii());
        if named.as_ref() == Some(&self.host) {
            return Ok(());
        }
        Err(self.another(named.as_ref(), "TLS"))
    }

    fn head(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let known = std::mem::take(&mut self.known);
        let Some(end) = head::end_behind(&self.pending, known).map_err(Stop::Malformed)? else {
            self.known = self.pending.len();
            return Ok(false);
        };
        let head = head::read(self.pending.get(..end).unwrap_or_default()).map_err(Stop::Malformed)?;
        if let Some(other) = head.names.iter().find(|named| !self.is_allowed(named)) {
            return Err(self.another(Some(&other.host), "the request"));
        }
        if self.checks.names_match && !self.checks.hidden_names && head.names.is_empty() {
            let reason = "the request does not say the name of the server, so it cannot be compared to the allowed one";
            return Err(forbidden("host.no-server-name", reason.to_owned()));
        }
        if self.waits(self.stages.http, || Stage::Http(head.shown)) {
            return Ok(false);
        }
        self.requests += 1;
        self.state = match (head.body, head.upgrade) {
            (Body::Tunnel, _) => State::Offered { protocols: String::new(), answer: Vec::new() },
            // Behind other requests it could not be told which answer is the one to the offer.
            (_, Some(_)) if self.requests > 1 => {
                return Err(Stop::Malformed(
                    "only the first request of a connection may offer another protocol",
                ));
            }
            (Body::Bytes(0), Some(protocols)) => State::Offered { protocols, answer: Vec::new() },
            (_, Some(_)) => return Err(Stop::Malformed("a request with content offers another protocol")),
            (Body::Bytes(0), None) => State::Head,
            (Body::Bytes(count), None) => State::Body(count),
            (Body::Chunked, None) => State::Chunked(Chunked::default()),
        };
        forward.extend(self.pending.drain(..end));
        Ok(true)
    }

    fn is_allowed(&self, named: &Named) -> bool {
        !self.checks.names_match || named.host == self.host && named.port.is_none_or(|port| port == self.port)
    }

    fn another(&self, named: Option<&Endpoint>, who: &str) -> Stop {
        let other = named.map_or_else(|| "a name that is none".to_owned(), |named| format!("`{named}`"));
        forbidden(
            "host.other-server",
            format!("{who} names {other}, but the connection is to `{}`", self.host),
        )
    }
}

fn forbidden(rule: &str, reason: String) -> Stop {
    Stop::Forbidden(Refusal::of_gate(rule, reason))
}

fn unreadable() -> Refusal {
    Refusal::of_gate("host.unreadable-http", "HTTP/2 without TLS hides which server a request names")
}

#[cfg(test)]
mod tests;
