//! Looking for a newer bundle while a session starts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use crate::process_env::{OWN_PROGRAM, now};
use crate::streams::complain;
use crate::teams::joined::joined;

/// The arguments of the process that looks for a newer bundle.
const IN_BACKGROUND: [&str; 3] = ["team", "update", "--background"];
/// How long the result of a check is used.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// How long after a failed check the next one is made.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// When this process has started the last one.
static STARTED: Mutex<Option<SystemTime>> = Mutex::new(None);

/// Starts a process that looks for a newer bundle, unless one has looked a short time ago.
///
/// Decisions do not wait for this update. If it fails, the store keeps the reason for `team status`. A session applies a
/// newly accepted bundle when it next reads the settings.
pub fn refresh(agent_directory: &Path) {
    // The session reports a membership file that cannot be used.
    let Ok(Some(joined)) = joined(agent_directory) else { return };
    if let Some((at, problem)) = joined.store.last_check() {
        let pause = if problem.is_some() { AFTER_FAILURE } else { EVERY };
        if now().duration_since(at).is_ok_and(|passed| passed < pause) {
            return;
        }
    }
    {
        // While one is looking, closed sessions read their settings every second.
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_some_and(|at| now().duration_since(at).is_ok_and(|passed| passed < AFTER_FAILURE)) {
            return;
        }
        *started = Some(now());
    }
    let mut process = Command::new(OWN_PROGRAM);
    process.args(IN_BACKGROUND).current_dir("/");
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not in the group of the terminal, whose keys are for the session.
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    match process.spawn().context("starting the process that looks for the team's bundle") {
        Ok(mut child) => {
            let waiting = move || drop(child.wait());
            // Without a thread the child stays a zombie until this program ends.
            drop(std::thread::Builder::new().name("team".to_owned()).spawn(waiting));
        }
        Err(error) => complain(&error),
    }
}
