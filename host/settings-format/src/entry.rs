//! Values of the settings, with the place where they were written.

use std::path::PathBuf;

use serde::Serialize;

use crate::position::Position;

/// A path as written: `~`, relative paths and globs are not yet resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathEntry {
    /// The text.
    pub text: String,
    /// Whether it is literal, glob characters included.
    pub literal: bool,
}

/// A value from a settings file, with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<T> {
    /// The value.
    pub value: T,
    /// The text, as written.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// A place in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The file; a name in angle brackets for built-in settings.
    pub file: PathBuf,
    /// JSON pointer.
    pub pointer: String,
    /// Line and column.
    pub at: Position,
}

impl Origin {
    /// Returns true for a place in the built-in settings, which are no file.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.file.as_os_str().as_encoded_bytes().starts_with(b"<")
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_built_in() {
            formatter.write_str("the built-in settings")?;
        } else {
            formatter.write_str(&crate::error::shown(&self.file.to_string_lossy()))?;
            if self.at != Position::default() {
                write!(formatter, ":{}:{}", self.at.line, self.at.column)?;
            }
        }
        match self.pointer.as_str() {
            "" => Ok(()),
            pointer => write!(formatter, " ({})", crate::error::shown_place(pointer)),
        }
    }
}
