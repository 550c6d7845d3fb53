//! The one integration test binary.

#[macro_use]
mod matrix;

mod harness;
mod protocol;
mod serve;
