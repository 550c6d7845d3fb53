//! Holds every connection of a session until it has a verdict, then carries it.
//!
//! A session's network leads every connection, and every question for a name, to [`Listeners`]; see the crate
//! `portcullis-confine`. What comes out of them is served here:
//!
//! - Every name has an address at once, one that stands for the name and nothing else. No question leaves the
//!   machine, so nothing is told to anybody by asking.
//! - A connection is held until the [`Judge`] has an answer: allowed, denied, or to be asked. What is asked is
//!   gathered, so that one question covers everything that waits.
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
//! there [`Gate::start`] fails.

mod judge;
mod listeners;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod gate;

#[cfg(target_os = "linux")]
mod ask;
#[cfg(target_os = "linux")]
mod budget;
#[cfg(target_os = "linux")]
mod carried;
#[cfg(target_os = "linux")]
mod decider;
#[cfg(target_os = "linux")]
mod dial;
#[cfg(target_os = "linux")]
mod dns;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod pump;
#[cfg(target_os = "linux")]
mod range;
#[cfg(target_os = "linux")]
mod refuse;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod scope;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Attached, Gate};
#[cfg(target_os = "linux")]
pub use gate::{Attached, Gate};
pub use judge::{AddressRuling, Attempt, Checks, Ended, Ending, Judge, Judgement, Refusal, Want};
pub use listeners::Listeners;
