//! The program that applies a profile to commands, on systems without Linux' sandbox.

use std::path::PathBuf;

use crate::process_env::ProcessEnv;

/// The program of macOS.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";
/// The variable that names another one, in the portable build of Linux.
const OTHER: &str = "PORTCULLIS_CONFINER";

/// Returns the program; `None` where Linux' own sandbox is used.
///
/// The portable build of Linux is for tests and no part of a release. Its commands run under a confiner of the test's,
/// or are refused.
#[must_use]
pub fn confiner(around: &ProcessEnv) -> Option<PathBuf> {
    let is_portable = cfg!(feature = "portable");
    if cfg!(target_os = "linux") && !is_portable {
        return None;
    }
    let named = around.variables.iter().find(|(name, _)| name == OTHER).map(|(_, value)| value.into());
    Some(named.filter(|_| is_portable).unwrap_or_else(|| SANDBOX_EXEC.into()))
}

/// Returns the directory that holds the temporary directories and private homes of commands.
///
/// The rules deny the state directory to commands, and without mounts these directories have no other names.
#[must_use]
pub fn directory_for_commands(around: &ProcessEnv) -> PathBuf {
    around.state.with_file_name("portcullis-commands")
}
