//! The running gate.

mod active_connections;
mod ask;
mod brokered;
mod budget;
mod client;
mod clients;
mod decider;
mod dial;
mod forwarded;
mod gate;
mod git_ssh;
mod held;
mod limited_addresses;
mod lookup;
mod other_way;
mod proxy;
mod proxy_tls;
mod pump;
mod push_slots;
mod range;
mod refuse;
mod relay;
mod scope;
mod serving;
mod tunnel;

#[cfg_attr(not(target_os = "linux"), path = "unix/network/unsupported.rs")]
mod network;

pub use gate::{Attached, Gate, WayIn};
pub use range::special;
