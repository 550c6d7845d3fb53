//! Stubs for systems without a sandbox: pi cannot be contained.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::process_env::ProcessEnv;

/// The `--contain` flag.
pub(crate) const CONTAIN: &str = "--contain";

/// How to start pi.
#[expect(dead_code, reason = "it is not")]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) extension: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) trusted: bool,
}

/// Returns an error.
pub(crate) fn run(_around: &ProcessEnv, _start: Start) -> crate::Outcome {
    bail!(
        "pi cannot be contained here, and is not started: the sandbox needs Linux, this is {}",
        std::env::consts::OS
    )
}

/// Returns `None`: no process runs in a sandbox.
pub(crate) fn door_of_this_process() -> Option<PathBuf> {
    None
}

/// Returns an error.
pub(crate) fn knock(_door: &Path) -> crate::Outcome {
    bail!("there is no door here")
}
