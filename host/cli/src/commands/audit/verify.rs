//! `portcullis audit verify`: whether every line of a log follows from the one before.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use portcullis_audit::{LogFile, ReadError, Trouble, verify};
use portcullis_session::visible;
use serde_json::{Value, json};

use super::{causes, directory};
use crate::exit::{Exit, say};
use crate::page::{Cell, Page, Tint, cell, counted, tinted};
use crate::surroundings::Surroundings;

/// A log, and what is wrong with it.
struct Verified {
    file: PathBuf,
    outcome: Result<u64, Trouble>,
}

pub(super) fn run(around: &Surroundings, file: Option<PathBuf>, as_json: bool) -> crate::Outcome {
    let named = file.map(|file| around.cwd.join(file));
    if let Some(missing) = named.as_deref().filter(|file| is_missing(file)) {
        say(&format!(
            "portcullis: there is no log `{}`; `portcullis audit verify` without a name checks all there are",
            visible(&missing.to_string_lossy())
        ));
        return Ok(Exit::Missing);
    }
    let files: Vec<PathBuf> = match named {
        Some(file) => vec![file],
        None => directory(around).files()?.into_iter().map(|LogFile { path, .. }| path).collect(),
    };
    let logs: Vec<Verified> =
        files.into_iter().map(|file| Verified { outcome: verify(&file), file }).collect();
    let intact = logs.iter().all(|log| log.outcome.is_ok());
    let mut page = Page::new(around);
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

fn is_missing(file: &Path) -> bool {
    file.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether nothing is known of the log. A part that is not there was taken out.
fn is_unreadable(error: &ReadError) -> bool {
    matches!(error, ReadError::Io { source, .. } if source.kind() != ErrorKind::NotFound)
}

impl Verified {
    fn row(self) -> Vec<Cell> {
        let file = cell(&self.file.to_string_lossy());
        match self.outcome {
            Ok(count) => vec![tinted("intact", Tint::Good), file, cell(&counted(count, "line"))],
            Err(Trouble { file: part, error }) => {
                let word = if is_unreadable(&error) { "NOT READ" } else { "BROKEN" };
                let place =
                    if part == self.file { String::new() } else { format!(" in `{}`", part.display()) };
                let text = format!("{}{place}", causes(error));
                vec![tinted(word, Tint::Bad), file, cell(&text)]
            }
        }
    }

    fn json(self) -> Value {
        match self.outcome {
            Ok(count) => json!({ "file": self.file, "intact": true, "lines": count }),
            Err(Trouble { file, error }) => {
                json!({ "file": self.file, "intact": false, "error": causes(error), "in": file })
            }
        }
    }
}
