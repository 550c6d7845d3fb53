//! The directory with the logs of all sessions, and lookup of single decisions.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::facts::Recall;
use crate::head;
use crate::parts;
use crate::read::{ReadError, read_all};
use crate::record::{Line, OutcomeLine, Record, VerdictLine};

/// The directory that contains every session's log.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

/// One log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Its first file.
    pub path: PathBuf,
    /// Its name without the extension: the session's id, numbered if the id was reused.
    pub name: String,
    /// Time of the last write.
    pub modified: SystemTime,
    /// Its files in order, each with its size in bytes.
    pub(crate) parts: Vec<(PathBuf, u64)>,
}

/// A line, with the name of its log.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The log's name.
    pub log: String,
    /// The line.
    pub line: Line,
}

/// A log that was written and no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLog {
    /// Its first file.
    pub path: PathBuf,
    /// The recorded number of lines.
    pub lines: u64,
    /// The file that records its end.
    pub head: PathBuf,
}

/// A decision with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The first file of its log.
    pub log: PathBuf,
    /// The log's name.
    pub name: String,
    /// Its line number in the log.
    pub sequence: u64,
    /// The session.
    pub session: String,
    /// The decision.
    pub verdict: VerdictLine,
    /// Its outcome, if one is recorded.
    pub outcome: Option<OutcomeLine>,
}

/// Why a decision was not found.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FindError {
    /// The directory cannot be listed.
    #[error("listing the audit directory `{}`", directory.display())]
    List {
        directory: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The logs contain no decision.
    #[error("no decision is in `{}` yet, they are written by `portcullis run` and by pi", directory.display())]
    Nothing { directory: PathBuf },
    /// The text is not a position in a log.
    #[error("`{}` is no decision, write LAST, or an id as `audit tail` shows it", given.escape_debug())]
    NoPlace { given: String },
    /// No log has this name.
    #[error("no log begins with `{}`, see `audit tail` for ids", name.escape_debug())]
    NoLog { name: String },
    /// Several logs match.
    #[error("{count} logs begin with `{}`, write more of the name", name.escape_debug())]
    ManyLogs { name: String, count: usize },
    /// The log has no such line.
    #[error("the log `{}` has no decision at {sequence}", log.escape_debug())]
    NoDecision { log: String, sequence: u64 },
}

impl LogFile {
    /// Returns its files in order, each with its size in bytes.
    #[must_use]
    pub fn parts(&self) -> &[(PathBuf, u64)] {
        &self.parts
    }
}

impl Directory {
    /// Creates a handle for a directory. A missing directory has no logs.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns all logs, the last written first. Links and other files that are not regular are skipped.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn files(&self) -> Result<Vec<LogFile>, FindError> {
        let failed = |source| FindError::List { directory: self.path.clone(), source };
        let entries = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found: BTreeMap<(String, u32), (PathBuf, u64, SystemTime)> = BTreeMap::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let Some((name, number)) = parts::split(&path) else { continue };
            // This does not follow a link.
            let metadata = entry.metadata().map_err(failed)?;
            if metadata.is_file() {
                let modified = metadata.modified().map_err(failed)?;
                found.insert((name.to_owned(), number), (path.clone(), metadata.len(), modified));
            }
        }
        let mut files: Vec<LogFile> = Vec::new();
        for ((name, _), (path, length, modified)) in found {
            match files.last_mut().filter(|last| last.name == name) {
                Some(last) => {
                    last.modified = last.modified.max(modified);
                    last.parts.push((path, length));
                }
                None => {
                    files.push(LogFile { path: path.clone(), name, modified, parts: vec![(path, length)] })
                }
            }
        }
        files.sort_by(|one, two| two.modified.cmp(&one.modified).then_with(|| one.name.cmp(&two.name)));
        Ok(files)
    }

    /// Returns the logs of which only the record of their end exists. A log without lines does not count.
    ///
    /// # Errors
    /// When a directory cannot be listed or a record cannot be read.
    pub fn missing(&self) -> Result<Vec<MissingLog>, FindError> {
        let failed = |source| FindError::List { directory: self.path.clone(), source };
        // Read the records first: a log that is being created has its file before its record.
        let names = head::names(&self.path).map_err(failed)?;
        let files = self.files()?;
        let mut missing = Vec::new();
        for name in names.iter().filter(|name| !files.iter().any(|file| file.name == **name)) {
            let head = head::path(&self.path, name);
            let lines = head::read(&head).map_err(failed)?.map_or(0, |head| head.lines);
            if lines > 0 {
                let path = self.path.join(parts::file_name(name, 1));
                missing.push(MissingLog { path, lines, head });
            }
        }
        Ok(missing)
    }

    /// Returns the newest decision that `is_wanted`, which gets the session's facts and the decision.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn newest(
        &self,
        is_wanted: impl Fn(Option<&Value>, &VerdictLine) -> bool,
    ) -> Result<Option<Decided>, FindError> {
        newest(&self.files()?, &is_wanted)
    }

    /// Returns the newest decisions of a session, the newest first.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn recent(&self, session: &str, most: usize) -> Result<Vec<Decided>, FindError> {
        let mut found: Vec<Decided> = Vec::new();
        let own = |file: &LogFile| file.name == session || file.name.starts_with(&format!("{session}."));
        for file in self.files()?.iter().filter(|file| own(file)) {
            found.extend(decisions(file)?.into_iter().rev().take(most).map(|half| half.decided(file)));
            if found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Finds a decision by its position.
    ///
    /// `LAST` is the newest of all logs, and `NAME:NUMBER` is a line of the log whose name starts with `NAME`. The line
    /// of an outcome gives its decision.
    ///
    /// # Errors
    /// When there is none.
    pub fn decision(&self, wanted: &str) -> Result<Decided, FindError> {
        let files = self.files()?;
        if wanted.eq_ignore_ascii_case("last") {
            return newest(&files, &|_, _| true)?
                .ok_or_else(|| FindError::Nothing { directory: self.path.clone() });
        }
        let place = wanted.rsplit_once(':').and_then(|(name, number)| Some((name, number.parse().ok()?)));
        let Some((name, sequence)) = place.filter(|(name, _)| !name.is_empty()) else {
            return Err(FindError::NoPlace { given: wanted.chars().take(100).collect() });
        };
        let file = named(&files, name)?;
        let found = decisions(file)?
            .into_iter()
            .find(|decided| decided.sequence == sequence || decided.outcome_at == Some(sequence));
        found
            .map(|found| found.decided(file))
            .ok_or_else(|| FindError::NoDecision { log: file.name.clone(), sequence })
    }
}

fn named<'a>(files: &'a [LogFile], name: &str) -> Result<&'a LogFile, FindError> {
    if let Some(exact) = files.iter().find(|file| file.name == name) {
        return Ok(exact);
    }
    let name: String = name.chars().take(130).collect();
    let mut fitting = files.iter().filter(|file| file.name.starts_with(&name));
    match (fitting.next(), fitting.count()) {
        (Some(file), 0) => Ok(file),
        (Some(_), others) => Err(FindError::ManyLogs { name, count: others.saturating_add(1) }),
        (None, _) => Err(FindError::NoLog { name }),
    }
}

fn newest(
    files: &[LogFile],
    is_wanted: &dyn Fn(Option<&Value>, &VerdictLine) -> bool,
) -> Result<Option<Decided>, FindError> {
    let mut best: Option<Decided> = None;
    for file in files {
        // No record of a log is newer than the last write.
        if best.as_ref().is_some_and(|best| best.verdict.at_ms > milliseconds(file.modified)) {
            break;
        }
        let mut facts = Recall::default();
        let wanted = |decision: &UnplacedDecision| {
            is_wanted(facts.facts(decision.sequence, &decision.verdict), &decision.verdict)
        };
        if let Some(found) = decisions(file)?.into_iter().filter(wanted).fold(None, |_, newer| Some(newer))
            && best.as_ref().is_none_or(|best| found.verdict.at_ms > best.verdict.at_ms)
        {
            best = Some(found.decided(file));
        }
    }
    Ok(best)
}

/// A decision whose log is not yet known.
struct UnplacedDecision {
    sequence: u64,
    session: String,
    verdict: VerdictLine,
    outcome: Option<OutcomeLine>,
    outcome_at: Option<u64>,
}

impl UnplacedDecision {
    fn decided(self, file: &LogFile) -> Decided {
        Decided {
            log: file.path.clone(),
            name: file.name.clone(),
            sequence: self.sequence,
            session: self.session,
            verdict: self.verdict,
            outcome: self.outcome,
        }
    }
}

/// Reads the decisions of a log with their outcomes. Unreadable lines are skipped; [`crate::verify`] reports them.
fn decisions(file: &LogFile) -> Result<Vec<UnplacedDecision>, ReadError> {
    let mut found: Vec<UnplacedDecision> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for line in read_all(&file.path)?.flatten() {
        match line.record {
            Record::Verdict(verdict) => {
                places.insert(line.sequence, found.len());
                let (sequence, session) = (line.sequence, line.session);
                found.push(UnplacedDecision { sequence, session, verdict, outcome: None, outcome_at: None });
            }
            Record::Outcome(outcome) => {
                let half = places.get(&outcome.verdict).and_then(|place| found.get_mut(*place));
                if let Some(half) = half {
                    let outcome = match half.outcome.take() {
                        Some(known) => known.followed_by(outcome),
                        None => outcome,
                    };
                    (half.outcome, half.outcome_at) = (Some(outcome), Some(line.sequence));
                }
            }
        }
    }
    Ok(found)
}

impl Placed {
    /// Returns the time of the record, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        match &self.line.record {
            Record::Verdict(verdict) => verdict.at_ms,
            Record::Outcome(outcome) => outcome.at_ms,
        }
    }
}

pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
