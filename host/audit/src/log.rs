//! Writes the log.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use portcullis_text::escape_json;
use rustix::fs::{AtFlags, Mode, OFlags};
use serde_json::{Value, json};

use crate::facts::{self, Facts, LARGEST_GRANTS};
use crate::head::{Head, HeadFile};
use crate::mask::{mask, mask_text_in_place};
use crate::parts;
use crate::record::{LARGEST_LINE, Line, OutcomeLine, Record, VERSION, VerdictLine, sha256};

/// Maximum number of logs with the same session id, which is reused for example when the agent reloads.
const MOST_FILES: u32 = 1000;

/// Size limit of a file, in bytes; a log that reaches it continues in another file.
const FULL_AT: u64 = 16 << 20;

/// The log of one session. Threads can share it; each line is one `write(2)`.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    session: String,
    /// The directory, for creating further files.
    directory: OwnedFd,
    /// Size limit of a file.
    full_at: u64,
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    file: OwnedFd,
    /// The number of the file, counted from one.
    part: u32,
    /// The size of the file, in bytes.
    length: u64,
    sequence: u64,
    previous: String,
    /// The record of the log's end.
    head: HeadFile,
    /// The last facts in this file, with their line number.
    facts: Facts,
    /// Whether the last write left an incomplete line, which must be ended first.
    torn: bool,
}

/// Why the log cannot be written. The caller denies.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum LogError {
    /// The session id cannot be part of a file name.
    #[error("the session id `{}` has characters that a file name should not have", id.escape_debug())]
    SessionId { id: String },
    /// The directory cannot be created or opened.
    #[error("opening the audit directory `{}`", directory.display())]
    Directory {
        directory: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The directory belongs to another user.
    #[error(
        "the audit directory `{}` belongs to user {owner}, make one that is yours or name another",
        directory.display()
    )]
    Owner { directory: PathBuf, owner: u32 },
    /// Other users can write to the directory.
    #[error("the audit directory `{}` can be written by others, run `chmod 700` on it", directory.display())]
    Writable { directory: PathBuf },
    /// The file cannot be created.
    #[error("making the audit file `{}`", file.display())]
    Create {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A line could not be written completely.
    #[error("writing the audit file `{}`", file.display())]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Log {
    /// Creates a log for a session in `directory`, which is created if it is missing.
    ///
    /// # Errors
    /// When the directory belongs to another user, is a link, or is writable by others, or the file cannot be created.
    pub fn open(directory: &Path, session_id: &str) -> Result<Self, LogError> {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        let length = session_id.len();
        if !(1..=128).contains(&length) || session_id.starts_with('.') || !session_id.chars().all(fits) {
            return Err(LogError::SessionId { id: session_id.chars().take(128).collect() });
        }
        let handle = open_directory(directory)?;
        let (path, file, head) = create_file(directory, &handle, session_id)?;
        let (previous, facts) = (String::new(), Facts::default());
        let state = LogState { file, part: 1, length: 0, sequence: 0, previous, head, facts, torn: false };
        let (session, state) = (session_id.to_owned(), Mutex::new(state));
        Ok(Self { path, session, directory: handle, full_at: FULL_AT, state })
    }

    /// Returns the first file of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a verdict. Must be called before the action. Returns the sequence number for the outcome.
    ///
    /// # Errors
    /// When the line could not be written: the action must not happen in that case.
    pub fn verdict(&self, mut line: VerdictLine) -> Result<u64, LogError> {
        let told = Arc::new(line.facts.take());
        self.verdict_on(line, &told)
    }

    /// Writes a verdict whose facts are shared with other verdicts: `told` replaces the facts of the line.
    ///
    /// # Errors
    /// As for [`Self::verdict`].
    pub fn verdict_on(&self, mut line: VerdictLine, told: &Arc<Value>) -> Result<u64, LogError> {
        line.request = mask(line.request);
        line.facts = Value::Null;
        line.grants = facts::bounded(mask(line.grants), LARGEST_GRANTS);
        mask_text_in_place(&mut line.reason);
        for policy in &mut line.policies {
            mask_text_in_place(&mut policy.reason);
        }
        self.append(Record::Verdict(line), told)
    }

    /// Writes the outcome of an action. Returns the sequence number.
    ///
    /// # Errors
    /// When the line could not be written.
    pub fn outcome(&self, mut line: OutcomeLine) -> Result<u64, LogError> {
        mask_text_in_place(&mut line.result);
        line.detail = mask(line.detail);
        self.append(Record::Outcome(line), &Arc::default())
    }

    fn append(&self, mut record: Record, told: &Arc<Value>) -> Result<u64, LogError> {
        // A thread that panicked during a write may have left an incomplete line, which the next write ends.
        let mut state = self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.torn = true;
            state
        });
        if state.length >= self.full_at {
            self.go_on(&mut state)?;
        }
        let sequence = state.sequence.saturating_add(1);
        let previous = state.previous.clone();
        let told = match &mut record {
            Record::Verdict(verdict) => state.facts.refer(verdict, told, sequence),
            Record::Outcome(_) => None,
        };
        let mut line = Line {
            version: VERSION,
            sequence,
            session: self.session.clone(),
            previous,
            head: sequence == 1,
            record,
        };
        let mut bytes = bounded(&mut line).map_err(|source| self.failed(source.into()))?;
        let digest = sha256(&bytes);
        if state.torn {
            bytes.insert(0, b'\n');
        }
        bytes.push(b'\n');

        // Assume an incomplete line until the write has succeeded, in case this thread panics during the call.
        let was_torn = std::mem::replace(&mut state.torn, true);
        let written = match write_once(&state.file, &bytes) {
            Ok(written) => written,
            Err(source) => {
                // No byte was written.
                state.torn = was_torn;
                return Err(self.failed(source));
            }
        };
        state.length = state.length.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        if written != bytes.len() {
            return Err(self.failed(io::Error::new(io::ErrorKind::WriteZero, "only a part was written")));
        }
        state.torn = false;
        state.sequence = sequence;
        state.previous.clone_from(&digest);
        if let (Some(facts), Record::Verdict(VerdictLine { facts_at: 1.., .. })) = (told, line.record) {
            state.facts = facts;
        }
        // The line is written, but without its head the action must not happen.
        let recorded = state.head.write(&Head { lines: sequence, hash: digest });
        recorded.map_err(|error| self.failed(error.into()))?;
        Ok(sequence)
    }

    /// Continues in a new file. An existing file was not created by this log, so that is an error.
    fn go_on(&self, state: &mut LogState) -> Result<(), LogError> {
        let part = state.part.saturating_add(1);
        let (name, _) = parts::split(&self.path).unwrap_or((&self.session, 1));
        let name = parts::file_name(name, part);
        let created = rustix::fs::openat(self.directory.as_fd(), &name, NEW, Mode::RUSR | Mode::WUSR);
        state.file = created.map_err(|error| LogError::Create {
            file: self.path.with_file_name(&name),
            source: error.into(),
        })?;
        (state.part, state.length, state.torn) = (part, 0, false);
        // Each file must be readable on its own.
        state.facts = Facts::default();
        Ok(())
    }

    fn failed(&self, source: io::Error) -> LogError {
        LogError::Write { file: self.path.clone(), source }
    }
}

fn open_directory(directory: &Path) -> Result<OwnedFd, LogError> {
    let failed = |source: io::Error| LogError::Directory { directory: directory.to_owned(), source };
    make_directory(directory).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(directory, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = rustix::fs::fstat(&handle).map_err(|error| failed(error.into()))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(LogError::Owner { directory: directory.to_owned(), owner: stat.st_uid });
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(LogError::Writable { directory: directory.to_owned() });
    }
    Ok(handle)
}

fn make_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory) {
        // Opening the directory below detects a link.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

/// Flags for creating a file.
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Creates the first file of a log and its head, under a name that no earlier log had.
fn create_file(
    directory: &Path,
    handle: &OwnedFd,
    id: &str,
) -> Result<(PathBuf, OwnedFd, HeadFile), LogError> {
    let mut name = id.to_owned();
    for turn in 2..=MOST_FILES {
        let file_name = parts::file_name(&name, 1);
        let failed = |error: rustix::io::Errno| LogError::Create {
            file: directory.join(&file_name),
            source: error.into(),
        };
        match rustix::fs::openat(handle.as_fd(), &file_name, NEW, Mode::RUSR | Mode::WUSR) {
            Ok(file) => match HeadFile::create(handle, &name) {
                Ok(head) => return Ok((directory.join(&file_name), file, head)),
                Err(error) => {
                    // The file is empty and has no head, so it belongs to no log yet.
                    rustix::fs::unlinkat(handle, &file_name, AtFlags::empty()).map_err(failed)?;
                    if error != rustix::io::Errno::EXIST {
                        return Err(failed(error));
                    }
                }
            },
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        name = format!("{id}.{turn}");
    }
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "this session id has too many files already");
    Err(LogError::Create { file: directory.join(parts::file_name(&name, 1)), source })
}

/// Writes with one call; repeats it only if a signal interrupts it before the first byte.
fn write_once(file: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(file, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.map_err(io::Error::from),
        }
    }
}

/// Initial capacity, enough for most lines.
const USUAL_LINE: usize = 4096;

/// Formats a line as JSON without unsafe characters, so that any viewer can show the log.
fn written(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_LINE);
    serde_json::to_writer(&mut bytes, line)?;
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
    Ok(escape_json(&text).into_owned().into_bytes())
}

/// Formats a line within the size limit.
///
/// Parts that make it too long are replaced by their length and hash, the largest first; the decision itself is kept.
fn bounded(line: &mut Line) -> serde_json::Result<Vec<u8>> {
    let fits = |text: &Vec<u8>| text.len() < LARGEST_LINE;
    let text = written(line)?;
    if fits(&text) {
        return Ok(text);
    }
    if let Some(text) = cut_to_fit(line)? {
        return Ok(text);
    }
    if let Record::Verdict(verdict) = &mut line.record {
        shorten_reasons(verdict);
    }
    if let Some(text) = cut_to_fit(line)? {
        return Ok(text);
    }
    match &mut line.record {
        Record::Verdict(verdict) => {
            verdict.request = digest(&verdict.request)?;
            // Without the request, the decision cannot be repeated.
            (verdict.facts, verdict.facts_at, verdict.grants) = (Value::Null, 0, Value::Null);
        }
        Record::Outcome(outcome) => {
            outcome.detail = digest(&outcome.detail)?;
            shorten(&mut outcome.result);
        }
    }
    let text = written(line)?;
    if fits(&text) {
        return Ok(text);
    }
    Err(serde::ser::Error::custom("the line is too long even without its request"))
}

fn shorten_reasons(verdict: &mut VerdictLine) {
    for policy in &mut verdict.policies {
        shorten(&mut policy.reason);
        shorten(&mut policy.rule);
        shorten(&mut policy.setting);
        shorten(&mut policy.name);
    }
    for text in [&mut verdict.reason, &mut verdict.rule, &mut verdict.policy, &mut verdict.answered_by] {
        shorten(text);
    }
}

/// Returns the line with as much of its request as fits, or `None` if that is still too long or there is no request.
fn cut_to_fit(line: &Line) -> serde_json::Result<Option<Vec<u8>>> {
    let Record::Verdict(verdict) = &line.record else { return Ok(None) };
    for cut in CUTS {
        if let Some(text) = cut_line(line, verdict, cut)?.filter(|text| text.len() < LARGEST_LINE) {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The steps for shortening a request; the first that fits is used.
///
/// Paths stay complete in all but the last, so that padding cannot hide the target of an action.
const CUTS: [Cut; 5] = [
    Cut { text: 4096, items: 512 },
    Cut { text: 1024, items: 64 },
    Cut { text: 1024, items: 16 },
    Cut { text: 256, items: 8 },
    Cut { text: 64, items: 4 },
];

/// Limits for a shortened request.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Maximum length of a text, in bytes.
    text: usize,
    /// Maximum length of a list.
    items: usize,
}

/// Keys in a request that identify the target.
const WHERE: [&str; 4] = ["id", "canonical", "cwd", "kind"];

/// Maximum length of a path.
const LONGEST_PATH: usize = 4096;

fn cut_line(line: &Line, verdict: &VerdictLine, cut: Cut) -> serde_json::Result<Option<Vec<u8>>> {
    let mut request = shortened(&verdict.request, cut, "");
    let Value::Object(parts) = &mut request else { return Ok(None) };
    // Keep the digest of the full request for comparison.
    parts.insert("shortened".to_owned(), digest(&verdict.request)?);
    let verdict = VerdictLine { request, ..verdict.clone() };
    written(&Line { record: Record::Verdict(verdict), ..line.clone() }).map(Some)
}

fn shortened(value: &Value, cut: Cut, key: &str) -> Value {
    match value {
        Value::String(text) => {
            let most = if WHERE.contains(&key) { cut.text.max(LONGEST_PATH) } else { cut.text };
            if text.len() <= most {
                return value.clone();
            }
            let kept = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= most).last().unwrap_or(0);
            let head = text.get(..kept).unwrap_or_default();
            format!("{head}… ({} bytes, sha256 {})", text.len(), sha256(text.as_bytes())).into()
        }
        Value::Array(items) => {
            let mut kept: Vec<Value> =
                items.iter().take(cut.items).map(|item| shortened(item, cut, "")).collect();
            if let Some(left) = items.len().checked_sub(cut.items).filter(|left| *left > 0) {
                kept.push(format!("… ({left} more)").into());
            }
            kept.into()
        }
        Value::Object(parts) => {
            parts.iter().map(|(key, part)| (key.clone(), shortened(part, cut, key))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn digest(value: &Value) -> serde_json::Result<Value> {
    let text = serde_json::to_string(value)?;
    Ok(json!({ "length": text.len(), "sha256": sha256(text.as_bytes()) }))
}

fn shorten(text: &mut String) {
    /// Number of characters kept, enough to recognize a reason.
    const KEPT: usize = 200;
    if text.len() > KEPT {
        *text = text.chars().take(KEPT).chain(['…']).collect();
    }
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod tests;
