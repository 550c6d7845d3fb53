//! Stubs for systems without a sandbox: pi cannot be contained.

use std::path::{Path, PathBuf};

use anyhow::bail;

#[path = "start.rs"]
mod start;

pub use start::Start;

use portcullis_bootstrap::process_env::ProcessEnv;

/// The `--contain` flag.
pub const CONTAIN: &str = "--contain";

/// Returns an error.
pub fn run(_around: &ProcessEnv, _start: &Start) -> anyhow::Result<Option<u8>> {
    bail!(
        "pi cannot be contained here, and is not started: the sandbox needs Linux, this is {}",
        std::env::consts::OS
    )
}

/// Returns `None`: no process runs in a sandbox.
pub(crate) fn socket_of_this_process() -> Option<PathBuf> {
    None
}

/// Returns an error.
pub(crate) fn hand_over(_socket: &Path) -> anyhow::Result<u8> {
    bail!("pi cannot be contained on this system")
}
