//! Checks that the first bytes of a client, and every plain HTTP request, name the server that was allowed.
//!
//! A connection is allowed to a name, but it goes to an address that many servers may share. The content selects the
//! server: the TLS client hello, or each HTTP request. Bytes are forwarded only after this part has been read, so no
//! unchecked byte leaves.
//!
//! Where the connection is allowed to an address, names are not compared. Only a request that asks a proxy for another
//! server is refused, because a proxy at that address would pass it on.
//!
//! Requests inside TLS cannot be seen. Other protocols are not parsed, but until the server has answered in such a
//! protocol, bytes that some server could take for an HTTP request are not forwarded.

mod chunked;
pub mod client_hello;
pub mod head;
mod opening;
mod server_hello;
mod watch;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{Endpoint, Stage};

use crate::judge::{Checks, Stages};
use crate::names::is_localhost;
use chunked::Chunked;
use client_hello::{ClientHello, Hello};
use head::{Body, Named};
use opening::{Opening, VERSIONS};
use server_hello::ServerReply;
use watch::{Finding, Watch};

/// The beginning of an HTTP response that switches protocols, and its length.
const SWITCHED: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.0 101"];
const STATUS: usize = 12;
/// How many of the server's first bytes are kept: they tell whether it speaks HTTP or a similar protocol.
const SAID: usize = 5;
/// TLS record types that may come between two client hellos.
///
/// These are the change of cipher spec, alerts, and early data. They are skipped, up to this length, see RFC 8446
/// 4.2.10 and 5.2.
const BETWEEN_HELLOS: [u8; 3] = [20, 21, 23];
const RECORD_MAX: usize = (1 << 14) + 256;

/// The reason why a connection is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It names another server, or hides the name.
    Forbidden(ConnectionRefusal),
    /// It contains a request that servers could read differently.
    Malformed(&'static str),
}

/// Inspects one connection in the direction from the client to the server.
#[derive(Debug)]
pub struct Inspector {
    host: Endpoint,
    port: u16,
    /// TLS may hide or omit the name of the server.
    hidden_names: bool,
    /// Hosts whose requests are limited. No connection to another target may name them: an address could be theirs.
    limited: Vec<Endpoint>,
    compared: Compared,
    state: StreamState,
    /// Bytes that may not be forwarded yet.
    pending: Vec<u8>,
    /// The length of the prefix of `pending` that contains no end of a head.
    known: usize,
    /// The first bytes of the server.
    said: Vec<u8>,
    /// The number of complete requests.
    requests: u64,
    /// The later stages that need a decision.
    stages: Stages,
    /// The stage that waits for its decision; no byte after it is forwarded.
    seen: Option<Stage>,
    /// The next stage has been decided.
    is_cleared: bool,
}

/// The part of the content that is compared with the allowed server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Every name.
    Names,
    /// The target of a request in the words of a proxy's client. Names are free: programs know an address by names
    /// that this crate does not, as those in `/etc/hosts`.
    ProxyTargets,
    Nothing,
}

#[derive(Debug)]
enum StreamState {
    /// The protocol is unknown.
    Start,
    /// Apparently another protocol, whose server has not answered yet.
    Other(Watch),
    /// Before or inside the head of a request.
    Head,
    /// Inside a body, with this many bytes left.
    Body(u64),
    Chunked(Chunked),
    /// The client has offered these protocols; its further bytes wait for the server's answer.
    Offered {
        protocols: String,
        answer: Vec<u8>,
    },
    /// The client has sent a TLS client hello; its further bytes wait for the server's answer.
    Greeted {
        answer: Vec<u8>,
    },
    /// The server wants a second client hello.
    AnotherHello,
    /// The server's answer does not let the client continue.
    Silenced,
    /// Further bytes cannot be inspected and are forwarded as they are.
    Free,
}

impl Inspector {
    /// Creates the inspector of a connection that is allowed to `host` and `port`.
    ///
    /// If `host` is an address, the names in the content are not compared, but a request that asks a proxy for another
    /// server is refused.
    pub fn new(host: &Endpoint, port: u16, checks: Checks, stages: Stages) -> Self {
        let compared = match (checks.names_match, host) {
            (false, Endpoint::Domain(_) | Endpoint::Address(_)) => Compared::Nothing,
            (true, Endpoint::Domain(_)) => Compared::Names,
            (true, Endpoint::Address(_)) => Compared::ProxyTargets,
        };
        let is_free = compared == Compared::Nothing && !stages.client_hello && !stages.http;
        Self {
            host: host.clone(),
            port,
            hidden_names: checks.hidden_names,
            limited: Vec::new(),
            compared,
            state: if is_free { StreamState::Free } else { StreamState::Start },
            pending: Vec::new(),
            known: 0,
            said: Vec::new(),
            requests: 0,
            stages,
            seen: None,
            is_cleared: false,
        }
    }

    /// Refuses to name these hosts in a connection to another one.
    pub fn without(mut self, limited: Vec<Endpoint>) -> Self {
        self.limited = limited;
        self.limited.retain(|host| *host != self.host);
        if !self.limited.is_empty() && self.is_free() {
            self.state = StreamState::Start;
        }
        self
    }

    /// Returns the stage that needs a decision; [`Self::clear`] lets it continue.
    pub fn seen(&self) -> Option<Stage> {
        self.seen.clone()
    }

    /// Marks the waiting stage as allowed.
    pub fn clear(&mut self) {
        self.is_cleared = self.seen.take().is_some();
    }

    /// Returns true if a stage has to wait for a decision.
    fn waits(&mut self, is_wanted: bool, stage: impl FnOnce() -> Stage) -> bool {
        if !is_wanted || std::mem::take(&mut self.is_cleared) {
            return false;
        }
        self.seen = Some(stage());
        true
    }

    /// Returns true if all further bytes are forwarded without inspection.
    pub fn is_free(&self) -> bool {
        matches!(self.state, StreamState::Free)
    }

    /// Returns true if the server has to answer before the client's bytes are forwarded.
    pub fn awaits_answer(&self) -> bool {
        matches!(
            self.state,
            StreamState::Offered { .. } | StreamState::Greeted { .. } | StreamState::Silenced
        )
    }

    /// Records that the server has ended; returns true if an expected answer is missing.
    pub fn server_has_ended(&mut self) -> bool {
        let unanswered = self.awaits_answer();
        if unanswered {
            self.state = StreamState::Silenced;
        }
        unanswered
    }

    /// Returns the bytes that were not forwarded.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes bytes of the client and returns the bytes that may be forwarded.
    ///
    /// # Errors
    /// If the connection must be stopped. Bytes that were not returned before must not be forwarded then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Stop> {
        self.pending.extend_from_slice(bytes);
        let mut forward = Vec::new();
        while self.step(&mut forward)? {}
        // Free the memory: most connections never hold bytes again.
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        Ok(forward)
    }

    /// Takes bytes of the server; returns true if they complete an expected answer.
    ///
    /// Only the beginning of the stream and an expected answer matter.
    ///
    /// # Errors
    /// If the client and the server have agreed on a protocol that cannot be inspected.
    pub fn answered(&mut self, bytes: &[u8]) -> Result<bool, Stop> {
        let missing = SAID - self.said.len();
        self.said.extend(bytes.iter().take(missing).map(u8::to_ascii_lowercase));
        if matches!(self.state, StreamState::Other(_)) {
            // The server has read an HTTP request that this inspector did not see, so the next request would be
            // unchecked as well.
            if VERSIONS.iter().any(|version| self.said.starts_with(version)) {
                return Err(Stop::Malformed("the server answers in HTTP to bytes that are not HTTP"));
            }
            if self.has_said_otherwise() {
                self.state = StreamState::Free;
            }
            return Ok(false);
        }
        if let StreamState::Greeted { answer } = &mut self.state {
            answer.extend_from_slice(bytes);
            self.state = match server_hello::read(answer) {
                ServerReply::Incomplete => return Ok(false),
                ServerReply::Accepted => StreamState::Free,
                ServerReply::AnotherHello => StreamState::AnotherHello,
                ServerReply::Unreadable => StreamState::Silenced,
            };
            return Ok(true);
        }
        let StreamState::Offered { protocols, answer } = &mut self.state else { return Ok(false) };
        answer.extend_from_slice(bytes);
        let Some(status) = answer.get(..STATUS) else { return Ok(false) };
        let is_switched = SWITCHED.contains(&status);
        let is_http2 = is_switched && protocols.split(',').any(|protocol| protocol.trim() == "h2c");
        if is_http2 && self.reads_http2() {
            return Err(Stop::Forbidden(unreadable()));
        }
        self.state = if is_switched { StreamState::Free } else { StreamState::Head };
        Ok(true)
    }

    fn compares_names(&self) -> bool {
        self.compared == Compared::Names
    }

    /// Returns true if every request has to be read, so that HTTP/2 without TLS cannot pass.
    fn reads_http2(&self) -> bool {
        self.compares_names() || self.stages.http
    }

    /// Returns true if the server's first bytes are not an HTTP response.
    fn has_said_otherwise(&self) -> bool {
        let may_be = |version: &&[u8]| {
            let length = self.said.len().min(version.len());
            self.said.get(..length) == version.get(..length)
        };
        !VERSIONS.iter().any(may_be)
    }

    /// Performs one step; returns true if another one may follow.
    fn step(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        if self.pending.is_empty() || self.seen.is_some() {
            return Ok(false);
        }
        match &mut self.state {
            StreamState::Start => self.start(forward),
            StreamState::Other(_) => self.other(forward),
            StreamState::Head => self.head(forward),
            StreamState::Body(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(self.pending.len());
                *left -= u64::try_from(count).unwrap_or(*left);
                if *left == 0 {
                    self.state = StreamState::Head;
                }
                forward.extend(self.pending.drain(..count));
                Ok(true)
            }
            StreamState::Chunked(chunked) => {
                let count = chunked.take(&self.pending).map_err(Stop::Malformed)?;
                if chunked.is_over() {
                    self.state = StreamState::Head;
                }
                forward.extend(self.pending.drain(..count));
                Ok(count > 0)
            }
            StreamState::AnotherHello => self.another_hello(forward),
            StreamState::Offered { .. } | StreamState::Greeted { .. } => Ok(false),
            StreamState::Silenced => {
                self.pending.clear();
                Ok(false)
            }
            StreamState::Free => {
                forward.append(&mut self.pending);
                Ok(false)
            }
        }
    }

    /// Determines the protocol of the connection.
    fn start(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let opening = Opening::classify(&self.pending);
        let is_of_interest = match opening {
            Opening::Tls | Opening::NamelessHello => {
                self.compares_names() || self.stages.client_hello || !self.limited.is_empty()
            }
            Opening::Http(_) => {
                self.compared != Compared::Nothing || self.stages.http || !self.limited.is_empty()
            }
            Opening::Http2 => self.reads_http2(),
            Opening::Undecided | Opening::Malformed(_) | Opening::Other => true,
        };
        if !is_of_interest {
            self.state = StreamState::Free;
            return Ok(true);
        }
        self.state = match opening {
            Opening::Undecided => return Ok(false),
            Opening::Tls => {
                if !self.takes_hello(forward)? {
                    return Ok(false);
                }
                StreamState::Greeted { answer: Vec::new() }
            }
            Opening::NamelessHello => {
                self.hello(&ClientHello { server_name: None, is_hiding: false })?;
                if self.waits(self.stages.client_hello, || Stage::ClientHello(String::new())) {
                    return Ok(false);
                }
                StreamState::Free
            }
            Opening::Http(skipped) => {
                self.pending.drain(..skipped);
                StreamState::Head
            }
            Opening::Http2 => return Err(Stop::Forbidden(unreadable())),
            Opening::Malformed(problem) => return Err(Stop::Malformed(problem)),
            Opening::Other if self.has_said_otherwise() => StreamState::Free,
            Opening::Other => StreamState::Other(Watch::default()),
        };
        Ok(true)
    }

    /// Forwards bytes as long as no server could find a request or the name of another server in them.
    fn other(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let StreamState::Other(watch) = &mut self.state else { return Ok(false) };
        let found: Vec<Finding> = self.pending.iter().filter_map(|&byte| watch.take(byte)).collect();
        for found in found {
            match found {
                Finding::Request => {
                    return Err(Stop::Malformed(
                        "the first line is a request to some servers and none to others",
                    ));
                }
                Finding::Host(name) => self.line_names(&String::from_utf8_lossy(&name))?,
            }
        }
        forward.append(&mut self.pending);
        Ok(false)
    }

    /// Checks the value of a line `Host:`. A slash is STOMP's default and does not name a server.
    fn line_names(&self, name: &str) -> Result<(), Stop> {
        let named = head::authority(name).ok();
        let is_allowed = named.as_ref().is_some_and(|named| self.is_allowed(named));
        if is_allowed || name == "/" || !self.compares_names() {
            return Ok(());
        }
        Err(self.another(named.as_ref().map(|named| &named.host), "a line `Host` outside an HTTP request"))
    }

    /// Forwards the next client hello, but no byte after it, once it is complete and names the right server.
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

    /// Forwards the records before the second client hello, and then that hello.
    fn another_hello(&mut self, forward: &mut Vec<u8>) -> Result<bool, Stop> {
        let &[kind, ref rest @ ..] = self.pending.as_slice() else { return Ok(false) };
        if !BETWEEN_HELLOS.contains(&kind) {
            let is_there = self.takes_hello(forward)?;
            if is_there {
                self.state = StreamState::Free;
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
        if let Some(Ok(named)) = hello.server_name.as_deref().map(HostName::parse) {
            self.is_not_limited(&named, "TLS")?;
        }
        if !self.compares_names() {
            return Ok(());
        }
        if hello.is_hiding && !self.hidden_names {
            let reason =
                "TLS hides the name of the server (ECH), so it cannot be compared to the allowed one";
            return Err(forbidden("host.hidden-server-name", reason.to_owned()));
        }
        let Some(name) = &hello.server_name else {
            if self.hidden_names {
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
        for named in &head.names {
            self.is_not_limited(&named.host, "the request")?;
        }
        if let Some(other) = head.names.iter().find(|named| !self.is_allowed(named)) {
            return Err(self.another(Some(&other.host), "the request"));
        }
        if let Some(other) = head.proxied.as_ref().filter(|named| !self.is_itself(named)) {
            return Err(self.for_another(other));
        }
        if self.compares_names() && !self.hidden_names && head.names.is_empty() {
            let reason = "the request does not say the name of the server, so it cannot be compared to the allowed one";
            return Err(forbidden("host.no-server-name", reason.to_owned()));
        }
        if self.waits(self.stages.http, || Stage::Http(head.shown)) {
            return Ok(false);
        }
        self.requests += 1;
        self.state = match (head.body, head.upgrade) {
            (Body::Tunnel, _) => StreamState::Offered { protocols: String::new(), answer: Vec::new() },
            // After other requests, it would be unclear which response answers the offer.
            (_, Some(_)) if self.requests > 1 => {
                return Err(Stop::Malformed(
                    "only the first request of a connection may offer another protocol",
                ));
            }
            (Body::Bytes(0), Some(protocols)) => StreamState::Offered { protocols, answer: Vec::new() },
            (_, Some(_)) => return Err(Stop::Malformed("a request with content offers another protocol")),
            (Body::Bytes(0), None) => StreamState::Head,
            (Body::Bytes(count), None) => StreamState::Body(count),
            (Body::Chunked, None) => StreamState::Chunked(Chunked::default()),
        };
        forward.extend(self.pending.drain(..end));
        Ok(true)
    }

    fn is_not_limited(&self, named: &Endpoint, who: &str) -> Result<(), Stop> {
        if self.limited.contains(named) { Err(self.another(Some(named), who)) } else { Ok(()) }
    }

    fn is_allowed(&self, named: &Named) -> bool {
        !self.compares_names() || named.host == self.host && named.port.is_none_or(|port| port == self.port)
    }

    /// Returns true unless the allowed server is an address, and a proxy there would pass the request on to another.
    fn is_itself(&self, proxied: &Named) -> bool {
        let is_here = |host: &Endpoint| match host {
            Endpoint::Domain(name) => is_localhost(name),
            Endpoint::Address(address) => address.is_loopback(),
        };
        let is_host = proxied.host == self.host || is_here(&self.host) && is_here(&proxied.host);
        self.compared != Compared::ProxyTargets || is_host && proxied.port == Some(self.port)
    }

    fn for_another(&self, Named { host, port }: &Named) -> Stop {
        let other = port.map_or_else(|| host.to_string(), |port| host.with_port(port));
        let own = self.host.with_port(self.port);
        let reason = format!("the request asks a proxy for `{other}`, but the connection is to `{own}`");
        forbidden("host.other-server", reason)
    }

    fn another(&self, named: Option<&Endpoint>, who: &str) -> Stop {
        let other = named.map_or_else(|| "an invalid name".to_owned(), |named| format!("`{named}`"));
        forbidden(
            "host.other-server",
            format!("{who} names {other}, but the connection is to `{}`", self.host),
        )
    }
}

fn forbidden(rule: &str, reason: String) -> Stop {
    Stop::Forbidden(ConnectionRefusal::by_host(rule, reason))
}

fn unreadable() -> ConnectionRefusal {
    ConnectionRefusal::by_host(
        "host.unreadable-http",
        "HTTP/2 without TLS hides which server a request names",
    )
}

#[cfg(test)]
mod tests;
