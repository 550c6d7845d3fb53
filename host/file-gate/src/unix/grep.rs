//! Searches the content of files, with the searcher and the regular expressions of ripgrep.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use portcullis_decision::pattern::check_glob_size;
use portcullis_decision::request::PathKind;
use rustix::fs::OFlags;

use crate::FileError;
use crate::operation::Limits;
use crate::search::{Case, Flow, GrepQuery, Line, PatternSyntax, SearchEnd, SearchError, SearchGuard};
use crate::system::kernel::{self, Descriptors, Handle, Status, failure};
use crate::system::located::Located;
use crate::system::read;
use crate::system::walk::{Visitor, Walk, WalkedName};

/// The longest line kept in memory, in bytes; a file without line ends must not fill the memory.
const LONGEST_LINE: usize = 64 << 20;

/// Passes each line in or below `located` that matches the query, with its context lines, to `tell`.
pub(crate) fn lines(
    walk: Walk<'_>,
    located: &Located,
    query: &GrepQuery,
    limits: Limits,
    tell: &mut dyn FnMut(&Line<'_>) -> Flow,
) -> Result<SearchEnd, SearchError> {
    let missing = || FileError::NotFound { path: located.text.clone() };
    let start = located.file().ok_or_else(missing)?;
    let matcher = matcher(query)?;
    let root = query.glob_root.as_deref().unwrap_or(&located.canonical);
    let overrides = overrides(query, root)?;
    let mut grep =
        Grep { descriptors: walk.descriptors, guard: walk.guard, query, matcher, overrides, limits, tell };
    if located.kind == PathKind::Directory {
        read::require_ordinary(located, start)?;
        return walk.run(located, start, &mut grep);
    }
    read::require_file(located, start)?;
    let mut end = walk.end;
    grep.named_file(located, start, &mut end)?;
    Ok(end)
}

struct Grep<'a> {
    descriptors: &'a Descriptors,
    guard: &'a dyn SearchGuard,
    query: &'a GrepQuery,
    matcher: RegexMatcher,
    overrides: Override,
    limits: Limits,
    tell: &'a mut dyn FnMut(&Line<'_>) -> Flow,
}

impl Visitor for Grep<'_> {
    fn wants(&self, path: &Path, is_directory: bool) -> Option<bool> {
        match self.overrides.matched(path, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(false),
            Match::Whitelist(_) => Some(true),
        }
    }

    fn visit(&mut self, step: &WalkedName<'_>, end: &mut SearchEnd) -> Result<Flow, SearchError> {
        if step.kind != PathKind::File {
            return Ok(Flow::Continue);
        }
        let opened = kernel::open_name(step.directory, step.name, step.path);
        let Ok(Some(file)) = opened.and_then(|opened| self.ordinary(opened, step.device)) else {
            return Ok(Flow::Continue);
        };
        let file = match self.descriptors.reopen(&file, OFlags::RDONLY) {
            Ok(file) => File::from(file),
            Err(errno) => {
                end.failures.push((step.path.to_owned(), errno.into()));
                return Ok(Flow::Continue);
            }
        };
        let mut searcher = self.searcher(BinaryDetection::quit(0));
        let reader = Watched { file: &file, guard: self.guard };
        self.search(&file, step.path, step.relative, end, |matcher, sink| {
            searcher.search_reader(matcher, reader, sink)
        })
    }
}

impl Grep<'_> {
    /// Searches a file that the caller named itself, even if it looks binary.
    fn named_file(
        &mut self,
        located: &Located,
        opened: &Handle,
        end: &mut SearchEnd,
    ) -> Result<(), SearchError> {
        let failed = |errno| failure("read", &located.canonical, errno);
        let file = self.descriptors.reopen(opened, OFlags::RDONLY).map_err(failed)?;
        let file = File::from(file);
        let size = Status::read(&file).map_err(failed)?.identity.size;
        let mut searcher = self.searcher(BinaryDetection::convert(0));
        if size <= self.limits.bytes {
            let bytes = whole(&file, self.limits.bytes).map_err(|source| {
                SearchError::File(FileError::Io { doing: "read", path: located.text.clone(), source })
            })?;
            self.search(&file, &located.canonical, Path::new(""), end, |matcher, sink| {
                searcher.search_slice(matcher, &bytes, sink)
            })?;
        } else {
            let reader = Watched { file: &file, guard: self.guard };
            self.search(&file, &located.canonical, Path::new(""), end, |matcher, sink| {
                searcher.search_reader(matcher, reader, sink)
            })?;
        }
        Ok(())
    }

    /// Returns the file if it is a regular file and not an interface of the kernel.
    fn ordinary(&self, opened: Handle, device: (u32, u32)) -> Result<Option<Handle>, rustix::io::Errno> {
        let status = opened.status()?;
        let is_file = status.kind == PathKind::File;
        if status.links > 1 && !self.guard.may_read_linked(status.identity.inode) {
            return Ok(None);
        }
        let is_ordinary = is_file
            && (status.identity.inode.device == device || !kernel::is_kernel_interface(opened.volume())?);
        Ok(is_ordinary.then_some(opened))
    }

    fn searcher(&self, binary: BinaryDetection) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder.line_number(true).binary_detection(binary).heap_limit(Some(LONGEST_LINE));
        builder.before_context(self.query.context).after_context(self.query.context);
        builder.build()
    }

    fn search(
        &mut self,
        file: &File,
        path: &Path,
        relative: &Path,
        end: &mut SearchEnd,
        run: impl FnOnce(&RegexMatcher, &mut Lines<'_, '_>) -> io::Result<()>,
    ) -> Result<Flow, SearchError> {
        let mut sink = Lines {
            file,
            path,
            relative,
            descriptors: self.descriptors,
            guard: self.guard,
            tell: &mut *self.tell,
            content: None,
            wanted: self.query.whole_files.then_some(self.limits.bytes),
            standing: Standing::Unknown,
            flow: Flow::Continue,
        };
        let searched = run(&self.matcher, &mut sink);
        let flow = sink.flow;
        if self.guard.is_cancelled() {
            return Err(SearchError::Cancelled);
        }
        if let Err(error) = searched {
            end.failures.push((path.to_owned(), error));
        }
        Ok(flow)
    }
}

/// The decision whether the lines of a file may be shown.
#[derive(PartialEq, Eq)]
enum Standing {
    Unknown,
    Shown,
    Hidden,
}

/// Receives the lines of one file.
struct Lines<'a, 'b> {
    file: &'a File,
    path: &'a Path,
    relative: &'a Path,
    descriptors: &'a Descriptors,
    guard: &'a dyn SearchGuard,
    tell: &'b mut dyn FnMut(&Line<'_>) -> Flow,
    content: Option<Vec<u8>>,
    /// The size limit of a file that is passed on whole; `None` if whole files are not wanted.
    wanted: Option<u64>,
    standing: Standing,
    flow: Flow,
}

impl Lines<'_, '_> {
    fn line(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) -> bool {
        if self.standing == Standing::Unknown {
            // The decision is about the path of the opened file, not about the name by which it was found.
            let is_there = self.descriptors.is_at(self.file, self.path);
            let is_shown = is_there && self.guard.may_show(self.path, PathKind::File);
            self.standing = if is_shown { Standing::Shown } else { Standing::Hidden };
            if is_shown && let Some(longest) = self.wanted {
                self.content = whole(self.file, longest).ok();
            }
        }
        if self.standing == Standing::Hidden {
            return false;
        }
        let file = self.content.as_deref();
        let line = Line { relative: self.relative, number: number.unwrap_or(0), bytes, is_match, file };
        self.flow = (self.tell)(&line);
        self.flow == Flow::Continue
    }
}

impl Sink for Lines<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        Ok(self.line(found.line_number(), found.bytes(), true))
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.line(context.line_number(), context.bytes(), false))
    }
}

/// A reader that fails when the search is cancelled.
struct Watched<'a> {
    file: &'a File,
    guard: &'a dyn SearchGuard,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.guard.is_cancelled() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

/// Reads a whole file, whatever the position of its descriptor.
fn whole(file: &File, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let at = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if at > longest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = file.read_at(&mut chunk, at)?;
        match chunk.get(..read) {
            None | Some([]) => return Ok(bytes),
            Some(part) => bytes.extend_from_slice(part),
        }
    }
}

/// The longest pattern in bytes; a compiled one takes up to a thousand times as much memory.
const PATTERN_MAX: usize = 64 << 10;

/// Builds the matcher that ripgrep uses with its default options.
fn matcher(query: &GrepQuery) -> Result<RegexMatcher, SearchError> {
    if query.pattern.len() > PATTERN_MAX {
        return Err(SearchError::Pattern(format!("it is longer than {PATTERN_MAX} bytes")));
    }
    RegexMatcherBuilder::new()
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .fixed_strings(query.syntax == PatternSyntax::Literal)
        .case_insensitive(query.case == Case::Insensitive)
        .line_terminator(Some(b'\n'))
        .dot_matches_new_line(false)
        .ban_byte(Some(0))
        .build_many(&[&query.pattern])
        .map_err(|error| SearchError::Pattern(error.to_string()))
}

fn overrides(query: &GrepQuery, root: &Path) -> Result<Override, SearchError> {
    let Some(glob) = &query.glob else { return Ok(Override::empty()) };
    check_glob_size(glob).map_err(|error| SearchError::Glob(error.to_string()))?;
    let mut builder = OverrideBuilder::new(root);
    let built = builder.add(glob).and_then(|builder| builder.build());
    built.map_err(|error| SearchError::Glob(error.to_string()))
}
