//! A located path, before anything is decided about it.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::{FileFacts, PathKind};

use crate::operation::{FileContent, Inode};
use crate::system::kernel::{Directory, Handle};
use crate::view::View;

/// A located path: the descriptor that the operation will use, and its metadata.
///
/// It can be kept while the user is asked: the decision is about the same descriptor as the operation.
#[derive(Debug)]
pub struct Located {
    pub(crate) view: View,
    pub(crate) canonical: PathBuf,
    pub(crate) text: String,
    pub(crate) kind: PathKind,
    pub(crate) facts: FileFacts,
    pub(crate) read_only: bool,
    /// True if the file is on a disk, and so is not an interface of the kernel.
    pub(crate) on_disk: bool,
    pub(crate) target: Target,
}

/// The descriptors of a located path.
#[derive(Debug)]
pub(crate) enum Target {
    /// The file itself.
    Opened(Handle),
    /// A name in a directory.
    Slot(Slot),
}

/// A name in a directory, and the file of this name.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The deepest directory that exists.
    pub(crate) parent: Directory,
    /// Its canonical path.
    pub(crate) parent_path: PathBuf,
    /// The missing directories below it, top first.
    pub(crate) missing: Vec<OsString>,
    /// The last name, which is not a link.
    pub(crate) name: OsString,
    /// The file of this name.
    pub(crate) file: Option<Handle>,
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

    /// Returns the canonical path: absolute, with every link followed, as the kernel reports it.
    #[must_use]
    pub fn canonical(&self) -> &Path {
        &self.canonical
    }

    /// Returns the canonical path in [`portcullis_decision::path_text`] form, as in permits.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        &self.text
    }

    /// Returns the kind of the file.
    #[must_use]
    pub fn kind(&self) -> PathKind {
        self.kind
    }

    /// Returns the facts for policies; all zero if the file does not exist.
    #[must_use]
    pub fn facts(&self) -> FileFacts {
        self.facts
    }

    /// Returns the inode; `None` if the file does not exist.
    #[must_use]
    pub fn inode(&self) -> Option<Inode> {
        self.file()?.status().ok().map(|status| status.identity.inode)
    }

    /// Returns the view in which it was located.
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

    /// Returns true if a write would fail because of a read-only mount.
    ///
    /// This is so for paths that are read-only for commands. Known only if the path was located for writing.
    #[must_use]
    pub fn is_on_read_only_mount(&self) -> bool {
        self.read_only
    }

    /// Returns the deepest existing directory above the name, on Linux opened with `O_PATH`.
    ///
    /// Known only if it was located for writing.
    #[must_use]
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        match &self.target {
            Target::Opened(_) => None,
            Target::Slot(slot) => Some(slot.parent.as_fd()),
        }
    }

    /// Returns the file, if it exists.
    pub(crate) fn file(&self) -> Option<&Handle> {
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

/// A file that was read to be edited.
///
/// Its permit is used up, and allows one replacement of exactly this state of the file.
#[derive(Debug)]
pub struct Editing {
    pub(crate) located: Located,
    pub(crate) content: FileContent,
}

impl Editing {
    /// Returns the content of the file.
    #[must_use]
    pub fn content(&self) -> &FileContent {
        &self.content
    }

    /// Returns the canonical path as text.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        self.located.canonical_text()
    }

    /// Returns the file that is being edited.
    #[must_use]
    pub fn located(&self) -> &Located {
        &self.located
    }
}
