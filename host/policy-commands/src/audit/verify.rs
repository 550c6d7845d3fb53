//! `portcullis audit verify`: checks the hash chain of logs, and that no line is missing at the end.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use portcullis_audit::{Directory, End, Intact, LogFile, MissingLog, ReadError, Trouble, verify};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_text::{counted, escape};
use serde_json::{Value, json};

use super::logs::{causes, directory};

/// A log, with the result of checking it.
struct Verified {
    file: PathBuf,
    outcome: Result<Intact, Fault>,
}

/// Why a log is not intact.
enum Fault {
    /// It cannot be read, or was changed.
    Trouble(Trouble),
    /// Its files are gone.
    Missing(MissingLog),
}

pub(super) fn run(around: &ProcessEnv, file: Option<PathBuf>, as_json: bool) -> exit::Outcome {
    let logs = match file.map(|file| around.cwd.join(file)) {
        Some(named) => match of_file(named) {
            Some(log) => vec![log?],
            None => return Ok(Exit::Missing),
        },
        None => of_directory(&directory(around))?,
    };
    let intact = logs.iter().all(|log| log.outcome.is_ok());
    let mut page = Page::of_lines(around);
    if as_json {
        page.json(
            &json!({ "intact": intact, "logs": logs.into_iter().map(Verified::json).collect::<Vec<_>>() }),
        );
    } else if logs.is_empty() {
        page.line("there are no logs yet");
    } else {
        page.table("", &logs.into_iter().map(Verified::row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(if intact { Exit::Done } else { Exit::Bad })
}

/// Checks all logs of a directory, including those of which only the record of their end exists.
fn of_directory(directory: &Directory) -> anyhow::Result<Vec<Verified>> {
    let missing = directory.missing()?;
    let there = directory.files()?.into_iter().map(|LogFile { path, .. }| of_log(path));
    let gone =
        missing.into_iter().map(|log| Verified { file: log.path.clone(), outcome: Err(Fault::Missing(log)) });
    Ok(there.chain(gone).collect())
}

/// Checks the named log. If no log of this name was ever written, prints a message and returns `None`.
fn of_file(file: PathBuf) -> Option<anyhow::Result<Verified>> {
    if !is_missing(&file) {
        return Some(Ok(of_log(file)));
    }
    let missing = Directory::new(file.parent().unwrap_or(Path::new("/"))).missing();
    match missing.map(|logs| logs.into_iter().find(|log| log.path == file)) {
        Ok(Some(log)) => Some(Ok(Verified { file, outcome: Err(Fault::Missing(log)) })),
        Ok(None) => {
            say(&format!(
                "portcullis: there is no log `{}`; `portcullis audit verify` without a name checks all there are",
                escape(&file.to_string_lossy())
            ));
            None
        }
        Err(error) => Some(Err(error.into())),
    }
}

fn of_log(file: PathBuf) -> Verified {
    Verified { outcome: verify(&file).map_err(Fault::Trouble), file }
}

fn is_missing(file: &Path) -> bool {
    file.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns true if the log cannot be read. A missing part does not count: it was removed.
fn is_unreadable(error: &ReadError) -> bool {
    matches!(error, ReadError::Io { source, .. } if source.kind() != ErrorKind::NotFound)
}

fn missing_in_words(log: &MissingLog) -> String {
    format!(
        "the log is gone, {} of it had been written; if you removed it, remove `{}` as well",
        counted(log.lines, "line"),
        log.head.display()
    )
}

impl Verified {
    fn row(self) -> Vec<Cell> {
        let file = cell(&self.file.to_string_lossy());
        match self.outcome {
            Ok(Intact { lines, end }) => {
                let unknown = match end {
                    End::Checked => "",
                    End::Unknown => {
                        "; written before the end of a log was recorded, so lines may be missing there"
                    }
                };
                vec![
                    tinted("intact", Tint::Good),
                    file,
                    cell(&format!("{}{unknown}", counted(lines, "line"))),
                ]
            }
            Err(Fault::Trouble(Trouble { file: part, error })) => {
                let word = if is_unreadable(&error) { "NOT READ" } else { "BROKEN" };
                let place =
                    if part == self.file { String::new() } else { format!(" in `{}`", part.display()) };
                let text = format!("{}{place}", causes(error));
                vec![tinted(word, Tint::Bad), file, cell(&text)]
            }
            Err(Fault::Missing(log)) => {
                vec![tinted("MISSING", Tint::Bad), file, cell(&missing_in_words(&log))]
            }
        }
    }

    fn json(self) -> Value {
        match self.outcome {
            Ok(Intact { lines, end }) => {
                json!({ "file": self.file, "intact": true, "lines": lines, "endChecked": end == End::Checked })
            }
            Err(Fault::Trouble(Trouble { file, error })) => {
                json!({ "file": self.file, "intact": false, "error": causes(error), "in": file })
            }
            Err(Fault::Missing(log)) => {
                json!({ "file": self.file, "intact": false, "error": missing_in_words(&log), "in": log.path })
            }
        }
    }
}
