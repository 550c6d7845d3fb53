//! What a client sends first, and every plain HTTP request: whether they name the server that was allowed.
//!
//! A connection is allowed to a name, but it goes to an address, behind which there may be many servers. Which of
//! them answers is said in the content: in the TLS client hello, or in each HTTP request. Bytes are forwarded only
//! after that has been read, so nothing that was not looked at leaves.
//!
//! What a connection inside TLS asks for is not seen, and no other protocol is looked into.

mod chunked;
mod client_hello;
mod head;

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{Endpoint, Stage};

use crate::Refusal;
use crate::judge::{Checks, Stages};
use chunked::Chunked;
use client_hello::Hello;
pub(crate) use client_hello::is_tls;
use head::{Body, Named};
pub(crate) use head::{Ordered, end as end_of_head, order};

/// A first line that is longer belongs to no HTTP request.
const LINE_MAX: usize = 16 * 1024;
/// `HTTP/1.1 101`, and its length.
const SWITCHED: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.0 101"];
const STATUS: usize = 12;
const METHODS: [&[u8]; 9] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"CONNECT "];
const HTTP_2: &[u8] = b"PRI * HTTP/2.0";

/// Why a connection may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It names another server, or hides which one it names.
    Forbidden(Refusal),
    /// A request that servers could read differently.
    Malformed(&'static str),
}

/// Looks at one direction of one connection, from the client to the server.
#[derive(Debug)]
pub(crate) struct Inspector {
    host: Endpoint,
    port: u16,
    checks: Checks,
    state: State,
    /// What may not be forwarded yet.
    pending: Vec<u8>,
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
    /// Nothing that follows can be looked at.
    Free,
}

impl Inspector {
    /// Looks at a connection that was allowed to `host` and `port`. An address was judged as itself, whatever the
    /// content says.
    pub(crate) fn new(host: &Endpoint, port: u16, checks: Checks, stages: Stages) -> Self {
        let names_match = checks.names_match && matches!(host, Endpoint::Domain(_));
        let is_free = !names_match && !stages.client_hello && !stages.http;
        Self {
            host: host.clone(),
            port,
            checks: Checks { names_match, ..checks },
            state: if is_free { State::Free } else { State::Start },
            pending: Vec::new(),
            requests: 0,
            stages,
            seen: None,
            is_cleared: false,
        }
    }

    /// What has to be decided before [`Self::clear`] lets the rest go on.
    pub(crate) fn seen(&self) -> Option<Stage> {
        self.seen.clone()
    }

    /// Says that what was seen may go on.
    pub(crate) fn clear(&mut self) {
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
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether the server has to answer before the client goes on.
    pub(crate) fn awaits_answer(&self) -> bool {
        matches!(self.state, State::Offered { .. })
    }

    /// What was not forwarded.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes what the client sent and returns what may be forwarded.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        self.pending.extend_from_slice(bytes);
        let mut forward = Vec::new();
        while self.step(&mut forward)? {}
        Ok(forward)
    }

    /// Takes what the server sent, which only matters while its answer is awaited; returns whether it was there.
    pub(crate) fn answered(&mut self, bytes: &[u8]) -> Result<bool, Stop> {
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

    /// Goes on by one step; returns whether there may be another.
    fn step(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        if self.pending.is_empty() || self.seen.is_some() {
            return Ok(false);
        }
        match &mut self.state {
            State::Start => self.start(),
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
            State::Offered { .. } => Ok(false),
            State::Free => {
                forward.append(&mut self.pending);
                Ok(false)
            }
        }
    }

    /// Finds out what the connection speaks.
    fn start(&mut self) -> Result<bool, Stop> {
        let bytes = self.pending.as_slice();
        let is_tls = bytes.first().is_some_and(|&first| is_tls(first));
        let is_of_interest = if is_tls { self.stages.client_hello } else { self.stages.http };
        if !self.checks.names_match && !is_of_interest {
            self.state = State::Free;
            return Ok(true);
        }
        if is_tls {
            return match client_hello::read(bytes) {
                Hello::Incomplete => Ok(false),
                Hello::Malformed(problem) => Err(Stop::Malformed(problem)),
                Hello::Whole(hello) => {
                    self.hello(&hello)?;
                    let name = || Stage::ClientHello(hello.server_name.clone().unwrap_or_default());
                    if self.waits(self.stages.client_hello, name) {
                        return Ok(false);
                    }
                    self.state = State::Free;
                    Ok(true)
                }
            };
        }
        // Servers skip empty lines before the first request.
        let begin = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
        let bytes = bytes.get(begin..).unwrap_or_default();
        let known = bytes.get(..HTTP_2.len()).unwrap_or(bytes);
        if known == HTTP_2 {
            return Err(Stop::Forbidden(unreadable()));
        }
        let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let is_whole = line.len() < bytes.len();
        let is_text = line.iter().copied().all(is_text);
        let has_method = METHODS.iter().any(|method| line.starts_with(method));
        let has_version = is_text && is_whole && line.windows(6).any(|part| part == b" HTTP/");
        if has_method || has_version {
            self.pending.drain(..begin);
            self.state = State::Head;
        } else if is_whole || !is_text || line.len() > LINE_MAX {
            self.state = State::Free;
        } else {
            // A line that has no end yet could still become a request.
            return Ok(false);
        }
        Ok(true)
    }

    fn hello(&self, hello: &client_hello::ClientHello) -> Result<(), Stop> {
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
        let Some(end) = head::end(&self.pending).map_err(Stop::Malformed)? else { return Ok(false) };
        let head = head::read(self.pending.get(..end).unwrap_or_default()).map_err(Stop::Malformed)?;
        if let Some(other) = head.names.iter().find(|named| !self.is_allowed(named)) {
            return Err(self.another(Some(&other.host), "the request"));
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

/// Whether the byte may stand in the first line of a request.
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\t' | b' '..=b'~') || byte >= 0x80
}

fn forbidden(rule: &str, reason: String) -> Stop {
    Stop::Forbidden(Refusal::of_gate(rule, reason))
}

fn unreadable() -> Refusal {
    Refusal::of_gate("host.unreadable-http", "HTTP/2 without TLS hides which server a request names")
}

#[cfg(test)]
mod tests;
