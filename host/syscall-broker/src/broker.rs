//! The state of a broker, shared by its threads.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;

use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{FileId, Lock, Names, Places, Reads};
use portcullis_sys::notify::Listener;

use crate::change_record::Recording;
use crate::made_files::{LinkedFiles, OwnSockets};
use crate::open_questions::OpenQuestions;
use crate::pending_connects::PendingConnects;
use crate::process::Processes;
use crate::removed_dot_files::RemovedDotFiles;
use crate::shared_knowledge::SharedKnowledge;
use crate::staging::Staging;

/// The state of a broker.
pub(crate) struct Broker {
    pub(crate) listener: Listener,
    pub(crate) names: Box<dyn Names>,
    /// Whether reading is judged as well.
    pub(crate) reads: Reads,
    /// Files that must not be read by any name.
    pub(crate) kept_back: HashSet<FileId>,
    /// Writable places in which names are judged, as commands see them.
    pub(crate) judged: Vec<PathBuf>,
    /// Places in these that the kernel alone judges.
    pub(crate) fixed: Vec<PathBuf>,
    /// Places that masks hide.
    pub(crate) hidden: Vec<PathBuf>,
    /// Names of closed directories, in which commands can make nothing.
    pub(crate) closed: Vec<PathBuf>,
    /// The access of each place, if no mounts enforce it.
    pub(crate) places: Option<Places>,
    /// The places among them in which names matter to the user's other programs.
    pub(crate) roots: Vec<PathBuf>,
    /// The user's home directories.
    pub(crate) homes: Vec<PathBuf>,
    /// Ids of disabled rules on such names.
    pub(crate) lifted: Vec<String>,
    /// Links of the user that lead to sensitive names.
    pub(crate) links: Vec<UserLink>,
    /// `None` if the session records no changes.
    pub(crate) recording: Option<Recording>,
    pub(crate) staging: Staging,
    pub(crate) asking: OpenQuestions,
    /// `None` if connections do not wait here.
    pub(crate) connecting: Option<PendingConnects>,
    pub(crate) processes: Processes,
    pub(crate) known: SharedKnowledge,
    pub(crate) removed: RemovedDotFiles,
    pub(crate) linked: LinkedFiles,
    pub(crate) own_sockets: OwnSockets,
    /// Locked during every call, if threads cannot have umasks of their own (CLONE_FS): some container filters refuse
    /// unshare(2) for that together with namespaces. It is never poisoned: a panic ends the process.
    pub(crate) one_at_a_time: Option<Mutex<()>>,
    /// Held exclusively while something is renamed, and shared during any other operation on a name.
    pub(crate) order: Lock,
}
