//! File names of a log: `ID.jsonl`, and for a long log `ID~2.jsonl`, `ID~3.jsonl`.
//!
//! Numbers and hashes continue across files, so a removed file is detected like a removed line.

use std::io;
use std::path::{Path, PathBuf};

/// Extension of every file.
const ENDING: &str = ".jsonl";
/// Separator between name and number; session ids do not contain it.
const MARK: char = '~';

/// Returns the name of a part; the first one has no number.
pub(crate) fn file_name(name: &str, number: u32) -> String {
    if number <= 1 { format!("{name}{ENDING}") } else { format!("{name}{MARK}{number}{ENDING}") }
}

/// Splits a file name into the log's name and the number of the part; `None` if it is not a log file.
pub(crate) fn split(file: &Path) -> Option<(&str, u32)> {
    let stem = file.file_name()?.to_str()?.strip_suffix(ENDING)?;
    match stem.split_once(MARK) {
        None => Some((stem, 1)),
        // Only the canonical form of the number is valid, so that no two files are the same part.
        Some((name, number)) => {
            let number =
                number.parse().ok().filter(|parsed: &u32| *parsed > 1 && parsed.to_string() == number)?;
            Some((name, number))
        }
    }
}

/// Returns the existing files of the log that `file` is a part of, in order.
///
/// # Errors
/// When their directory cannot be listed.
pub(crate) fn existing_parts(file: &Path) -> io::Result<Vec<PathBuf>> {
    let Some((name, _)) = split(file) else { return Ok(vec![file.to_owned()]) };
    let directory =
        file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if let Some((_, number)) = split(&path).filter(|(own, _)| *own == name) {
            parts.push((number, path.clone()));
        }
    }
    parts.sort();
    // Include a missing file: opening it gives the error.
    if parts.is_empty() {
        parts.push((1, file.to_owned()));
    }
    Ok(parts.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (file, expected) in [
            ("a.jsonl", Some(("a", 1))),
            ("a.2.jsonl", Some(("a.2", 1))),
            ("a~2.jsonl", Some(("a", 2))),
            ("a~12.jsonl", Some(("a", 12))),
            ("a~1.jsonl", None),
            ("a~02.jsonl", None),
            ("a~x.jsonl", None),
            ("a.json", None),
        ] {
            assert_eq!(split(Path::new(file)), expected, "{file}");
            if let Some((name, number)) = expected {
                assert_eq!(file_name(name, number), file);
            }
        }
    }
}
