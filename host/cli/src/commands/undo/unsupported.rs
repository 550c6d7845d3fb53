//! On this system commands are refused and nothing is recorded.

use anyhow::bail;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::undo::{Changes, Redo, Undo};
use portcullis_command_line::exit::Outcome;

const REFUSED: &str = "changes are recorded on Linux only";

/// Runs `changes`.
pub(crate) fn changes(_changes: &Changes) -> Outcome {
    bail!(REFUSED)
}

/// Runs `undo`.
pub(crate) fn undo(_undo: &Undo) -> Outcome {
    bail!(REFUSED)
}

/// Runs `redo`.
pub(crate) fn redo(_redo: &Redo) -> Outcome {
    bail!(REFUSED)
}

/// Returns the names of turns and calls, for completion.
pub(crate) fn points(_around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    Ok(Vec::new())
}
