//! The rules over names of a sandbox, and the trait that judges each name as it is used.

use std::path::{Path, PathBuf};

use portcullis_exec_surface::UserLink;

/// Rules over names for commands, in addition to the places of a profile. A name need not exist.
///
/// Names that the user's other programs execute are protected as well, see the crate `portcullis-exec-surface`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRules {
    /// The rules, in the format of the program's [`MakeNames`].
    pub data: Vec<u8>,
    /// Writable places, as commands see them, in which no rule can match: there the kernel alone decides, which is
    /// faster.
    pub spared: Vec<PathBuf>,
    /// The project: some names in it matter for their place in the project, whichever parts of it are writable.
    pub workspace: PathBuf,
    /// The user's home directories, in which programs are started at each login.
    pub homes: Vec<PathBuf>,
    /// Ids of rules of `portcullis-exec-surface` that are disabled.
    pub lifted: Vec<String>,
    /// Links of the user that lead to sensitive names.
    pub links: Vec<UserLink>,
    /// Targets of the user's dangling links.
    pub leading_nowhere: Vec<PathBuf>,
    /// Whether names are judged when they are read, too.
    pub reads: Reads,
    /// Files with several names that must not be read by any of them; only if reading is judged.
    pub kept_back: Vec<FileId>,
}

/// Identifies a file independently of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode number on that device.
    pub inode: u64,
}

/// Whether names are judged when they are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// Every visible file can be read, at no cost.
    #[default]
    Free,
    /// Every file that a command opens or executes is first judged by its name.
    Judged,
}

impl Reads {
    /// True for [`Self::Judged`].
    #[must_use]
    pub fn are_judged(self) -> bool {
        self == Self::Judged
    }
}

/// Makes the judge of names from [`NameRules::data`]; `None` if the data are malformed.
pub type MakeNames = fn(&[u8]) -> Option<Box<dyn Names>>;

/// Judges names one by one, as commands create, change and remove them.
///
/// It runs in a process of its own and is called from several threads. Paths are as commands see them, with no symbolic
/// link except perhaps the last component.
pub trait Names: Send + Sync {
    /// Judges a name that is created, changed or removed.
    fn judge(&self, path: &Path) -> Judgement;

    /// Judges a name that is read, if [`NameRules::reads`] wants it.
    fn judge_reading(&self, path: &Path) -> Judgement;

    /// True if only files and directories may have this name: no links and no special files.
    fn is_plain(&self, path: &Path) -> bool;

    /// True if the path is in a directory of the sandbox's own: no other program of the user finds a name there.
    fn is_own(&self, path: &Path) -> bool;

    /// True if both directories give the same judgements for every name below them.
    fn is_alike_below(&self, one: &Path, other: &Path) -> bool;

    /// True if every restriction below `path` also applies below `other`, by relative name.
    fn restricts_alike_below(&self, path: &Path, other: &Path) -> bool;
}

/// The judgement of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Allowed.
    Free,
    /// The user is asked.
    Asked,
    /// Refused.
    Refused,
}
