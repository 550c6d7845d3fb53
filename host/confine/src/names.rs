//! What a sandbox is told about names: who decides about each of them as it is used.

use std::path::{Path, PathBuf};

use portcullis_names::UserLink;

/// What commands are held to beside the places of a profile: rules over names, there or not.
///
/// Names that the user's other programs execute are protected besides, see the crate `portcullis-names`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRules {
    /// The rules, in whatever form the program's [`MakeNames`] understands.
    pub data: Vec<u8>,
    /// Writable places, as commands see them, in which no rule can ever match: there the kernel alone decides,
    /// which is faster.
    pub spared: Vec<PathBuf>,
    /// The project: names in it mean something by their place in the project, whichever parts of it are writable.
    pub workspace: PathBuf,
    /// The user's home directories, in which programs are started at each log-in.
    pub homes: Vec<PathBuf>,
    /// Ids of rules of `portcullis-names` that do not hold.
    pub lifted: Vec<String>,
    /// Links of the user's at names that mean something.
    pub links: Vec<UserLink>,
    /// Where links of the user's lead at which nothing is.
    pub leading_nowhere: Vec<PathBuf>,
    /// Whether names are judged also as they are read.
    pub reads: Reads,
    /// Files with several names that are not read by any of them; only where reading is judged.
    pub kept_back: Vec<FileId>,
}

/// Which file it is, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Major and minor number of the device that it is on.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
}

/// Whether names are judged as they are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// What is seen can be read, which costs nothing.
    #[default]
    Free,
    /// Every file that a command opens or executes is judged by its name first.
    Judged,
}

impl Reads {
    /// Whether they are.
    #[must_use]
    pub fn are_judged(self) -> bool {
        self == Self::Judged
    }
}

/// Makes the judge of names from [`NameRules::data`]; none when the data are not understood.
pub type MakeNames = fn(&[u8]) -> Option<Box<dyn Names>>;

/// Decides about names, one by one, as commands make, change and remove them.
///
/// It is called in a process of its own, from several threads. Paths are as commands see them, with no symbolic link
/// in them but perhaps the last component.
pub trait Names: Send + Sync {
    /// Answers for one name that is made, changed or removed.
    fn judge(&self, path: &Path) -> Judgement;

    /// Answers for one name that is read, where [`NameRules::reads`] wants it.
    fn judge_reading(&self, path: &Path) -> Judgement;

    /// Whether nothing but files and directories of its own may have this name: no link, nor anything special.
    fn is_plain(&self, path: &Path) -> bool;

    /// Whether the same answers hold for every name below both directories.
    fn is_alike_below(&self, one: &Path, other: &Path) -> bool;

    /// Whether all that is refused or asked for below `path`, by what it is called there, is so below `other` as well.
    fn restricts_alike_below(&self, path: &Path, other: &Path) -> bool;
}

/// What holds for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Nothing stands against it.
    Free,
    /// The user is asked.
    Asked,
    /// It is refused.
    Refused,
}
