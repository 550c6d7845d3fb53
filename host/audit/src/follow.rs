//! Reads the newest records of all logs, and then the records that are added.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::directory::{Directory, FindError, LogFile, Placed, milliseconds};
use crate::read::{Mark, ReadError, Trouble, read_on};

/// Reads the records that are added to the logs of a directory, including those of new sessions.
#[derive(Debug)]
pub struct Follower {
    directory: Directory,
    marks: HashMap<PathBuf, (Mark, u64)>,
}

impl Follower {
    /// Starts after the newest `count` records, which are returned as well, the oldest first.
    ///
    /// # Errors
    /// When the directory cannot be listed or a log cannot be opened.
    pub fn begin(
        directory: &Directory,
        count: usize,
    ) -> Result<(Self, Vec<Result<Placed, Trouble>>), FindError> {
        let mut follower = Self { directory: directory.clone(), marks: HashMap::new() };
        let mut newest: Vec<Result<Placed, Trouble>> = Vec::new();
        for file in directory.files()? {
            let oldest = newest.iter().flatten().map(Placed::at_ms).min().unwrap_or(0);
            if newest.len() >= count && oldest > milliseconds(file.modified) {
                // This log has none of the newest records; its current content is skipped later.
                let passed_over = |(path, length)| (path, (Mark::default(), length));
                follower.marks.extend(file.parts.into_iter().map(passed_over));
                continue;
            }
            let mut own = VecDeque::new();
            for line in follower.added(&file)? {
                own.push_back(line);
                if own.len() > count {
                    own.pop_front();
                }
            }
            newest.extend(own);
            sort(&mut newest);
            let surplus = newest.len().saturating_sub(count);
            newest.drain(..surplus);
        }
        Ok((follower, newest))
    }

    /// Returns the records added since the last call, sorted by time.
    ///
    /// # Errors
    /// When the directory cannot be listed or a log cannot be opened.
    pub fn poll(&mut self) -> Result<Vec<Result<Placed, Trouble>>, FindError> {
        let mut added = Vec::new();
        for file in self.directory.files()? {
            added.extend(self.added(&file)?);
        }
        sort(&mut added);
        Ok(added)
    }

    fn added(&mut self, file: &LogFile) -> Result<Vec<Result<Placed, Trouble>>, FindError> {
        let mut added = Vec::new();
        for (path, length) in &file.parts {
            self.added_to(&file.name, path, *length, &mut added)?;
        }
        Ok(added)
    }

    fn added_to(
        &mut self,
        log: &str,
        path: &Path,
        length: u64,
        added: &mut Vec<Result<Placed, Trouble>>,
    ) -> Result<(), FindError> {
        let (mut mark, passed_over) = self.marks.get(path).copied().unwrap_or_default();
        if length <= mark.offset.max(passed_over) {
            return Ok(());
        }
        let mut lines = read_on(path, mark)?;
        while let Some(line) = lines.next() {
            // An incomplete line is still being written; it is read again once it is complete.
            if matches!(line, Err(ReadError::Partial { .. })) {
                break;
            }
            mark = lines.mark();
            if mark.offset > passed_over {
                added.push(match line {
                    Ok(line) => Ok(Placed { log: log.to_owned(), line }),
                    Err(error) => Err(Trouble { file: path.to_owned(), error }),
                });
            }
        }
        self.marks.insert(path.to_owned(), (mark, 0));
        Ok(())
    }
}

/// Sorts by time. An unreadable line has no time and stays behind the line before it.
fn sort(lines: &mut [Result<Placed, Trouble>]) {
    let mut latest = 0;
    let times: Vec<u64> = lines
        .iter()
        .map(|line| {
            latest = line.as_ref().map_or(latest, Placed::at_ms);
            latest
        })
        .collect();
    let mut times = times.into_iter();
    lines.sort_by_cached_key(|_| times.next());
}
