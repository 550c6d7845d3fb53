//! Questions about packs, on the terminal.

use std::io::{BufRead as _, IsTerminal as _};

use portcullis_bootstrap::streams::{errors, say};

/// Asks the user; returns false without a terminal.
pub(super) fn confirmed(question: &str) -> bool {
    let is_person = std::io::stdin().is_terminal() && errors().is_terminal();
    if !is_person {
        return false;
    }
    say(question);
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && ["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str())
}
