//! Standard output and standard error, without anything that escapes foreign text on the way.
//!
//! For output of commands, for the protocol, for copies of descriptors, and for asking about the terminal. Text of this
//! program goes through `page::Page`, `page::print_document` and `exit::say`; clippy refuses `std::io::stdout` and
//! `std::io::stderr` in this crate outside of this file.

use std::io::{self, Stderr, Stdout};

/// Returns standard output.
#[expect(clippy::disallowed_methods, reason = "this is where it is taken")]
pub(crate) fn output() -> Stdout {
    io::stdout()
}

/// Returns standard error.
#[expect(clippy::disallowed_methods, reason = "this is where it is taken")]
pub(crate) fn errors() -> Stderr {
    io::stderr()
}
