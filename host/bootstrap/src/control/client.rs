//! The client's end: finds sessions and sends requests to them.

use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::protocol::{Order, Outcome};
use super::socket::{NAME, PATIENCE, line, short};

/// Sends a request to the session in this directory, or returns `None` if no session listens.
pub fn ask(directory: &Path, order: &Order) -> anyhow::Result<Option<Outcome>> {
    let stream = match short(directory, |short| UnixStream::connect(short.join(NAME))) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        stream => stream.context("reaching the session")?,
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    // A session that refuses us replies before it reads the request.
    let _unheard = writeln!(&stream, "{}", serde_json::to_string(order)?);
    let reply = line(&stream).context("the session did not answer")?;
    serde_json::from_str(&reply).map(Some).context("the session answered something else")
}

/// Returns the directories of all sessions, running or not, by name.
pub fn sessions(parent: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries = match parent.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("listing `{}`", parent.display()))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
