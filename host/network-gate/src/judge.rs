//! The interface between the gate and the code that decides.

use std::net::IpAddr;
use std::sync::Arc;

use portcullis_credential_broker::Broker;
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{HttpHead, NetworkAccess};
use portcullis_decision::{Decision, Permit, Request};

use crate::upstream::Upstream;

/// A connection that needs a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionAttempt {
    /// The destination, and the process that connects.
    pub access: NetworkAccess,
    /// The root process of the command that the process belongs to. If the process is unknown, it is that of the only
    /// command that runs, and 0 if there are none or several; see [`Running`].
    pub command: u32,
    /// The kind of the attempt.
    pub want: Want,
    /// The name of the credential that the gate would put into the request, at the stage of HTTP.
    pub credential: Option<String>,
}

/// The kind of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// Make the connection.
    Connect,
    /// Send more bytes than the budget allows.
    SendMore {
        /// Bytes sent to this host and port so far, over all connections of the session.
        sent: u64,
    },
}

/// The verdict on an attempt.
#[derive(Debug)]
pub enum Judgement {
    /// The attempt is allowed; the permit is for exactly this access.
    Allow(Permit),
    /// Only the user can decide; see [`Judge::ask`].
    Ask(Box<Undecided>),
    /// The attempt is denied.
    Deny(ConnectionRefusal),
}

/// An attempt on which only the user can decide, with the decision so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// The attempt.
    pub attempt: ConnectionAttempt,
    /// The request for it.
    pub request: Request,
    /// The decision that asks.
    pub decision: Decision,
    /// The judge's number for the state on which the decision depends.
    pub revision: u64,
}

/// The commands that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// No command.
    None,
    /// One command; its root process.
    One(u32),
    /// More than one command.
    Several,
}

/// The verdict of the rules on an address: one that a name resolved to, or that was requested directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressRuling {
    /// A rule or the user named this address, or a block that contains it, and allows it.
    Named,
    /// No rule names it.
    Unnamed,
    /// It is denied, whatever name resolved to it.
    Denied(ConnectionRefusal),
}

/// The summary of a finished connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub how: Ending,
    /// Bytes sent to the server.
    pub sent: u64,
    /// Bytes received from the server.
    pub received: u64,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The client or the server closed it.
    Closed,
    /// The gate refused it after the verdict: because of its address or its content, or by a later decision.
    Refused(ConnectionRefusal),
    /// The server cannot be reached, for this reason.
    Unreachable(String),
}

/// The checks that apply to the content of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// The name in a TLS client hello and in every plain HTTP request must be the allowed one; of a connection to an
    /// address, the target of a request to a proxy.
    pub names_match: bool,
    /// TLS may hide or omit the name of the server.
    pub hidden_names: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { names_match: true, hidden_names: false }
    }
}

/// The later stages of a connection that a policy wants to decide about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages {
    /// After the name is resolved, before the connection is made.
    pub resolved: bool,
    /// After the client has sent its TLS client hello, before the hello is forwarded.
    pub client_hello: bool,
    /// For every plain HTTP request, before it is forwarded.
    pub http: bool,
}

/// Decides about connections. It is called on threads that may block.
pub trait Judge: Send + Sync + 'static {
    /// Decides without asking the user, and logs the verdict unless that is [`Judgement::Ask`].
    fn decide(&self, attempt: &ConnectionAttempt) -> Judgement;

    /// Returns the judgement on an attempt that has waited: an answer given in the meantime may cover it.
    ///
    /// The attempt is decided again only if something that its decision depends on has changed.
    fn review(&self, undecided: Box<Undecided>) -> Judgement;

    /// Puts all waiting attempts to the user as one question, and waits for the answer.
    ///
    /// Returns one judgement for each attempt, in the same order. [`Judgement::Ask`] marks attempts that the question
    /// did not cover and that the next question takes up; it is never the judgement for all of them. `round` identifies
    /// the question for [`Self::withdraw`].
    fn ask(&self, round: u64, attempts: Vec<Undecided>) -> Vec<Judgement>;

    /// Withdraws a question, because all connections that waited for its answer have gone.
    fn withdraw(&self, round: u64);

    /// Returns the verdict of the rules on the address itself.
    fn address(&self, attempt: &ConnectionAttempt, address: IpAddr) -> AddressRuling;

    /// Returns how many bytes a session may send to this host and port before the judge is asked again.
    fn budget(&self, attempt: &ConnectionAttempt) -> u64;

    /// Returns the checks in force.
    fn checks(&self) -> Checks;

    /// Returns the later stages at which allowed connections are put to [`Self::decide`] again.
    fn stages(&self) -> Stages;

    /// Returns the user's own proxy for this connection; `None` means a direct connection.
    fn upstream(&self, attempt: &ConnectionAttempt) -> Option<Upstream>;

    /// Returns the brokered hosts; `None` if there are none.
    ///
    /// # Errors
    /// When they cannot be set up. No connection is carried then, because its requests may have to be checked.
    fn broker(&self) -> Result<Option<Arc<Broker>>, ConnectionRefusal>;

    /// Records that a credential is put into a request on a connection that `request` allowed.
    fn credential_used(&self, request: &str, name: &str, head: &HttpHead);

    /// Returns which commands run.
    fn running(&self) -> Running;

    /// Returns true if the command with this root process has ended.
    fn has_ended(&self, command: u32) -> bool;

    /// Reports a connection that is refused because too many are open.
    fn overloaded(&self, why: &str);

    /// Reports the end of a connection that `request` allowed.
    fn ended(&self, attempt: &ConnectionAttempt, request: &str, ended: &Ended);
}
