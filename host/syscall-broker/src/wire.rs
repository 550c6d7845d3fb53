//! The messages between the broker and the host.
//!
//! Both ends are the same program, so the format is plain: little-endian numbers, and byte strings preceded by their
//! length. Paths, arguments and variables are sent as raw bytes.

pub mod codec;
pub mod connects;
pub mod questions;
