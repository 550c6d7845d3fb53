//! The gate on Linux.

mod active_connections;
mod ask;
mod brokered;
mod budget;
mod decider;
mod dial;
mod gate;
mod git_ssh;
mod held;
mod hold;
mod inside;
mod lookup;
mod process;
mod proxy;
mod proxy_tls;
mod pump;
mod push_slots;
mod range;
mod refuse;
mod relay;
mod scope;
mod sock_diag;
mod tunnel;

pub use gate::{Attached, Gate, WayIn};
pub use range::special;
