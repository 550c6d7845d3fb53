//! What was found at a path, before anything is decided about it.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::{FileFacts, PathKind};

use crate::operation::{FileContent, Inode};
use crate::system::kernel::Status;
use crate::view::View;

/// Something that was located: the descriptor on which an operation will be carried out, and what is
/// known of it.
///
/// It can be kept while the user is asked: what is decided about is what will be used.
#[derive(Debug)]
pub struct Located {
    pub(crate) view: View,
    pub(crate) canonical: PathBuf,
    pub(crate) text: String,
    pub(crate) kind: PathKind,
    pub(crate) facts: FileFacts,
    pub(crate) read_only: bool,
    /// Whether what is there lies on a disk, and so is no interface of the kernel.
    pub(crate) on_disk: bool,
    pub(crate) target: Target,
}

/// The descriptors of something located.
#[derive(Debug)]
pub(crate) enum Target {
    /// The thing itself, opened without any right on it.
    Opened(OwnedFd),
    /// A name in a directory.
    Slot(Slot),
}

/// A name in a directory, and the file that has it.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The deepest directory that exists.
    pub(crate) parent: OwnedFd,
    /// Its canonical path.
    pub(crate) parent_path: PathBuf,
    /// The directories missing below it, top first.
    pub(crate) missing: Vec<OsString>,
    /// The last name, which is no link.
    pub(crate) name: OsString,
    /// What has this name, opened without any right on it.
    pub(crate) file: Option<OwnedFd>,
}

impl Located {
    pub(crate) fn new(view: View, canonical: PathBuf, target: Target) -> Self {
        Self {
            view,
            text: path_text::encode(&canonical),
            canonical,
            kind: PathKind::Missing,
            facts: FileFacts::default(),
            read_only: false,
            on_disk: false,
            target,
        }
    }

    /// Returns the canonical path: absolute, every link followed, as the kernel says it.
    #[must_use]
    pub fn canonical(&self) -> &Path {
        &self.canonical
    }

    /// Returns the canonical path as [`portcullis_decision::path_text`], as permits name it.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        &self.text
    }

    /// Returns what is there.
    #[must_use]
    pub fn kind(&self) -> PathKind {
        self.kind
    }

    /// Returns what policies are told of it; all zero where nothing is there.
    #[must_use]
    pub fn facts(&self) -> FileFacts {
        self.facts
    }

    /// Returns which file it is; none where nothing is there.
    #[must_use]
    pub fn inode(&self) -> Option<Inode> {
        Status::of(self.file()?).ok().map(|status| status.identity.inode)
    }

    /// Returns the view in which it was found.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Returns the directories that a write would create first, top first.
    #[must_use]
    pub fn missing_parents(&self) -> Vec<PathBuf> {
        match &self.target {
            Target::Opened(_) => Vec::new(),
            Target::Slot(slot) => slot.missing_paths(),
        }
    }

    /// Returns whether a write would fail because of the mount, as with a path that commands see
    /// read-only. Known only of what was located for writing.
    #[must_use]
    pub fn is_on_read_only_mount(&self) -> bool {
        self.read_only
    }

    /// Returns the deepest directory that exists above a name, opened without any right on it. Known only of what was
    /// located for writing.
    #[must_use]
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        match &self.target {
            Target::Opened(_) => None,
            Target::Slot(slot) => Some(slot.parent.as_fd()),
        }
    }

    /// The descriptor of what is there.
    pub(crate) fn file(&self) -> Option<&OwnedFd> {
        match &self.target {
            Target::Opened(file) => Some(file),
            Target::Slot(slot) => slot.file.as_ref(),
        }
    }
}

impl Slot {
    pub(crate) fn missing_paths(&self) -> Vec<PathBuf> {
        let mut path = self.parent_path.clone();
        let deeper = |name| {
            path.push(name);
            path.clone()
        };
        self.missing.iter().map(deeper).collect()
    }
}

/// A file that was read to be edited: its permit is used up, and one replacement of exactly this state of
/// the file is still to come.
#[derive(Debug)]
pub struct Editing {
    pub(crate) located: Located,
    pub(crate) content: FileContent,
}

impl Editing {
    /// Returns what the file contains.
    #[must_use]
    pub fn content(&self) -> &FileContent {
        &self.content
    }

    /// Returns the canonical path as text.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        self.located.canonical_text()
    }
}
