//! Standard output and standard error.
//!
//! Messages of this program go through [`say`], which escapes what acts on a terminal. [`output`] and [`errors`] are the
//! unescaped streams: for output of commands, for the protocol, for copies of file descriptors, and for terminal
//! queries. clippy forbids `std::io::stdout` and `std::io::stderr` everywhere else.

use std::io::{self, Stderr, Stdout, Write as _};

use portcullis_text::escape_message;

/// Returns standard output.
#[expect(clippy::disallowed_methods, reason = "this is where it is taken")]
#[must_use]
pub fn output() -> Stdout {
    io::stdout()
}

/// Returns standard error.
#[expect(clippy::disallowed_methods, reason = "this is where it is taken")]
#[must_use]
pub fn errors() -> Stderr {
    io::stderr()
}

/// Prints a message for the user to standard error; unsafe characters are escaped.
pub fn say(message: &str) {
    // Ignore errors: standard error may be closed.
    let _written = writeln!(errors().lock(), "{}", escape_message(message));
}

/// Prints an error with its causes on one line.
pub fn complain(error: &anyhow::Error) {
    say(&format!("portcullis: {error:#}"));
}
