//! Standard output and standard error without escaping of foreign text.
//!
//! For output of commands, for the protocol, for copies of file descriptors, and for terminal queries. Text of this
//! program goes through `output::Page`, `output::print_document` and `exit::say`; clippy forbids `std::io::stdout` and
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
