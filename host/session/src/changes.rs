//! Records what commands and tools change in the user's files, so that the user can take it back.

use std::path::{Path, PathBuf};

use portcullis_changes::{Changed, Lost, SessionChanges, ToolCall};
use portcullis_file_gate::{FileError, Located, View};
use portcullis_text::escape;

use crate::effective_policy::EffectivePolicy;
use crate::session::Session;

/// The most characters of a command that are recorded.
const LABEL: usize = 200;
/// Maximum number of names to list that cannot be taken back.
const TOLD: usize = 5;

impl Session {
    pub(crate) fn changes(&self) -> Option<&SessionChanges> {
        self.setup.changes.as_ref()
    }

    /// Records that a turn of the user begins, to which the calls that follow belong.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn note_turn(&self, id: &str, label: &str) -> std::io::Result<()> {
        self.changes().map_or(Ok(()), |changes| changes.turn(id, label))
    }
}

/// Records a file that a tool is about to write.
pub(crate) fn before(
    session: &Session,
    effective: &EffectivePolicy,
    located: &Located,
) -> Result<Option<ToolCall>, FileError> {
    let path = located.canonical();
    let Some(changes) = session.changes().filter(|_| is_users(effective, located)) else { return Ok(None) };
    changes.before_tool(path).map(Some).map_err(|source| FileError::Io {
        doing: "record for undoing",
        path: located.canonical_text().to_owned(),
        source,
    })
}

/// Records what a tool has left.
pub(crate) fn after(session: &Session, call: Option<&ToolCall>, id: Option<&str>, tool: &str) {
    if let (Some(changes), Some(call)) = (session.changes(), call) {
        // A call without an end can be taken back as well.
        let _recorded = changes.after_tool(call, id, tool);
    }
}

/// The session's own places end with it.
fn is_users(effective: &EffectivePolicy, located: &Located) -> bool {
    let base = effective.rules.base();
    let path = located.canonical();
    let mut own = base.own.directories.iter().chain(std::iter::once(&base.temp));
    located.view() != View::Session || !own.any(|own| path.starts_with(own)) && !path.starts_with("/tmp")
}

/// Records what a command has left, and returns notes on what cannot be taken back.
pub(crate) fn finish(
    session: &Session,
    call: (u64, u64),
    start: Option<u64>,
    id: Option<&str>,
    script: &str,
) -> Vec<String> {
    let (Some(changes), Some(start)) = (session.changes(), start) else { return Vec::new() };
    let mut told = match changes.finish(call, start, id, &label_of(script)) {
        Ok(Changed { lost, .. }) => notes(&lost),
        Err(error) => vec![format!("what this command changed is not fully recorded for undoing: {error}")],
    };
    told.extend(changes.refused().map(|record| {
        format!(
            "A change was refused with \"No space left on device\": the disk of the record of changes, `{}`, is full. \
             `portcullis changes prune` removes old records.",
            escape(&shown(record))
        )
    }));
    told
}

fn notes(lost: &[(PathBuf, Lost)]) -> Vec<String> {
    let note = |(path, why): &(PathBuf, Lost)| {
        format!("The change of `{}` cannot be undone: {why}.", escape(&shown(path)))
    };
    let mut notes: Vec<String> = lost.iter().take(TOLD).map(note).collect();
    let more = lost.len().saturating_sub(TOLD);
    if more > 0 {
        notes.push(format!("{more} more changes of this command cannot be undone."));
    }
    notes
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn label_of(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default();
    let mut label: String = line.chars().take(LABEL).collect();
    if lines.next().is_some() || line.chars().nth(LABEL).is_some() {
        label.push('…');
    }
    label
}
