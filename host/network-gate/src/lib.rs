//! Holds every connection of a session until it has a verdict, then relays it.
//!
//! The sandbox redirects every connection and every DNS query of a session's network to [`Listeners`]; see the crate
//! `portcullis-sandbox-runtime`. This crate serves these listeners:
//!
//! - Every name resolves at once, to an address that stands for this name only. The DNS server inside never sends a
//!   query out of the machine, so a query cannot leak data.
//! - A connection is held until the [`Judge`] answers: allow, deny or ask. Connections that need an answer from the
//!   user are collected, so that one question covers all of them.
//! - With [`Calls`], a connection is held inside connect(2), before it is made, and the verdict is reused when the
//!   connection is accepted. Without them, it is accepted first and then held.
//! - The host resolves the name only after the connection is allowed. An address outside the public internet is refused
//!   unless a rule or the user named it. The gate connects to exactly the address that it checked.
//! - The content must name the server that was allowed, as far as the gate can read it.
//! - The requests to brokered hosts are read, and get credentials that commands do not have. `portcullis-credential-broker`
//!   decides about them.
//!
//! # Terms
//! A [`ConnectionAttempt`] is a connection that needs a verdict, a [`ConnectionRefusal`](portcullis_decision::ConnectionRefusal) is
//! the reason why it is denied.
//!
//! # Never
//! This crate knows no policies, settings, users or questions. It asks through the trait that it is given, and acts
//! only with a permit for exactly the access that it asked about.
//!
//! # Threads
//! One thread relays all connections, one asks the judge for decisions, one puts questions to the user and waits for
//! the answers, and a few resolve names.
//!
//! # Platforms
//! Every Unix has the proxy. Only on Linux do commands have a network of their own ([`NetworkListeners`]): redirected
//! connections, DNS, held calls, and the kernel's tables of who connects. Without it, the token tells that a client is
//! a command of the session, and attempts have no process. Linux serves a sandbox in the same way if it gives no
//! network, so the tests on Linux cover it.
//!
//! The parsers of outside bytes ([`dns`], [`inspect`]) are public so that they can be fuzzed against other
//! implementations; see `fuzz/`.

mod calls;
pub mod dns;
mod inside;
pub mod inspect;
mod judge;
mod listeners;
mod names;
mod probe;
mod special;
mod ssh_remedy;
mod unix;
mod upstream;

pub use calls::{Call, Calls};
pub use inside::{Server, Sockets};
pub use judge::{
    AddressRuling, Checks, ConnectionAttempt, Ended, Ending, Judge, Judgement, Running, Stages, Undecided,
    Want,
};
pub use listeners::{Listeners, NetworkListeners};
pub use names::Names;
pub use probe::{Probe, probe};
pub use special::Special;
pub use ssh_remedy::ssh_remedy;
pub use unix::{Attached, Gate, WayIn, special};
pub use upstream::{Protocol, Unresolved, Upstream};
