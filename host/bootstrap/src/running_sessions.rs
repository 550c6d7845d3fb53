//! The sessions that are running: each keeps a record of itself in its own directory.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::scratch::is_alive;

/// The name of the record in the session's directory.
const NAME: &str = "session.json";
/// Maximum size of a record, in bytes.
const LARGEST: u64 = 64 * 1024;

/// A running session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningSession {
    /// Its id.
    pub id: String,
    /// The process id of its host.
    pub pid: u32,
    /// The program that it serves: `pi`, or `portcullis` for `portcullis run`.
    pub agent: String,
    /// The version of that program.
    pub agent_version: String,
    /// Its project, as text (see `portcullis_decision::path_text`).
    pub project: String,
    /// Whether a user can answer questions.
    pub interactive: bool,
    /// The time of its start, in milliseconds since 1970-01-01 UTC.
    pub started_at_ms: u64,
    /// The tier of its sandbox; `none` if commands are refused.
    pub tier: String,
}

impl RunningSession {
    /// Writes the record into the session's directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(NAME))?;
        file.write_all(serde_json::to_string(self)?.as_bytes())
    }

    fn read(directory: &Path) -> io::Result<Self> {
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(no_links).open(directory.join(NAME))?;
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Returns the sessions that are running, the oldest first. `state` is the state directory of the user.
///
/// A session that has just started and has not written its record yet is left out.
///
/// # Errors
/// When the sessions cannot be listed.
pub fn running_sessions(state: &Path) -> io::Result<Vec<RunningSession>> {
    let parent = state.join("sessions");
    let entries = match parent.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut running = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let alive = name.to_str().filter(|name| is_alive(&parent, name));
        // It may end between the two.
        running.extend(alive.and_then(|name| RunningSession::read(&parent.join(name)).ok()));
    }
    running.sort_by(|one, other| (one.started_at_ms, &one.id).cmp(&(other.started_at_ms, &other.id)));
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn running_sessions_are_listed_and_ended_ones_are_not() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(running_sessions(state.path()).unwrap(), Vec::new());
        let scratch = Scratch::make(&state.path().join("sessions"), "3f2a").unwrap();
        assert_eq!(running_sessions(state.path()).unwrap(), Vec::new(), "no record yet");
        let session = RunningSession {
            id: "3f2a".to_owned(),
            pid: 7,
            agent: "pi".to_owned(),
            agent_version: "1".to_owned(),
            project: "/p".to_owned(),
            interactive: true,
            started_at_ms: 5,
            tier: "full".to_owned(),
        };
        session.write(scratch.directory()).unwrap();
        assert_eq!(running_sessions(state.path()).unwrap(), std::slice::from_ref(&session));
        drop(scratch);
        assert_eq!(running_sessions(state.path()).unwrap(), Vec::new());
        let dead = state.path().join("sessions/dead");
        std::fs::create_dir_all(&dead).unwrap();
        std::fs::write(dead.join("lock"), "").unwrap();
        session.write(&dead).unwrap();
        assert_eq!(running_sessions(state.path()).unwrap(), Vec::new(), "its host was killed");
    }
}
