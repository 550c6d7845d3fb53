//! Reads the log in batches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use portcullis_audit::{
    Directory, FindError, Line, LogFile, Mark, Placed, ReadError, Record, read_all, read_on,
};

use crate::cursor::{Cursor, Marks};
use crate::event::{Decider, Event};

/// The largest number of records in a batch.
pub const BATCH_EVENTS: usize = 500;
/// The largest number of bytes of the log that a batch is made from, but for its last record.
pub const BATCH_BYTES: u64 = 1 << 20;

/// The number of decisions of a log that are remembered for their outcomes.
const REMEMBERED: u64 = 4096;
/// How long an incomplete line may still be written.
const WRITING: Duration = Duration::from_secs(3600);

/// Describes a record in one line.
pub type Describe = fn(&Placed) -> String;

/// Records to send, and the positions behind them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    /// The positions after the batch, of the files in it.
    pub(crate) ends: Marks,
    /// Names of removed logs that events of the batch tell.
    pub(crate) missing: Vec<String>,
    bytes: u64,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.events.len() >= BATCH_EVENTS || self.bytes >= BATCH_BYTES
    }
}

/// The log, read from the positions of a cursor.
pub(crate) struct Source {
    directory: Directory,
    describe: Describe,
    decisions: HashMap<String, Decisions>,
}

/// The decisions of a log that outcomes may refer to.
#[derive(Default)]
struct Decisions {
    by_line: BTreeMap<u64, Decider>,
    /// Whether the lines before the cursor were looked through.
    is_looked_through: bool,
}

impl Source {
    pub(crate) fn new(directory: Directory, describe: Describe) -> Self {
        Self { directory, describe, decisions: HashMap::new() }
    }

    /// Returns the next records after the cursor; none if all are accepted.
    pub(crate) fn next(&mut self, cursor: &Cursor) -> Result<Batch, FindError> {
        let mut batch = Batch::default();
        let mut files = self.directory.files()?;
        files.reverse();
        for file in &files {
            for (path, length) in file.parts() {
                let name = file_name(path);
                let mark = cursor.accepted.get(&name).copied().unwrap_or_default();
                if *length != mark.offset && !batch.is_full() {
                    self.read(&mut batch, file, (path, *length), mark)?;
                }
            }
        }
        self.missing(&mut batch, cursor)?;
        let may_have_arrived = &cursor.under_way;
        for event in &mut batch.events {
            event.repeated = is_before(may_have_arrived, &event.position);
        }
        Ok(batch)
    }

    /// Returns the ends of all files.
    pub(crate) fn ends(&self) -> Result<Marks, FindError> {
        let mut ends = Marks::new();
        for file in self.directory.files()? {
            for (path, length) in file.parts() {
                ends.insert(file_name(path), Mark { number: u64::MAX, offset: *length });
            }
        }
        Ok(ends)
    }

    /// Returns the number of bytes of the log that are not accepted yet.
    pub(crate) fn waiting(&self, cursor: &Cursor) -> Result<u64, FindError> {
        let mut waiting = 0_u64;
        for file in self.directory.files()? {
            for (path, length) in file.parts() {
                let accepted = cursor.accepted.get(&file_name(path)).map_or(0, |mark| mark.offset);
                waiting = waiting.saturating_add(length.saturating_sub(accepted));
            }
        }
        Ok(waiting)
    }

    fn read(
        &mut self,
        batch: &mut Batch,
        file: &LogFile,
        (path, length): (&Path, u64),
        mut mark: Mark,
    ) -> Result<(), FindError> {
        let name = file_name(path);
        if length < mark.offset {
            let reason = format!("`{name}` is shorter than what was sent of it: its end was cut off");
            batch.add(&name, Event::unreadable(format!("{name}#cut"), now_ms(), reason), mark);
            batch.ends.insert(name, Mark { offset: length, ..mark });
            return Ok(());
        }
        let mut lines = read_on(path, mark)?;
        while !batch.is_full() {
            let Some(line) = lines.next() else { break };
            let next = lines.mark();
            let event = match line {
                Ok(line) => self.event(file, line),
                Err(ReadError::Partial { .. }) if is_being_written(file) => break,
                Err(error @ ReadError::Io { .. }) => return Err(error.into()),
                Err(error) => {
                    let number = mark.number.saturating_add(1);
                    let id = format!("{name}#{number}");
                    let is_partial = matches!(error, ReadError::Partial { .. });
                    let event =
                        Event::unreadable(id, milliseconds(file.modified), format!("`{name}`: {error}"));
                    if is_partial {
                        batch.add(&name, event, Mark { number, offset: length });
                        break;
                    }
                    event
                }
            };
            batch.bytes = batch.bytes.saturating_add(next.offset.saturating_sub(mark.offset));
            batch.add(&name, event, next);
            mark = next;
        }
        Ok(())
    }

    fn event(&mut self, file: &LogFile, line: Line) -> Event {
        let decider = match &line.record {
            Record::Verdict(verdict) => {
                let decider = Decider::of(verdict);
                self.decisions.entry(file.name.clone()).or_default().remember(line.sequence, decider.clone());
                decider
            }
            Record::Outcome(outcome) => self.decider(file, outcome.verdict, line.sequence),
        };
        let placed = Placed { log: file.name.clone(), line };
        let summary = (self.describe)(&placed);
        Event::of(&placed.log, &placed.line, decider, summary)
    }

    /// Returns who made the decision of an outcome; the lines before the cursor are looked through once.
    fn decider(&mut self, file: &LogFile, decision: u64, outcome: u64) -> Decider {
        let known = self.decisions.entry(file.name.clone()).or_default();
        if !known.by_line.contains_key(&decision) && !known.is_looked_through {
            known.is_looked_through = true;
            let lines = read_all(&file.path).into_iter().flatten().flatten();
            for line in lines.take_while(|line| line.sequence < outcome) {
                if let Record::Verdict(verdict) = &line.record {
                    known.remember(line.sequence, Decider::of(verdict));
                }
            }
        }
        known.by_line.get(&decision).cloned().unwrap_or_default()
    }

    /// Adds logs that were removed before they were sent whole.
    fn missing(&mut self, batch: &mut Batch, cursor: &Cursor) -> Result<(), FindError> {
        let mut names = HashSet::new();
        for log in self.directory.missing()? {
            let name = file_name(&log.path);
            let sent = lines_of(&cursor.accepted, &name);
            if sent >= log.lines
                || cursor.missing.contains(&name)
                || !names.insert(name.clone())
                || batch.is_full()
            {
                continue;
            }
            let reason =
                format!("`{name}` was removed, with {} records that were not sent", log.lines - sent);
            batch.events.push(Event::unreadable(format!("{name}#removed"), now_ms(), reason));
            batch.missing.push(name);
        }
        Ok(())
    }
}

impl Batch {
    fn add(&mut self, file: &str, mut event: Event, end: Mark) {
        event.position = Some((file.to_owned(), end));
        self.events.push(event);
        self.ends.insert(file.to_owned(), end);
    }
}

impl Decisions {
    fn remember(&mut self, line: u64, decider: Decider) {
        self.by_line.insert(line, decider);
        while self.by_line.first_key_value().is_some_and(|(first, _)| first.saturating_add(REMEMBERED) < line)
        {
            self.by_line.pop_first();
        }
    }
}

/// Returns true if a position is in what may have arrived.
fn is_before(may_have_arrived: &Marks, position: &Option<(String, Mark)>) -> bool {
    position
        .as_ref()
        .is_some_and(|(file, mark)| may_have_arrived.get(file).is_some_and(|end| mark.offset <= end.offset))
}

/// Returns the number of lines before the marks of a log's files, of which `first` is the first.
fn lines_of(marks: &Marks, first: &str) -> u64 {
    let name = first.strip_suffix(".jsonl").unwrap_or(first);
    // The further files of a log are `NAME~2.jsonl` and so on.
    let of_log =
        |file: &str| file == first || file.strip_prefix(name).is_some_and(|rest| rest.starts_with('~'));
    marks.iter().filter(|(file, _)| of_log(file)).map(|(_, mark)| mark.number).sum()
}

fn is_being_written(file: &LogFile) -> bool {
    SystemTime::now().duration_since(file.modified).is_ok_and(|age| age < WRITING)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn now_ms() -> u64 {
    milliseconds(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_over_all_files_of_a_log() {
        let files = [("ab.jsonl", 3), ("ab~2.jsonl", 4), ("abc.jsonl", 10), ("a.jsonl", 20)];
        let marks: Marks =
            files.map(|(file, number)| (file.to_owned(), Mark { number, offset: 1 })).into_iter().collect();
        assert_eq!(lines_of(&marks, "ab.jsonl"), 7);
        assert_eq!(lines_of(&marks, "none.jsonl"), 0);
    }
}
