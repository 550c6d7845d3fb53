//! The gate: it locates paths, and checks and uses up permits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use portcullis_decision::Permit;
use portcullis_decision::path_text;
use portcullis_decision::request::{Content, FileOperation, PathKind};
use rustix::io::Errno;

use crate::FileError;
use crate::operation::{FileContent, Limits, Links, Listing, Names, Purpose, WriteOptions, Written};
use crate::search::{
    FindQuery, Flow, FoundName, GrepQuery, IgnoreFiles, Line, SearchEnd, SearchError, SearchGuard,
};
use crate::system::kernel::{Descriptors, Last, failure};
use crate::system::locate::{self, Root};
use crate::system::located::{Editing, Located};
use crate::system::walk::Walk;
use crate::system::{find, grep, links, list, read, write};
use crate::view::{View, Views};

/// Carries out file operations, each only with a permit for it.
#[derive(Debug)]
pub struct Gate {
    views: Views,
    descriptors: Descriptors,
    outputs: RwLock<BTreeSet<PathBuf>>,
}

impl Gate {
    /// Creates a gate that opens paths in `views`.
    ///
    /// # Errors
    /// If `/proc` is not the kernel's, or the sandbox's root is not `/` of its mount namespace. The portable gate has no
    /// view but the host's.
    pub fn new(views: Views) -> Result<Self, FileError> {
        let proc = Path::new("/proc/self/fd");
        let descriptors = Descriptors::open().map_err(|errno| failure("open", proc, errno))?;
        let gate = Self { views, descriptors, outputs: RwLock::default() };
        // Canonical paths are relative to the root of the mount namespace. If the view had another root, they would
        // name other files than the rules mean.
        let root = gate.locate(Path::new("/"), Purpose::Existing)?;
        if root.canonical() != Path::new("/") {
            return Err(FileError::Moved { path: root.text });
        }
        Ok(gate)
    }

    /// Registers a file in which pi stored the truncated output of a command.
    ///
    /// It can then be located by exactly this name, although it is in the host's temporary directory.
    ///
    /// # Errors
    /// If the name is not `pi-<tool>-<hex>.<extension>` in an absolute directory.
    pub fn register_output(&self, path: &Path) -> Result<(), FileError> {
        if !path.is_absolute() || path_text::normalize(path) != path || !is_output_name(path) {
            return Err(failure("register", path, Errno::INVAL));
        }
        self.outputs.write().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        Ok(())
    }

    /// Opens a path as commands see it, without accessing its content. This makes no decision.
    ///
    /// # Errors
    /// [`FileError::NotFound`] and similar errors for files that commands cannot see, even if the host can.
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

    /// Opens a path as the host sees it, without accessing its content.
    ///
    /// This is for an exception that the user approves; [`Located::view`] tells so. Without a sandbox this is
    /// [`Gate::locate`].
    ///
    /// # Errors
    /// [`FileError::HostTemp`] for paths that name another file for commands.
    pub fn locate_in_host_view(&self, path: &Path, purpose: Purpose) -> Result<Located, FileError> {
        let Views::Session { is_own, .. } = &self.views else {
            return self.locate(path, purpose);
        };
        if purpose == Purpose::Existing && self.is_output(path) {
            return self.locate_output(path);
        }
        let located = self.locate_from(Root::Host, View::BeyondSession, path, purpose)?;
        if is_own(&path_text::normalize(path)) || is_own(located.canonical()) {
            return Err(FileError::HostTemp { path: path_text::encode(path) });
        }
        Ok(located)
    }

    /// Reads a whole file, with a permit to read or edit it.
    ///
    /// # Errors
    /// If it is not a regular file, or exceeds the size limit.
    pub fn read(&self, located: Located, permit: Permit, limits: Limits) -> Result<FileContent, FileError> {
        let operation = operation(&located, &permit)?;
        if !matches!(operation, FileOperation::Read | FileOperation::Edit(_)) {
            return Err(wrong_operation(operation, "read"));
        }
        read::whole(&self.descriptors, &located, limits)
    }

    /// Reads a file for a decision about writing it; `None` if it does not exist.
    ///
    /// This needs no permit, so the content must not be passed on, not even to a policy.
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

    /// Reads a whole file to edit it, with a permit to edit it; [`Gate::replace`] completes the edit.
    ///
    /// # Errors
    /// As for [`Gate::read`], and if it was not located for writing.
    pub fn edit(&self, located: Located, permit: Permit, limits: Limits) -> Result<Editing, FileError> {
        let operation = operation(&located, &permit)?;
        if !matches!(operation, FileOperation::Edit(_)) {
            return Err(wrong_operation(operation, "edit"));
        }
        write::slot(&located)?;
        let content = read::whole(&self.descriptors, &located, limits)?;
        Ok(Editing { located, content })
    }

    /// Replaces the content of a file that is being edited, if the file has not changed since it was read.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if it has changed.
    pub fn replace(&self, editing: Editing, bytes: &[u8], links: Links) -> Result<Written, FileError> {
        let options = WriteOptions { expect: Some(editing.content.identity), links };
        write::whole(&self.descriptors, &editing.located, bytes, options)
    }

    /// Writes a whole file with a permit to write it, and creates missing directories above it.
    ///
    /// A permit to edit is sufficient if `options` name the state that is replaced.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if the file was changed, created or removed since it was located: the caller locates it
    /// again and asks for a new decision.
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

    /// Lists the names in a directory that `keep` accepts, with a permit to list it.
    ///
    /// `keep` gets the canonical path and the kind of each name.
    ///
    /// # Errors
    /// If it is not a directory.
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

    /// Passes the names below a directory that match the query to `tell`, with a permit to search it.
    ///
    /// # Errors
    /// If it is not a directory, or the glob is invalid.
    pub fn find(
        &self,
        located: Located,
        permit: Permit,
        query: &FindQuery,
        guard: &dyn SearchGuard,
        tell: &mut dyn FnMut(&FoundName<'_>) -> Flow,
    ) -> Result<SearchEnd, SearchError> {
        searching(&located, &permit, &query.glob)?;
        let end = find::names(self.walk(&located, &query.ignore, guard)?, &located, query, tell)?;
        self.root_of(&located).still_stands()?;
        Ok(end)
    }

    /// Passes the lines that match the query to `tell`, with a permit to search there.
    ///
    /// The search covers one file, or the files below a directory.
    ///
    /// # Errors
    /// If it is a device or another special file, or the pattern is invalid.
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

    /// Returns the names of a located file at and below `tops`, in the view in which it was located.
    ///
    /// Names elsewhere are not searched for.
    ///
    /// # Errors
    /// If the file no longer exists.
    pub fn names_of(&self, located: &Located, tops: &[PathBuf]) -> Result<Names, FileError> {
        links::names(self.root_of(located), located, tops)
    }

    /// Uses up a permit for another program.
    ///
    /// That program will open the file by its canonical name in the host's view. The name may be replaced before that:
    /// only the check in this call is free of races.
    ///
    /// # Errors
    /// If it is not a file or directory that the other operations accept, or has another name for the host.
    pub fn leave_to_others(&self, located: Located, permit: Permit) -> Result<(), FileError> {
        operation(&located, &permit)?;
        if let Views::Session { is_own, .. } = &self.views
            && located.view == View::Session
            && is_own(located.canonical())
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

    /// Returns the root in which a path was located.
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
            Purpose::Existing => locate::existing(&self.descriptors, root, view, path, Last::Followed),
            Purpose::ForWriting => locate::for_writing(&self.descriptors, root, view, path),
        }
    }

    fn is_output(&self, path: &Path) -> bool {
        self.outputs.read().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// Locates a registered output file.
    ///
    /// The last name must not be a link; otherwise anyone who can write to the host's temporary directory could choose
    /// the file.
    fn locate_output(&self, path: &Path) -> Result<Located, FileError> {
        let located = locate::existing(&self.descriptors, Root::Host, View::Output, path, Last::Itself)?;
        match located.kind() {
            PathKind::File => Ok(located),
            PathKind::Missing | PathKind::Directory | PathKind::Symlink | PathKind::Other => {
                Err(FileError::NotAFile { path: located.text })
            }
        }
    }
}

/// Returns the operation that a permit allows on a located path.
fn operation<'a>(located: &Located, permit: &'a Permit) -> Result<&'a FileOperation, FileError> {
    permit.file_operation(located.canonical_text()).ok_or_else(|| FileError::WrongPermit {
        detail: format!("`{}` was located", located.canonical_text()),
    })
}

/// Checks that a permit is for a search for `pattern` in a located path.
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

/// Returns true if `bytes` are the content that was decided about, as far as the decision saw it.
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

/// Returns true if pi gives such a name to the output of a tool or to a pasted image.
///
/// The names are `pi-bash-<hex>.log` and the like, and `pi-clipboard-<hex>-…-<hex>.png`.
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
