//! Writing the log.

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

/// How often one session id may be used again, for example by a reload of the agent.
const MOST_FILES: u32 = 1000;

/// A file that has reached this many bytes is not written any more; the log goes on in the next one.
const FULL_AT: u64 = 16 << 20;

/// The log of one session. It can be shared by threads; each line is one `write(2)`.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    session: String,
    /// The directory, for further files.
    directory: OwnedFd,
    /// Where a file ends.
    full_at: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: OwnedFd,
    /// The number of the file, from one.
    part: u32,
    /// Bytes in it.
    length: u64,
    sequence: u64,
    previous: String,
    /// Where the end of the log is recorded.
    head: HeadFile,
    /// What policies were told last in this file, and the line that has it.
    facts: Facts,
    /// The last write left a part of a line behind, which has to be ended first.
    torn: bool,
}

/// Why the log cannot be used. The caller denies.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The session id cannot be part of a file name.
    #[error("the session id `{}` has characters that a file name should not have", id.escape_debug())]
    SessionId {
        /// The id.
        id: String,
    },
    /// The directory cannot be made or opened.
    #[error("opening the audit directory `{}`", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The directory is not the caller's own.
    #[error(
        "the audit directory `{}` belongs to user {owner}, make one that is yours or name another",
        directory.display()
    )]
    Owner {
        /// The directory.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others can write into the directory.
    #[error("the audit directory `{}` can be written by others, run `chmod 700` on it", directory.display())]
    Writable {
        /// The directory.
        directory: PathBuf,
    },
    /// The file cannot be made.
    #[error("making the audit file `{}`", file.display())]
    Create {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line could not be written in full.
    #[error("writing the audit file `{}`", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Log {
    /// Makes a new log for a session in `directory`, which is made as well where it is missing.
    ///
    /// # Errors
    /// When the directory is not the caller's own, is a link, can be written by others, or the file cannot be made.
    pub fn open(directory: &Path, session_id: &str) -> Result<Self, LogError> {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        let length = session_id.len();
        if !(1..=128).contains(&length) || session_id.starts_with('.') || !session_id.chars().all(fits) {
            return Err(LogError::SessionId { id: session_id.chars().take(128).collect() });
        }
        let handle = open_directory(directory)?;
        let (path, file, head) = create_file(directory, &handle, session_id)?;
        let (previous, facts) = (String::new(), Facts::default());
        let state = State { file, part: 1, length: 0, sequence: 0, previous, head, facts, torn: false };
        let (session, state) = (session_id.to_owned(), Mutex::new(state));
        Ok(Self { path, session, directory: handle, full_at: FULL_AT, state })
    }

    /// Returns the file that it begins in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a verdict; to be called before the act. Returns its sequence number for the outcome.
    ///
    /// # Errors
    /// When the line could not be written: the act must not happen then.
    pub fn verdict(&self, mut line: VerdictLine) -> Result<u64, LogError> {
        let told = Arc::new(line.facts.take());
        self.verdict_on(line, &told)
    }

    /// The same of a decision with which policies were `told` what they are told with many others. It stands in the
    /// place of the line's facts.
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

    /// Writes what came of an act. Returns its sequence number.
    ///
    /// # Errors
    /// When the line could not be written.
    pub fn outcome(&self, mut line: OutcomeLine) -> Result<u64, LogError> {
        mask_text_in_place(&mut line.result);
        line.detail = mask(line.detail);
        self.append(Record::Outcome(line), &Arc::default())
    }

    fn append(&self, mut record: Record, told: &Arc<Value>) -> Result<u64, LogError> {
        // A thread that panicked while writing may have left a torn line; the next one ends it.
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

        // Torn until the opposite is known, also when this thread does not come back from the call.
        let was_torn = std::mem::replace(&mut state.torn, true);
        let written = match write_once(&state.file, &bytes) {
            Ok(written) => written,
            Err(source) => {
                // The system took nothing.
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
        // The line is there; without its head nothing that relies on it may happen.
        let recorded = state.head.write(&Head { lines: sequence, hash: digest });
        recorded.map_err(|error| self.failed(error.into()))?;
        Ok(sequence)
    }

    /// Goes on in a new file. One that is there already was not made by this log, so nothing is written.
    fn go_on(&self, state: &mut State) -> Result<(), LogError> {
        let part = state.part.saturating_add(1);
        let (name, _) = parts::split(&self.path).unwrap_or((&self.session, 1));
        let name = parts::file_name(name, part);
        let created = rustix::fs::openat(self.directory.as_fd(), &name, NEW, Mode::RUSR | Mode::WUSR);
        state.file = created.map_err(|error| LogError::Create {
            file: self.path.with_file_name(&name),
            source: error.into(),
        })?;
        (state.part, state.length, state.torn) = (part, 0, false);
        // Each file can be read by itself.
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
        // A link in the way is told apart when the directory is opened.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

/// How a new file is opened.
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Makes the first file of a log, and its head, under a name that no log had before.
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
                    // The file is empty and has no head: it belongs to no log yet.
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

/// Writes in one call; only a call that a signal cut short before the first byte is made again.
fn write_once(file: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(file, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.map_err(io::Error::from),
        }
    }
}

/// Room for a line as most are: it is not made longer piece by piece.
const USUAL_LINE: usize = 4096;

/// Writes a line as JSON whose characters are safe to show, so that any viewer can be used on the log.
fn written(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_LINE);
    serde_json::to_writer(&mut bytes, line)?;
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
    Ok(escape_json(&text).into_owned().into_bytes())
}

/// Writes a line as text that fits; what makes it too long is replaced by its length and hash, the largest parts
/// first, and what decided is kept.
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
            // Without the request nothing can be taken again.
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

/// The line with as much of its request as fits; none where that is not enough, or there is no request.
fn cut_to_fit(line: &Line) -> serde_json::Result<Option<Vec<u8>>> {
    let Record::Verdict(verdict) = &line.record else { return Ok(None) };
    for cut in CUTS {
        if let Some(text) = cut_line(line, verdict, cut)?.filter(|text| text.len() < LARGEST_LINE) {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// How much is kept of a request that is too long; the first that fits is taken. Paths stay whole in all but the last,
/// so that padding does not hide what was done.
const CUTS: [Cut; 5] = [
    Cut { text: 4096, items: 512 },
    Cut { text: 1024, items: 64 },
    Cut { text: 1024, items: 16 },
    Cut { text: 256, items: 8 },
    Cut { text: 64, items: 4 },
];

/// What stays of a text, and of a list.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Bytes.
    text: usize,
    /// Items.
    items: usize,
}

/// Keys of a request that say where something was done.
const WHERE: [&str; 4] = ["id", "canonical", "cwd", "kind"];

/// As long as a path can be.
const LONGEST_PATH: usize = 4096;

fn cut_line(line: &Line, verdict: &VerdictLine, cut: Cut) -> serde_json::Result<Option<Vec<u8>>> {
    let mut request = shortened(&verdict.request, cut, "");
    let Value::Object(parts) = &mut request else { return Ok(None) };
    // What was taken out is still there to be compared with.
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
    /// Enough to recognise a reason by.
    const KEPT: usize = 200;
    if text.len() > KEPT {
        *text = text.chars().take(KEPT).chain(['…']).collect();
    }
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod tests;
