//! What searches are told and what they return.

use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;

use crate::FileError;
use crate::operation::Inode;

/// Says what a search may look at. It is asked for each name, with the canonical path.
pub trait SearchGuard {
    /// Whether the search may go into a directory or look at a file. Asked for everything on the way.
    fn may_enter(&self, path: &Path, kind: PathKind) -> bool;

    /// Whether a name may stand in the result, with what is in it. Asked for results only.
    fn may_show(&self, path: &Path, kind: PathKind) -> bool;

    /// Whether the search may look into a file that has several names, beside the one it came by.
    fn may_read_linked(&self, file: Inode) -> bool;

    /// Whether nobody waits for the result any more.
    fn is_cancelled(&self) -> bool;
}

/// Whether a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It goes on.
    Continue,
    /// Enough was found.
    Stop,
}

/// Which files say what a search leaves out, beside `.ignore`, `.gitignore` and `.git/info/exclude`.
#[derive(Debug, Clone, Default)]
pub struct IgnoreFiles {
    /// Name of the ignore file that counts more than the others.
    pub own_name: &'static str,
    /// Patterns that the user has for all git repositories.
    pub of_git: Vec<String>,
    /// Patterns that the user has for all searches; they count least.
    pub of_user: Vec<String>,
    /// Whether `.gitignore` counts in git repositories only.
    pub git: GitRepositories,
    /// Further directories whose presence makes a repository, beside `.git`.
    pub also_repository: &'static [&'static str],
}

/// Where `.gitignore` files count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GitRepositories {
    /// In git repositories only, and those of an outer repository not in an inner one.
    #[default]
    Required,
    /// As `Required` where the search starts in a repository, else as `NotRequired`.
    RequiredInside,
    /// Everywhere.
    NotRequired,
}

/// A search for names.
#[derive(Debug, Clone)]
pub struct FindQuery {
    /// The glob. Where it holds a slash it is matched against the whole path, else against the last name; one
    /// with a slash that starts neither with `/` nor with `**/` fits below any directory.
    pub glob: String,
    /// The directory as the caller names it; whole paths start with it.
    pub named: PathBuf,
    /// What is left out.
    pub ignore: IgnoreFiles,
}

/// One name that was found.
#[derive(Debug)]
pub struct Found<'a> {
    /// Relative to the directory of the search.
    pub relative: &'a Path,
    /// What it is; links are not followed.
    pub kind: PathKind,
}

/// A search in the content of files.
#[derive(Debug, Clone)]
pub struct GrepQuery {
    /// A regular expression, or a text.
    pub pattern: String,
    /// What the pattern is.
    pub syntax: PatternSyntax,
    /// Whether upper and lower case are the same.
    pub case: Case,
    /// Only files whose path fits this glob; with `!` before it only the others.
    pub glob: Option<String>,
    /// The directory that globs with a slash start at, canonical; none: where the search starts.
    pub glob_root: Option<PathBuf>,
    /// How many lines before and after a match are wanted.
    pub context: usize,
    /// Whether files with matches are wanted as a whole.
    pub whole_files: bool,
    /// What is left out.
    pub ignore: IgnoreFiles,
}

/// What a pattern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternSyntax {
    /// A regular expression.
    Regex,
    /// The text itself.
    Literal,
}

/// Whether case counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// It does.
    Sensitive,
    /// It does not.
    Insensitive,
}

/// A line that matches, or one around it.
#[derive(Debug)]
pub struct Line<'a> {
    /// Relative to the directory of the search; empty where the search started at the file itself.
    pub relative: &'a Path,
    /// Counted from 1.
    pub number: u64,
    /// Its bytes, with the end of the line.
    pub bytes: &'a [u8],
    /// Whether it matches.
    pub is_match: bool,
    /// The file, if whole files are wanted and it is not too long.
    pub file: Option<&'a [u8]>,
}

/// How a search ended.
#[derive(Debug, Default)]
pub struct SearchEnd {
    /// What could not be looked at though it was allowed, each with the canonical path.
    pub failures: Vec<(PathBuf, std::io::Error)>,
}

/// Why a search could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The place cannot be searched.
    #[error(transparent)]
    File(#[from] FileError),
    /// The pattern makes no sense; the text is that of the regular expressions' library.
    #[error("{0}")]
    Pattern(String),
    /// The glob makes no sense.
    #[error("{0}")]
    Glob(String),
    /// Nobody waits for the result any more.
    #[error("the search was taken back")]
    Cancelled,
    /// There is more than any search will look at.
    #[error("below `{path}` are more than {limit} names; search in a directory below it")]
    TooMany {
        /// Where the search started.
        path: String,
        /// The limit.
        limit: u64,
    },
}
