//! The searches of the protocol: carried out here, with results in the format of pi's own tools.

use std::path::{Path, PathBuf};

use portcullis_decision::request::PathKind;
use portcullis_file_gate::spelling::{self, PiLine};
use portcullis_file_gate::{
    Case, FileError, FindQuery, GitRepositories, GrepQuery, IgnoreFiles, PatternSyntax, SearchEnd,
    SearchError,
};
use portcullis_rpc::{
    AbsolutePath, ErrorCode, ErrorObject, FileFindParams, FileGrepParams, FileListParams, FileListResponse,
    FileSearchResponse, ListedKind, ListedName,
};
use portcullis_session::{Cancel, FileCall, FileFailure, SearchFailure, Session, searches};

use crate::serve::files::{failure, misspelt};
use crate::serve::host::Host;
use crate::serve::search_format::{self, FindText, GrepText};

/// ripgrep's hint for a pattern that can only match across lines.
const MULTILINE: &str = "\n\nConsider enabling multiline mode with the --multiline flag (or -U for short).\n\
                         When multiline mode is enabled, new line characters can be matched.";
/// ripgrep's hint for a pattern that can only match binary data.
const NO_TEXT: &str = "\n\nConsider enabling text mode with the --text flag (or -a for short). Otherwise,\n\
                       binary detection is enabled and matching a NUL byte is impossible.";

impl Host {
    pub(super) fn file_list(
        &self,
        params: &FileListParams,
        cancel: &Cancel,
    ) -> Result<FileListResponse, ErrorObject> {
        let path = spelling::absolute(params.path.as_str()).map_err(|error| misspelt(&error))?;
        let given = params.given.as_ref().map_or(params.path.as_str(), |given| given.as_str());
        let call = FileCall { path: &path, given, call: Some(params.call_id.as_str()), cancel };
        self.with_session(|session| {
            let names = searches::list(session, call).map_err(|error| failure(&error))?;
            // Names that are not UTF-8 cannot be sent; pi itself cannot use them either.
            let entries = names.into_iter().filter_map(|listed| {
                let kind = match listed.kind {
                    PathKind::Directory => ListedKind::Directory,
                    PathKind::Missing => ListedKind::Nothing,
                    PathKind::File | PathKind::Symlink | PathKind::Other => ListedKind::Other,
                };
                Some(ListedName { name: listed.name.into_string().ok()?, kind })
            });
            Ok(FileListResponse { entries: entries.collect() })
        })
    }

    pub(super) fn file_find(
        &self,
        params: &FileFindParams,
        cancel: &Cancel,
    ) -> Result<FileSearchResponse, ErrorObject> {
        self.with_session(|session| {
            let place = self.place(session, &params.cwd, params.path.as_deref())?;
            let call = place.call(params.call_id.as_str(), cancel);
            let query = FindQuery {
                glob: params.pattern.clone(),
                named: place.path.clone(),
                ignore: self.ignored_by_find(place.line),
            };
            let limit = search_format::at_least_one(params.limit.as_ref(), search_format::USUAL_NAMES);
            let mut text = FindText::new(place.line, limit);
            let found = searches::find(session, call, &query, &mut |found| text.name(found.relative, found.kind));
            match found {
                Ok(_) => Ok(text.finish()),
                Err(SearchFailure::Search(SearchError::Glob(error))) => {
                    Ok(search_format::failed(format!("[fd error]: {error}")))
                }
                Err(error) if is_no_place(&error) => Ok(search_format::failed(format!(
                    "[fd error]: Search path '{}' is not a directory.\n[fd error]: No valid search paths given.",
                    place.path.display()
                ))),
                Err(error) => failure_response(&error),
            }
        })
    }

    pub(super) fn file_grep(
        &self,
        params: &FileGrepParams,
        cancel: &Cancel,
    ) -> Result<FileSearchResponse, ErrorObject> {
        self.with_session(|session| {
            let place = self.place(session, &params.cwd, params.path.as_deref())?;
            let call = place.call(params.call_id.as_str(), cancel);
            let context = search_format::positive(params.context.as_ref());
            let limit = search_format::at_least_one(params.limit.as_ref(), search_format::USUAL_MATCHES);
            let query = self.grep_query(params, &place, context);
            let name = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut text = GrepText::new(place.line, limit, context, name);
            let mut kind = PathKind::Missing;
            let found =
                searches::grep(session, call, &query, &mut |start| kind = start, &mut |line| text.take(line));
            match found {
                Ok(end) if end.failures.is_empty() || text.is_complete() => Ok(text.finish()),
                Ok(end) => Ok(search_format::failed(unreadable(&end, &place))),
                Err(SearchFailure::Search(SearchError::Pattern(error))) => {
                    Ok(search_format::failed(format!("rg: {}", explained(error))))
                }
                Err(SearchFailure::Search(SearchError::Glob(error))) => {
                    Ok(search_format::failed(format!("rg: {error}")))
                }
                Err(error) if is_no_place(&error) => {
                    Ok(search_format::failed(format!("Path not found: {}", place.path.display())))
                }
                Err(error) => failure_response(&error),
            }
        })
    }

    fn grep_query(&self, params: &FileGrepParams, place: &SearchStart<'_>, context: usize) -> GrepQuery {
        let (glob, glob_root, around) = match place.line {
            // A glob is relative to pi's own working directory; context lines are taken from the whole file.
            PiLine::V0 => (params.glob.clone(), Some(place.cwd.canonicalize().unwrap_or_default()), 0),
            PiLine::V1 => (params.glob.as_deref().map(without_dots), None, context),
        };
        GrepQuery {
            pattern: params.pattern.clone(),
            syntax: if params.literal { PatternSyntax::Literal } else { PatternSyntax::Regex },
            case: if params.ignore_case { Case::Insensitive } else { Case::Sensitive },
            // pi takes an empty glob for none.
            glob: glob.filter(|glob| !glob.is_empty()),
            glob_root,
            context: around,
            whole_files: place.line == PiLine::V0,
            ignore: IgnoreFiles {
                own_name: ".rgignore",
                of_git: lines_of(ignore::gitignore::gitconfig_excludes_path()),
                also_repository: &[".jj"],
                ..IgnoreFiles::default()
            },
        }
    }

    fn ignored_by_find(&self, line: PiLine) -> IgnoreFiles {
        IgnoreFiles {
            own_name: ".fdignore",
            of_git: lines_of(ignore::gitignore::gitconfig_excludes_path()),
            of_user: lines_of(Some(self.around.settings.join("fd/ignore"))),
            git: match line {
                PiLine::V0 => GitRepositories::NotRequired,
                PiLine::V1 => GitRepositories::RequiredInside,
            },
            also_repository: &[],
        }
    }

    fn place<'a>(
        &self,
        session: &Session,
        cwd: &'a AbsolutePath,
        given: Option<&'a str>,
    ) -> Result<SearchStart<'a>, ErrorObject> {
        let line = PiLine::from_version(&session.agent().version);
        // pi takes an empty path for none.
        let given = given.filter(|given| !given.is_empty()).unwrap_or(".");
        let cwd = cwd.as_path();
        let path = spelling::resolve_as(line, given, cwd, &self.around.home);
        Ok(SearchStart { line, cwd, given, path: path.map_err(|error| misspelt(&error))? })
    }
}

/// The start of a search.
struct SearchStart<'a> {
    line: PiLine,
    cwd: &'a Path,
    given: &'a str,
    path: PathBuf,
}

impl<'a> SearchStart<'a> {
    fn call(&'a self, call: &'a str, cancel: &'a Cancel) -> FileCall<'a> {
        FileCall { path: &self.path, given: self.given, call: Some(call), cancel }
    }
}

/// Returns true if a search failed because its starting path does not exist or cannot be searched.
fn is_no_place(error: &SearchFailure) -> bool {
    let (SearchFailure::File(FileFailure::File(error)) | SearchFailure::Search(SearchError::File(error))) =
        error
    else {
        return false;
    };
    matches!(error, FileError::NotFound { .. } | FileError::NotADirectory { .. } | FileError::Loop { .. })
        || matches!(error, FileError::Denied { .. })
}

fn failure_response(error: &SearchFailure) -> Result<FileSearchResponse, ErrorObject> {
    match error {
        SearchFailure::File(error) => Err(failure(error)),
        SearchFailure::Search(SearchError::Cancelled) => {
            Err(ErrorObject::new(ErrorCode::Cancelled, "the search was aborted"))
        }
        SearchFailure::Search(error) => Ok(search_format::failed(error.to_string())),
    }
}

/// Returns ripgrep's messages on unreadable files; pi then fails even if there are matches.
fn unreadable(end: &SearchEnd, place: &SearchStart<'_>) -> String {
    let start = place.path.canonicalize().unwrap_or_else(|_| place.path.clone());
    let line = |(path, error): &(PathBuf, std::io::Error)| {
        let relative = path.strip_prefix(&start).unwrap_or(path);
        let shown = match place.line {
            PiLine::V0 => place.path.join(relative),
            PiLine::V1 => Path::new(".").join(relative),
        };
        format!("rg: {}: {error}", shown.display())
    };
    end.failures.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn explained(error: String) -> String {
    if error.contains("the literal") && error.contains("not allowed") {
        return error + MULTILINE;
    }
    if error.contains("pattern contains \"\\0\"") {
        return error + NO_TEXT;
    }
    error
}

/// Removes leading `./` as pi does, since ripgrep has no names with it.
fn without_dots(glob: &str) -> String {
    let (not, mut rest) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter;
    }
    format!("{not}{rest}")
}

/// Returns the lines of a file of the user, or none if it does not exist.
fn lines_of(file: Option<PathBuf>) -> Vec<String> {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_before_a_glob_are_taken_away() {
        for (glob, expected) in [("./a", "a"), ("!././a", "!a"), (".a", ".a"), ("../a", "../a"), ("a", "a")] {
            assert_eq!(without_dots(glob), expected);
        }
    }
}
