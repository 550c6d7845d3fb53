//! Holds every connection of a session until it has a verdict, then carries it.
//!
//! A session's network leads every connection, and every question for a name, to [`Listeners`]; see the crate
//! `portcullis-confine`. What comes out of them is served here:
//!
//! - Every name has an address at once, one that stands for the name and nothing else. No question leaves the
//!   machine, so nothing is told to anybody by asking.
//! - A connection is held until the [`Judge`] has an answer: allowed, denied, or to be asked. What is asked is
//!   gathered, so that one question covers everything that waits.
//! - Where there are [`Calls`], it is held before it is made, inside connect(2), and what came of that is taken over
//!   when it is accepted. Otherwise it is accepted and then held.
//! - Only then is the name resolved, by the host. Addresses that are no place on the internet are refused unless
//!   somebody named them, and the connection goes to the very address that was looked at.
//! - The content has to name the server that was allowed, as far as it can be read.
//!
//! # Terms
//! An [`Attempt`] is a connection that wants to go on, a [`Refusal`] is why it may not.
//!
//! # Never
//! This crate knows no policies, settings, users or questions: it asks through the trait it is given, and it acts
//! only with a permit for the very access that it asked about.
//!
//! # Threads
//! One thread carries all connections, one asks the judge for decisions, one puts questions and waits for their
//! answers, and a few resolve names.
//!
//! # Platforms
//! Linux. Other systems have neither the listeners nor the tables in which the client of a connection is looked up;
//! there [`Gate::start`] fails. What reads bytes from outside ([`dns`], [`inspect`]) is of no system, and public so that
//! it can be tried beside the readers of others; see `fuzz/`.

mod calls;
pub mod dns;
mod inside;
pub mod inspect;
mod judge;
mod listeners;
mod names;
mod special;
mod upstream;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

pub use calls::{Call, Calls};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Attached, Gate, WayIn, special};
pub use inside::{Server, Sockets};
pub use judge::{AddressRuling, Attempt, Checks, Ended, Ending, Judge, Judgement, Refusal, Stages, Want};
#[cfg(target_os = "linux")]
pub use linux::{Attached, Gate, WayIn, special};
pub use listeners::Listeners;
pub use names::Names;
pub use special::Special;
pub use upstream::{Protocol, Unresolved, Upstream};
