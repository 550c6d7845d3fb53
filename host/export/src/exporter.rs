//! Sends the log to one collector.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_audit::{Directory, FindError};
use rustix::fs::{FlockOperation, flock};

use crate::answer::{Accepted, SendError};
use crate::channel::Channel;
use crate::cursor::{self, Cursor, CursorError, Failure, Found};
use crate::destination::Destination;
use crate::event::Event;
use crate::format::Format;
use crate::source::{Batch, Describe, Source, now_ms};

/// Sends the log to one collector.
///
/// There is at most one of each destination and user at a time.
pub struct Exporter {
    format: Format,
    channel: Channel,
    source: Source,
    cursor: Cursor,
    file: PathBuf,
    /// Whether the cursor was damaged, so that everything there is may have been sent.
    pub was_damaged: bool,
    /// Held until the exporter is dropped.
    _lock: File,
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Exporter").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Everything is accepted.
    Idle,
    /// A batch was accepted.
    Sent {
        /// Number of its records.
        records: usize,
        /// Number of records that the collector refused for good, and why.
        refused: Option<(u64, String)>,
    },
}

/// Why a step failed. Nothing is lost: the next one begins where this one did.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Another process sends to this destination.
    #[error("another process sends to this destination")]
    Busy,
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] FindError),
    /// The cursor cannot be read or written.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The collector has not accepted the batch.
    #[error(transparent)]
    Send(#[from] SendError),
}

impl ExportError {
    /// Returns how long the collector asks to wait.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Send(SendError::NotSent { wait, .. }) => *wait,
            Self::Send(_) | Self::Busy | Self::Log(_) | Self::Cursor(_) => None,
        }
    }
}

impl Exporter {
    /// Prepares sending the logs of `directory`, with the cursor in the directory `state`.
    ///
    /// # Errors
    /// When another process sends to the destination, the cursor cannot be read or kept, or the destination's
    /// certificates cannot be read.
    pub fn new(
        directory: Directory,
        state: &Path,
        destination: &Destination,
        describe: Describe,
    ) -> Result<Self, ExportError> {
        let lock = lock(state, &destination.name)?;
        let source = Source::new(directory, describe);
        let file = cursor::path(state, &destination.name);
        let (mut cursor, was_damaged) = match Cursor::find(&file)? {
            Found::Whole(cursor) => (cursor, false),
            Found::Nothing => (Cursor::new(), false),
            Found::Damaged => (Cursor { under_way: source.ends()?, ..Cursor::new() }, true),
        };
        let channel = Channel::new(destination).inspect_err(|error| {
            cursor.fail(error);
            // The failure itself is returned.
            drop(cursor.write(&file));
        })?;
        Ok(Self { format: destination.format, channel, source, cursor, file, was_damaged, _lock: lock })
    }

    /// Sends the next batch.
    ///
    /// # Errors
    /// When it was not accepted, or the log or the cursor cannot be used.
    pub fn step(&mut self) -> Result<Step, ExportError> {
        let batch = self.source.next(&self.cursor)?;
        if batch.events.is_empty() {
            return Ok(Step::Idle);
        }
        // Before it is sent: after a crash it may have arrived.
        let before = self.cursor.clone();
        for (file, end) in &batch.ends {
            let under_way = self.cursor.under_way.entry(file.clone()).or_insert(*end);
            under_way.offset = under_way.offset.max(end.offset);
        }
        self.cursor.write(&self.file)?;
        match deliver(&self.channel, self.format, &batch.events) {
            Ok(accepted) => self.accept(batch, accepted),
            Err(error) => {
                if matches!(error, SendError::NotSent { .. }) {
                    self.cursor = before;
                }
                self.cursor.fail(&error);
                self.cursor.write(&self.file)?;
                Err(error.into())
            }
        }
    }

    fn accept(&mut self, batch: Batch, accepted: Accepted) -> Result<Step, ExportError> {
        let count = |events: usize| u64::try_from(events).unwrap_or(u64::MAX);
        let records = batch.events.len();
        let repeated = batch.events.iter().filter(|event| event.repeated).count();
        let cursor = &mut self.cursor;
        for (file, end) in batch.ends {
            if cursor.under_way.get(&file).is_some_and(|under_way| under_way.offset <= end.offset) {
                cursor.under_way.remove(&file);
            }
            cursor.accepted.insert(file, end);
        }
        cursor.missing.extend(batch.missing);
        cursor.sent = cursor.sent.saturating_add(count(records)).saturating_sub(accepted.refused);
        cursor.repeated = cursor.repeated.saturating_add(count(repeated));
        cursor.refused = cursor.refused.saturating_add(accepted.refused);
        cursor.failure = None;
        cursor.write(&self.file)?;
        let refused = (accepted.refused > 0).then_some((accepted.refused, accepted.reason));
        Ok(Step::Sent { records, refused })
    }

    /// Returns how far the collector has received the log.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }
}

impl Cursor {
    fn fail(&mut self, error: &SendError) {
        let since_ms = self.failure.as_ref().map_or_else(now_ms, |failure| failure.since_ms);
        self.failure = Some(Failure { since_ms, reason: error.to_string() });
    }

    /// Returns the number of bytes of the log in `directory` that are not accepted yet.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn waiting(&self, directory: &Directory) -> Result<u64, FindError> {
        Source::new(directory.clone(), |_| String::new()).waiting(self)
    }
}

/// Sends events. If the collector refuses them for good, sends each half, down to single events.
fn deliver(channel: &Channel, format: Format, events: &[Event]) -> Result<Accepted, SendError> {
    match channel.send(format, events) {
        Err(SendError::Refused { reason }) => match events.split_at(events.len() / 2) {
            ([], _) => Ok(Accepted { refused: 1, reason }),
            (first, second) => {
                let first = deliver(channel, format, first)?;
                // What has arrived has arrived, so this is not "not sent" any more.
                let second = deliver(channel, format, second).map_err(|error| match error {
                    SendError::NotSent { reason, .. } | SendError::Unclear { reason } => {
                        SendError::Unclear { reason }
                    }
                    SendError::Refused { reason } => SendError::Refused { reason },
                })?;
                let reason = if first.reason.is_empty() { second.reason } else { first.reason };
                Ok(Accepted { refused: first.refused.saturating_add(second.refused), reason })
            }
        },
        other => other,
    }
}

/// Locks a destination, and makes the directory of the state.
fn lock(state: &Path, destination: &str) -> Result<File, ExportError> {
    let path = state.join(format!("{destination}.lock"));
    let failed = |source| CursorError { doing: "opening", path: path.clone(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ExportError::Busy),
        Err(error) => Err(failed(error.into()).into()),
    }
}
