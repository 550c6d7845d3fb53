//! Parameters and results of searches.

use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;

use crate::FileError;
use crate::operation::Inode;

/// Decides which files a search may access. It is called with the canonical path of each name.
pub trait SearchGuard {
    /// Returns true if the search may enter a directory or read a file. Called for every name on the way.
    fn may_enter(&self, path: &Path, kind: PathKind) -> bool;

    /// Returns true if a name may appear in the result, with its content. Called for results only.
    fn may_show(&self, path: &Path, kind: PathKind) -> bool;

    /// Returns true if the search may read a file that has other names besides the one found.
    fn may_read_linked(&self, file: Inode) -> bool;

    /// Returns true if the result is no longer needed.
    fn is_cancelled(&self) -> bool;
}

/// Tells a search to continue or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continue.
    Continue,
    /// Stop; the caller has enough results.
    Stop,
}

/// The ignore files and patterns of a search, besides `.ignore`, `.gitignore` and `.git/info/exclude`.
#[derive(Debug, Clone, Default)]
pub struct IgnoreFiles {
    /// The name of the ignore file with the highest precedence.
    pub own_name: &'static str,
    /// The user's patterns for all git repositories.
    pub of_git: Vec<String>,
    /// The user's patterns for all searches; they have the lowest precedence.
    pub of_user: Vec<String>,
    /// Tells where `.gitignore` files apply.
    pub git: GitRepositories,
    /// Further directories whose presence marks a repository, besides `.git`.
    pub also_repository: &'static [&'static str],
}

/// The scope of `.gitignore` files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GitRepositories {
    /// In git repositories only; those of an outer repository do not apply in an inner one.
    #[default]
    Required,
    /// Like `Required` if the search starts in a repository, otherwise like `NotRequired`.
    RequiredInside,
    /// Everywhere.
    NotRequired,
}

/// A search for names.
#[derive(Debug, Clone)]
pub struct FindQuery {
    /// The glob.
    ///
    /// If it contains a slash it is matched against the whole path, otherwise against the last name. A glob with a
    /// slash that starts neither with `/` nor with `**/` matches below any directory.
    pub glob: String,
    /// The directory as the caller names it; the prefix of whole paths.
    pub named: PathBuf,
    /// The files to leave out.
    pub ignore: IgnoreFiles,
}

/// A name that was found.
#[derive(Debug)]
pub struct FoundName<'a> {
    /// The path relative to the directory of the search.
    pub relative: &'a Path,
    /// The kind of the file; links are not followed.
    pub kind: PathKind,
}

/// A search in the content of files.
#[derive(Debug, Clone)]
pub struct GrepQuery {
    /// A regular expression or a literal text.
    pub pattern: String,
    /// The syntax of the pattern.
    pub syntax: PatternSyntax,
    /// The case sensitivity.
    pub case: Case,
    /// Searches only files whose path matches this glob, or does not match it if it starts with `!`.
    pub glob: Option<String>,
    /// The canonical directory to which globs with a slash are relative; `None` means the start of the search.
    pub glob_root: Option<PathBuf>,
    /// The number of context lines before and after a match.
    pub context: usize,
    /// True if the whole content of files with matches is wanted.
    pub whole_files: bool,
    /// The files to leave out.
    pub ignore: IgnoreFiles,
}

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternSyntax {
    /// A regular expression.
    Regex,
    /// A literal text.
    Literal,
}

/// The case sensitivity of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    Sensitive,
    /// Upper and lower case match each other.
    Insensitive,
}

/// A matching line or a context line.
#[derive(Debug)]
pub struct Line<'a> {
    /// The path relative to the directory of the search; empty if the search started at the file itself.
    pub relative: &'a Path,
    /// The line number, from 1.
    pub number: u64,
    /// The bytes, including the line end.
    pub bytes: &'a [u8],
    /// True if the line matches.
    pub is_match: bool,
    /// The content of the file, if whole files are wanted and it is not too long.
    pub file: Option<&'a [u8]>,
}

/// The summary of a finished search.
#[derive(Debug, Default)]
pub struct SearchEnd {
    /// Files that were allowed but could not be read, each with its canonical path.
    pub failures: Vec<(PathBuf, std::io::Error)>,
}

/// The reason why a search failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SearchError {
    /// The path cannot be searched.
    #[error(transparent)]
    File(#[from] FileError),
    /// The pattern is invalid; the text is that of the regular expression library.
    #[error("{0}")]
    Pattern(String),
    /// The glob is invalid.
    #[error("{0}")]
    Glob(String),
    /// The search was cancelled.
    #[error("the search was cancelled")]
    Cancelled,
    /// There are more names than a search may visit.
    #[error("below `{path}` are more than {limit} names; search in a directory below it")]
    TooMany { path: String, limit: u64 },
}
