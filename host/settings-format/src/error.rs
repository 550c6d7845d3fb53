//! Errors of settings.

use std::path::PathBuf;

use crate::position::Position;

/// Why settings could not be used. None of these means "no rules": the caller denies.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A settings file has a value that cannot be used.
    #[error(
        "reading settings `{}`: line {}, column {}: {problem}",
        shown(&file.to_string_lossy()), at.line, at.column
    )]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Position in the file.
        at: Position,
        /// JSON pointer to the value; empty for the whole document or a syntax error.
        pointer: String,
        /// The problem.
        problem: Problem,
    },
    /// A settings file exists but cannot be read.
    #[error("reading settings `{}`", shown(&file.to_string_lossy()))]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A settings file was named but does not exist.
    #[error("settings `{}` are not there, check the name", shown(&file.to_string_lossy()))]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The path is a dangling link or not a regular file.
    #[error("settings `{}` {problem}", shown(&file.to_string_lossy()))]
    Unusable {
        /// The file.
        file: PathBuf,
        /// The problem, with a hint.
        problem: &'static str,
    },
    /// A file that other programs read cannot be read, so what it names could not be protected.
    #[error("reading `{}`, from which git takes hooks and settings", shown(&file.to_string_lossy()))]
    OfGit {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// Links of a path could not be resolved.
    #[error("following the path `{}`", shown(&path.to_string_lossy()))]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The configuration file of a policy cannot be used.
    #[error("reading the configuration `{}` of a policy: {}", shown(&file.to_string_lossy()), shown(reason))]
    PolicyConfig {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The text of a policy cannot be used.
    #[error("reading the policy `{}`: {}", shown(&file.to_string_lossy()), shown(reason))]
    PolicyText {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A path from the environment is not absolute.
    #[error("`{}` is not an absolute path, and {what} has to be one", shown(&path.to_string_lossy()))]
    NotAbsolute {
        /// The path.
        path: PathBuf,
        /// The purpose of the path.
        what: &'static str,
    },
}

/// A mistake at one place of a settings file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file is empty.
    #[error("the file is empty, write `{{}}` at least or remove it")]
    Empty,
    /// The JSON syntax is wrong.
    #[error("expected {wanted}, found {}", found.map_or_else(|| "the end of the file".to_owned(), |found| format!("`{}`", found.escape_debug())))]
    Unexpected {
        /// The expected syntax.
        wanted: &'static str,
        /// The character found; `None` at the end of the file.
        found: Option<char>,
    },
    /// A string without a closing quote.
    #[error("this text has no closing quote")]
    OpenText,
    /// A string with a bad escape or a control character.
    #[error("this text has an escape or a character that JSON does not have")]
    BadText,
    /// Digits that do not form a number.
    #[error("`{}` is no number", shown(text))]
    BadNumber {
        /// The digits.
        text: String,
    },
    /// Brackets nested too deeply.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A duplicate key.
    #[error("the key `{}` is there twice, remove one", shown(key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// An unknown key.
    #[error(
        "unknown key `{}`{}",
        shown(key),
        nearest.as_ref().map_or_else(String::new, |nearest| format!(", did you mean `{nearest}`?"))
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest known key.
        nearest: Option<String>,
    },
    /// A required key is missing.
    #[error("the key `{}` is missing{}", shown_place(key), if hint.is_empty() { String::new() } else { format!(", {hint}") })]
    MissingKey {
        /// The key.
        key: String,
        /// A hint on what to write.
        hint: &'static str,
    },
    /// A value of the wrong type.
    #[error("`{}` has to be {wanted}, found {found}", shown_place(field))]
    WrongType {
        /// JSON pointer.
        field: String,
        /// The expected type.
        wanted: String,
        /// The type found.
        found: &'static str,
    },
    /// A value of the right type that cannot be used.
    #[error("`{}`: {reason}", shown_place(field))]
    BadValue {
        /// JSON pointer.
        field: String,
        /// The problem, with a hint.
        reason: String,
    },
    /// A field that is not supported and would weaken the protection if it were ignored.
    #[error("`{}` is refused: {reason}", shown_place(field))]
    Refused {
        /// JSON pointer.
        field: String,
        /// Why, with a hint.
        reason: String,
    },
    /// A key that could loosen, in a file that can only tighten.
    #[error("`{}` cannot be set here: {reason}", shown_place(field))]
    OnlyTightens {
        /// JSON pointer.
        field: String,
        /// Why, with a hint.
        reason: &'static str,
    },
}

/// Returns the place of a value for a message; see [`crate::pointer::written`].
pub(crate) fn shown_place(pointer: &str) -> String {
    shown(&crate::pointer::written(pointer))
}

/// Escapes a text from outside for a message, and bounds its length.
pub fn shown(text: &str) -> String {
    /// Length limit in characters; the rest of a longer name does not help the reader.
    const LONGEST: usize = 200;
    let cut = text.char_indices().nth(LONGEST).map(|(at, _)| at);
    let kept = portcullis_text::escape(cut.and_then(|at| text.get(..at)).unwrap_or(text));
    if cut.is_some() { format!("{kept}…") } else { kept }
}
