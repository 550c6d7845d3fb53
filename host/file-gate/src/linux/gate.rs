//! The gate: where paths are located, and permits are checked and used up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use portcullis_decision::Permit;
use portcullis_decision::path_text;
use portcullis_decision::request::{Content, FileOperation, PathKind};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::FileError;
use crate::operation::{FileContent, Limits, Links, Listing, Names, Purpose, WriteOptions, Written};
use crate::search::{
    FindQuery, Flow, Found, GrepQuery, IgnoreFiles, Line, SearchEnd, SearchError, SearchGuard,
};
use crate::system::kernel::{Descriptors, failure};
use crate::system::locate::{self, Root};
use crate::system::located::{Editing, Located};
use crate::system::walk::Walk;
use crate::system::{find, grep, links, list, read, write};
use crate::view::{View, Views};

/// Carries out file operations, each only with the permit for it.
#[derive(Debug)]
pub struct Gate {
    views: Views,
    descriptors: Descriptors,
    outputs: RwLock<BTreeSet<PathBuf>>,
}

impl Gate {
    /// Makes a gate that opens paths in `views`.
    ///
    /// # Errors
    /// When `/proc` is not the kernel's, or the sandbox's root does not count as `/`.
    pub fn new(views: Views) -> Result<Self, FileError> {
        let proc = Path::new("/proc/self/fd");
        let descriptors = Descriptors::open().map_err(|errno| failure("open", proc, errno))?;
        let gate = Self { views, descriptors, outputs: RwLock::default() };
        // Canonical paths are relative to the root of the mount namespace. Were the view's root another
        // directory, they would name other files than those that rules speak of.
        let root = gate.locate(Path::new("/"), Purpose::Existing)?;
        if root.canonical() != Path::new("/") {
            return Err(FileError::Moved { path: root.text });
        }
        Ok(gate)
    }

    /// Lets a file into which pi put the truncated output of a command be located by exactly this name,
    /// though it lies in the host's temporary directory.
    ///
    /// # Errors
    /// When the name is not `pi-<tool>-<hex>.<ending>` in an absolute directory.
    pub fn register_output(&self, path: &Path) -> Result<(), FileError> {
        if !path.is_absolute() || path_text::normalize(path) != path || !is_output_name(path) {
            return Err(failure("register", path, Errno::INVAL));
        }
        self.outputs.write().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        Ok(())
    }

    /// Opens what `path` names without touching it, as commands see it. Nothing is decided yet.
    ///
    /// # Errors
    /// [`FileError::NotFound`] and the like for what commands do not see, also when the host does.
    pub fn locate(&self, path: &Path, purpose: Purpose) -> Result<Located, FileError> {
        match &self.views {
            Views::Host => self.locate_from(Root::Host, View::Host, path, purpose),
            Views::Session { root, .. } => {
                let root = Root::Session(root.as_ref());
                match self.locate_from(root, View::Session, path, purpose) {
                    Err(FileError::NotFound { .. } | FileError::Denied { .. })
                        if purpose == Purpose::Existing && self.is_output(path) =>
                    {
                        self.locate_output(path)
                    }
                    result => result,
                }
            }
        }
    }

    /// Opens what `path` names without touching it, as the host sees it, for an exception that the user
    /// approves: [`Located::view`] says so. Without a sandbox this is [`Gate::locate`].
    ///
    /// # Errors
    /// [`FileError::HostTemp`] for paths that mean another file to commands.
    pub fn locate_in_host_view(&self, path: &Path, purpose: Purpose) -> Result<Located, FileError> {
        let Views::Session { private_temp, .. } = &self.views else {
            return self.locate(path, purpose);
        };
        if purpose == Purpose::Existing && self.is_output(path) {
            return self.locate_output(path);
        }
        let located = self.locate_from(Root::Host, View::BeyondSession, path, purpose)?;
        let is_private = |path: &Path| private_temp.as_ref().is_some_and(|temp| path.starts_with(temp));
        if is_private(&path_text::normalize(path)) || is_private(located.canonical()) {
            return Err(FileError::HostTemp { path: path_text::encode(path) });
        }
        Ok(located)
    }

    /// Reads a whole file, with a permit to read or edit it.
    ///
    /// # Errors
    /// For everything but regular files, and for those longer than the limit.
    pub fn read(&self, located: Located, permit: Permit, limits: Limits) -> Result<FileContent, FileError> {
        let operation = operation(&located, &permit)?;
        if !matches!(operation, FileOperation::Read | FileOperation::Edit(_)) {
            return Err(wrong_operation(operation, "read"));
        }
        read::whole(&self.descriptors, &located, limits)
    }

    /// Reads what is there for a decision about writing it, which needs no permit: nothing of it may be passed on,
    /// to a policy neither. None where nothing is there.
    ///
    /// # Errors
    /// As for [`Gate::read`].
    pub fn inspect(&self, located: &Located, limits: Limits) -> Result<Option<FileContent>, FileError> {
        write::slot(located)?;
        match located.kind() {
            PathKind::Missing => Ok(None),
            PathKind::File | PathKind::Directory | PathKind::Symlink | PathKind::Other => {
                read::whole(&self.descriptors, located, limits).map(Some)
            }
        }
    }

    /// Reads a whole file to edit it, with a permit to edit it; [`Gate::replace`] ends the edit.
    ///
    /// # Errors
    /// As for [`Gate::read`], and when it was not located for writing.
    pub fn edit(&self, located: Located, permit: Permit, limits: Limits) -> Result<Editing, FileError> {
        let operation = operation(&located, &permit)?;
        if !matches!(operation, FileOperation::Edit(_)) {
            return Err(wrong_operation(operation, "edit"));
        }
        write::slot(&located)?;
        let content = read::whole(&self.descriptors, &located, limits)?;
        Ok(Editing { located, content })
    }

    /// Replaces the content of a file that is being edited, if it is still what was read.
    ///
    /// # Errors
    /// [`FileError::Conflict`] when it is not.
    pub fn replace(&self, editing: Editing, bytes: &[u8], links: Links) -> Result<Written, FileError> {
        let options = WriteOptions { expect: Some(editing.content.identity), links };
        write::whole(&self.descriptors, &editing.located, bytes, options)
    }

    /// Writes a whole file, creating it and the directories above it, with a permit to write it; or with a
    /// permit to edit it, if it is said which state is replaced.
    ///
    /// # Errors
    /// [`FileError::Conflict`] when the file changed, came or went since it was located: the caller
    /// locates it again and has that decided.
    pub fn write(
        &self,
        located: Located,
        permit: Permit,
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<Written, FileError> {
        let operation = operation(&located, &permit)?;
        if let FileOperation::Write(content) = operation {
            if !is_content(content, bytes) {
                return Err(FileError::WrongPermit { detail: "it is for other content".to_owned() });
            }
        } else if !matches!(operation, FileOperation::Edit(_)) || options.expect.is_none() {
            return Err(wrong_operation(operation, "write"));
        }
        write::whole(&self.descriptors, &located, bytes, options)
    }

    /// Lists the names in a directory that `keep` lets pass, with a permit to list it. `keep` is told
    /// the canonical path of each name and what it is.
    ///
    /// # Errors
    /// For everything but directories.
    pub fn list(
        &self,
        located: Located,
        permit: Permit,
        limits: Limits,
        keep: &mut dyn FnMut(&Path, PathKind) -> bool,
    ) -> Result<Listing, FileError> {
        let operation = operation(&located, &permit)?;
        if !matches!(operation, FileOperation::List) {
            return Err(wrong_operation(operation, "list"));
        }
        list::directory(&self.descriptors, &located, limits, keep)
    }

    /// Tells `tell` the names below a directory that fit the query, with a permit to search it.
    ///
    /// # Errors
    /// For everything but directories, and for a glob that makes no sense.
    pub fn find(
        &self,
        located: Located,
        permit: Permit,
        query: &FindQuery,
        guard: &dyn SearchGuard,
        tell: &mut dyn FnMut(&Found<'_>) -> Flow,
    ) -> Result<SearchEnd, SearchError> {
        searching(&located, &permit, &query.glob)?;
        let end = find::names(self.walk(&located, &query.ignore, guard)?, &located, query, tell)?;
        self.root_of(&located).still_stands()?;
        Ok(end)
    }

    /// Tells `tell` the lines that fit the query in a file or in the files below a directory, with a permit
    /// to search there.
    ///
    /// # Errors
    /// For devices and the like, and for a pattern that makes no sense.
    pub fn grep(
        &self,
        located: Located,
        permit: Permit,
        query: &GrepQuery,
        guard: &dyn SearchGuard,
        tell: &mut dyn FnMut(&Line<'_>) -> Flow,
    ) -> Result<SearchEnd, SearchError> {
        searching(&located, &permit, &query.pattern)?;
        let walk = self.walk(&located, &query.ignore, guard)?;
        let end = grep::lines(walk, &located, query, Limits::default(), tell)?;
        self.root_of(&located).still_stands()?;
        Ok(end)
    }

    /// Finds those names of a located file that lie at and below `tops`, in the view in which it was located. Names
    /// elsewhere are nobody's to know.
    ///
    /// # Errors
    /// When nothing is there any more.
    pub fn names_of(&self, located: &Located, tops: &[PathBuf]) -> Result<Names, FileError> {
        links::names(self.root_of(located), located, tops)
    }

    /// Uses a permit up for somebody else, who will open what was located by its canonical name, in the host's own
    /// view. Until then the name can come to mean another file: nothing but this call itself is free of races.
    ///
    /// # Errors
    /// For what none of the other operations would have been carried out on, and for what has another name for the host.
    pub fn leave_to_others(&self, located: Located, permit: Permit) -> Result<(), FileError> {
        operation(&located, &permit)?;
        if let Views::Session { private_temp: Some(temp), .. } = &self.views
            && located.view == View::Session
            && located.canonical().starts_with(temp)
        {
            return Err(FileError::SessionTemp { path: located.text });
        }
        match (located.kind(), located.file()) {
            (PathKind::Directory, Some(file)) => read::require_ordinary(&located, file),
            (_, Some(file)) => read::require_file(&located, file),
            (_, None) => Ok(()),
        }
    }

    fn walk<'a>(
        &'a self,
        located: &Located,
        files: &'a IgnoreFiles,
        guard: &'a dyn SearchGuard,
    ) -> Result<Walk<'a>, FileError> {
        let root = self.root_of(located);
        root.still_stands()?;
        let (descriptors, view) = (&self.descriptors, located.view);
        Ok(Walk { descriptors, root, view, guard, files, end: SearchEnd::default() })
    }

    /// Where the walk to something located began.
    fn root_of(&self, located: &Located) -> Root<'_> {
        match (&self.views, located.view) {
            (Views::Session { root, .. }, View::Session) => Root::Session(root.as_ref()),
            (Views::Session { .. } | Views::Host, _) => Root::Host,
        }
    }

    fn locate_from(
        &self,
        root: Root<'_>,
        view: View,
        path: &Path,
        purpose: Purpose,
    ) -> Result<Located, FileError> {
        match purpose {
            Purpose::Existing => locate::existing(&self.descriptors, root, view, path, OFlags::empty()),
            Purpose::ForWriting => locate::for_writing(&self.descriptors, root, view, path),
        }
    }

    fn is_output(&self, path: &Path) -> bool {
        self.outputs.read().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// The name itself is no link here, or anyone who can write to the host's temporary directory could
    /// choose the file.
    fn locate_output(&self, path: &Path) -> Result<Located, FileError> {
        let located = locate::existing(&self.descriptors, Root::Host, View::Output, path, OFlags::NOFOLLOW)?;
        match located.kind() {
            PathKind::File => Ok(located),
            PathKind::Missing | PathKind::Directory | PathKind::Symlink | PathKind::Other => {
                Err(FileError::NotAFile { path: located.text })
            }
        }
    }
}

/// The operation that a permit allows on what was located.
fn operation<'a>(located: &Located, permit: &'a Permit) -> Result<&'a FileOperation, FileError> {
    permit.file_operation(located.canonical_text()).ok_or_else(|| FileError::WrongPermit {
        detail: format!("`{}` was located", located.canonical_text()),
    })
}

/// Whether a permit is for a search for `pattern` in what was located.
fn searching(located: &Located, permit: &Permit, pattern: &str) -> Result<(), FileError> {
    let operation = operation(located, permit)?;
    let FileOperation::Search(query) = operation else { return Err(wrong_operation(operation, "search")) };
    if query.pattern == pattern {
        return Ok(());
    }
    Err(FileError::WrongPermit { detail: "it is for another pattern".to_owned() })
}

fn wrong_operation(permitted: &FileOperation, wanted: &str) -> FileError {
    FileError::WrongPermit { detail: format!("it allows to {}, not to {wanted}", permitted.verb()) }
}

/// Whether `bytes` are what was decided about, as far as the decision saw them.
fn is_content(content: &Content, bytes: &[u8]) -> bool {
    let is_length = |length: u32| u32::try_from(bytes.len()).unwrap_or(u32::MAX) == length;
    match content {
        Content::Text(text) if text.truncated => {
            is_length(text.length) && bytes.starts_with(text.value.as_bytes())
        }
        Content::Text(text) => bytes == text.value.as_bytes(),
        Content::Binary(length) => is_length(*length),
        Content::Unknown => true,
    }
}

/// Whether the last name is one that pi gives to what a tool brought back, `pi-bash-<hex>.log` and the like, or to an
/// image that was pasted, `pi-clipboard-<hex>-…-<hex>.png`.
fn is_output_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parts = || {
        let (tool, rest) = name.strip_prefix("pi-")?.split_once('-')?;
        let (digits, ending) = rest.split_once('.')?;
        Some((tool, digits, ending))
    };
    let Some((tool, digits, ending)) = parts() else { return false };
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word(tool)
        && is_word(ending)
        && digits.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
