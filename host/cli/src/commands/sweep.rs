//! `portcullis sweep`: removes the remains of a killed host.

use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::scratch;
use portcullis_command_line::exit::{self, Exit};

/// The kernel kills the processes of a killed host shortly after it; until then they can still write.
const MOMENTS: u32 = 10;
const MOMENT: Duration = Duration::from_millis(100);

/// Removes the directories and control groups of sessions without a host.
///
/// The extension calls this when its host was killed.
pub(crate) fn run() -> exit::Outcome {
    let sessions = ProcessEnv::read()?.state.join("sessions");
    for _ in 0..MOMENTS {
        match scratch::sweep(&sessions) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            swept => swept.with_context(|| format!("clearing `{}`", sessions.display()))?,
        }
        if is_empty(&sessions) {
            break;
        }
        thread::sleep(MOMENT);
    }
    portcullis_sandbox_runtime::sweep_groups();
    Ok(Exit::Done)
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}
