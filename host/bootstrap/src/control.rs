//! Access to a running session from a second terminal, through a unix socket that only its user can reach.
//!
//! The socket lies in the session's own directory, which commands and tools cannot see. Each connection carries one
//! request and one reply, each a line of JSON. Both ends are this program, so the format is private.

mod answer_number;
mod client;
mod listener;
mod orders;
mod peer;
mod protocol;
mod socket;

pub use answer_number::answer_number;
pub use client::{ask, sessions};
pub use listener::Control;
pub use orders::listen_for;
pub use protocol::{Asked, AskedChoice, Kept, Order, Outcome, Port};
