//! What can go wrong with settings.

use std::path::PathBuf;

use crate::json::Position;

/// Why settings could not be used. None of these ever means "no rules": the caller denies.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A settings file says something that cannot be used.
    #[error(
        "reading settings `{}`: line {}, column {}: {problem}",
        shown(&file.to_string_lossy()), at.line, at.column
    )]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Where in it.
        at: Position,
        /// JSON pointer to the value; empty for the whole document or a syntax error.
        pointer: String,
        /// What is wrong.
        problem: Problem,
    },
    /// A settings file is there and cannot be read.
    #[error("reading settings `{}`", shown(&file.to_string_lossy()))]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A settings file was named and is not there.
    #[error("settings `{}` are not there, check the name", shown(&file.to_string_lossy()))]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The name is taken by something that leads nowhere or is no plain file.
    #[error("settings `{}` {problem}", shown(&file.to_string_lossy()))]
    Unusable {
        /// The file.
        file: PathBuf,
        /// What is wrong, with a hint.
        problem: &'static str,
    },
    /// A path of the surroundings could not be followed.
    #[error("following the path `{}`", shown(&path.to_string_lossy()))]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file with the configuration of a policy cannot be used.
    #[error("reading the configuration `{}` of a policy: {}", shown(&file.to_string_lossy()), shown(reason))]
    PolicyConfig {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A path of the surroundings is not absolute.
    #[error("`{}` is not an absolute path, and {what} has to be one", shown(&path.to_string_lossy()))]
    NotAbsolute {
        /// The path.
        path: PathBuf,
        /// What it stands for.
        what: &'static str,
    },
}

/// What is wrong at one place of a settings file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Nothing in the file.
    #[error("the file is empty, write `{{}}` at least or remove it")]
    Empty,
    /// Broken JSON.
    #[error("expected {wanted}, found {}", found.map_or_else(|| "the end of the file".to_owned(), |found| format!("`{}`", found.escape_debug())))]
    Unexpected {
        /// What should be here.
        wanted: &'static str,
        /// What is here.
        found: Option<char>,
    },
    /// A text without its end.
    #[error("this text has no closing quote")]
    OpenText,
    /// A text with a bad escape or a control character.
    #[error("this text has an escape or a character that JSON does not have")]
    BadText,
    /// Digits that are no number.
    #[error("`{}` is no number", shown(text))]
    BadNumber {
        /// The digits.
        text: String,
    },
    /// Too many brackets in each other.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The bound.
        limit: usize,
    },
    /// The same key again.
    #[error("the key `{}` is there twice, remove one", shown(key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that settings do not have.
    #[error(
        "unknown key `{}`{}",
        shown(key),
        nearest.as_ref().map_or_else(String::new, |nearest| format!(", did you mean `{nearest}`?"))
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest that exists.
        nearest: Option<String>,
    },
    /// A key that has to be there.
    #[error("the key `{key}` is missing{}", if hint.is_empty() { String::new() } else { format!(", {hint}") })]
    MissingKey {
        /// The key.
        key: String,
        /// What to write.
        hint: &'static str,
    },
    /// A value of another type.
    #[error("`{}` has to be {wanted}, found {found}", shown(field))]
    WrongType {
        /// JSON pointer.
        field: String,
        /// What it has to be.
        wanted: String,
        /// What it is.
        found: &'static str,
    },
    /// A value of the right type that cannot be used.
    #[error("`{}`: {reason}", shown(field))]
    BadValue {
        /// JSON pointer.
        field: String,
        /// What is wrong, with a hint.
        reason: String,
    },
    /// A field that would weaken the protection if it were ignored, and is not honoured.
    #[error("`{}` is refused: {reason}", shown(field))]
    Refused {
        /// JSON pointer.
        field: String,
        /// Why, with a hint.
        reason: String,
    },
    /// A key that would loosen, in a file that can only tighten.
    #[error("`{}` cannot be set here: {reason}", shown(field))]
    OnlyTightens {
        /// JSON pointer.
        field: String,
        /// Why, with a hint.
        reason: &'static str,
    },
}

/// Escapes a text from outside for a message, and bounds its length.
pub(crate) fn shown(text: &str) -> String {
    /// Longer names say nothing more to a reader.
    const LONGEST: usize = 200;
    let cut = text.char_indices().nth(LONGEST).map(|(at, _)| at);
    let kept = portcullis_text::escape(cut.and_then(|at| text.get(..at)).unwrap_or(text));
    if cut.is_some() { format!("{kept}…") } else { kept }
}
