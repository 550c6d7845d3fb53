//! The gate on Linux.

mod ask;
mod budget;
mod carried;
mod clients;
mod decider;
mod dial;
mod gate;
mod hold;
mod inside;
mod lookup;
mod process;
mod proxy;
mod pump;
mod range;
mod refuse;
mod relay;
mod scope;
mod tunnel;

pub use gate::{Attached, Gate, WayIn};
pub use range::special;
