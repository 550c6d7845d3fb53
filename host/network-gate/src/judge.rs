//! What the gate asks of whoever decides.

use std::net::IpAddr;

use portcullis_decision::Permit;
use portcullis_decision::request::NetworkAccess;

use crate::Upstream;

/// A connection that wants to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Where to, and by which process.
    pub access: NetworkAccess,
    /// The process below which everything of the same command is; 0 where it is not known.
    pub command: u32,
    /// What it wants.
    pub want: Want,
}

/// What a connection wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// To be made.
    Connect,
    /// To send more than its budget.
    SendMore {
        /// Bytes sent to this host and port so far, over all connections of the session.
        sent: u64,
    },
}

/// The answer to an attempt.
#[derive(Debug)]
pub enum Judgement {
    /// It may go on; the permit is for exactly this access.
    Allow(Permit),
    /// Only the user can say; see [`Judge::ask`].
    Ask,
    /// It may not.
    Deny(Refusal),
}

/// Why something may not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whose rule it is.
    pub policy: String,
    /// The rule.
    pub rule: String,
    /// One sentence, safe to show.
    pub reason: String,
}

impl Refusal {
    /// A refusal by the gate itself.
    pub(crate) fn of_gate(rule: &str, reason: impl Into<String>) -> Self {
        Self { policy: "host".to_owned(), rule: rule.to_owned(), reason: reason.into() }
    }
}

/// What the rules say of an address that a name has led to, or that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressRuling {
    /// A rule or the user named this address, or a block that holds it, and allows it.
    Named,
    /// Nobody spoke of it.
    Unnamed,
    /// It is denied under whatever name.
    Denied(Refusal),
}

/// What a connection was, told at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub how: Ending,
    /// Bytes to the other side.
    pub sent: u64,
    /// Bytes from the other side.
    pub received: u64,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// One of the two sides closed it.
    Closed,
    /// The gate refused what was found out after the verdict.
    Refused(Refusal),
    /// The other side cannot be reached.
    Unreachable(String),
}

/// Which checks hold for what is seen of a connection's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// The name in a TLS client hello and in every plain HTTP request must be the one that was allowed.
    pub names_match: bool,
    /// TLS may hide the name of the server, or not say it.
    pub hidden_names: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { names_match: true, hidden_names: false }
    }
}

/// Which later stages somebody wants to decide about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages {
    /// Once the name is resolved, before the connection is made.
    pub resolved: bool,
    /// Once the client has begun TLS, before that is sent on.
    pub client_hello: bool,
    /// For every request in plain HTTP, before it is sent on.
    pub http: bool,
}

/// Decides about connections; asked from threads that may wait.
pub trait Judge: Send + Sync + 'static {
    /// Decides without asking anybody, and writes it down unless the answer is to ask.
    fn decide(&self, attempt: &Attempt) -> Judgement;

    /// Puts everything that waits to the user as one question, and waits for the answer.
    ///
    /// There is an answer for each attempt, in their order. To ask is one for those that the question was not about,
    /// which are asked about next; never for all of them.
    /// `round` names the question for [`Self::withdraw`].
    fn ask(&self, round: u64, attempts: &[Attempt]) -> Vec<Judgement>;

    /// Takes a question back, because nobody waits for its answer any more.
    fn withdraw(&self, round: u64);

    /// Says whether the address itself may be reached.
    fn address(&self, attempt: &Attempt, address: IpAddr) -> AddressRuling;

    /// How many bytes may be sent to this host and port in the session before it is asked again.
    fn budget(&self, attempt: &Attempt) -> u64;

    /// Which checks hold.
    fn checks(&self) -> Checks;

    /// Which later stages of allowed connections are put to [`Self::decide`], too.
    fn stages(&self) -> Stages;

    /// The proxy of the user's through which this connection goes; nothing where it goes directly.
    fn upstream(&self, attempt: &Attempt) -> Option<Upstream>;

    /// Hears that connections are refused for want of room, for each of them.
    fn overloaded(&self, why: &str);

    /// Hears what became of a connection that was allowed by `request`.
    fn ended(&self, attempt: &Attempt, request: &str, ended: &Ended);
}
