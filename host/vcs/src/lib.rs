//! The facts about a project's version control that policies can depend on (branch, commit, changes, remotes), and those
//! about a commit or tag that a person is asked to let be signed.
//!
//! Owns: finding the repository of a directory, reading git's files, and knowing when they have changed. Must never
//! know: policies, rules, and what the facts are used for. No program runs, not even git: a repository's configuration
//! names programs (filters, monitors, hooks), and the project is not trusted.
//!
//! The project's files are hostile input. Each is opened by descriptor, component by component, without following
//! links; only regular files are read, without blocking, up to a limit. A repository of another user has no facts, as
//! git itself refuses it. A `.git` file counts only if the repository that it names knows this working tree, so that
//! a project cannot make the host tell about another one.
//!
//! ```
//! use portcullis_decision::context::VcsParts;
//! use portcullis_vcs::Repository;
//!
//! let project = tempfile::tempdir().unwrap();
//! let path = project.path().canonicalize().unwrap();
//! std::fs::create_dir(path.join(".git")).unwrap();
//! std::fs::write(path.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
//! let facts = Repository::of(&path).facts(VcsParts::BRANCH).unwrap();
//! assert_eq!(facts.branch.as_deref(), Some("main"));
//! ```
//!
//! Limits: git only; repositories that store their references in tables (`reftable`) have no branch; `includeIf`,
//! `insteadOf` and addresses in the user's own settings are not applied to remotes.

mod changes;
mod directory;
mod find;
mod head;
mod index;
mod objects;
mod remotes;
mod signed;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_decision::context::{Vcs, VcsParts};

pub use signed::GitObject;

use crate::find::GitDirectory;
use crate::stamp::Stamps;

/// How long the answer about uncommitted changes is used: finding it reads the state of every tracked file.
const CHANGES_KNOWN_FOR: Duration = Duration::from_secs(1);

/// The repository of a directory, with the facts that were read last.
#[derive(Debug)]
pub struct Repository {
    directory: PathBuf,
    known: Mutex<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    parts: VcsParts,
    facts: Option<Vcs>,
    stamps: Stamps,
    /// When the changes were looked for.
    at: Instant,
}

impl Known {
    fn is_current(&self, parts: VcsParts) -> bool {
        self.parts.union(parts) == self.parts
            && !(parts.dirty && self.at.elapsed() > CHANGES_KNOWN_FOR)
            && self.stamps.are_current()
    }
}

impl Repository {
    /// Returns the repository that contains `directory`, an absolute path without symbolic links. It reads no file.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), known: Mutex::new(None) }
    }

    /// Returns the current facts; `None` if there is no repository, or no part is wanted.
    ///
    /// As long as the files are the same, this costs one system call for each of them.
    #[must_use]
    pub fn facts(&self, parts: VcsParts) -> Option<Vcs> {
        if parts.is_empty() {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.as_ref().is_some_and(|known| known.is_current(parts)) {
            *known = Some(self.read(parts));
        }
        known.as_ref().and_then(|known| known.facts.as_ref()?.only(parts))
    }

    fn read(&self, parts: VcsParts) -> Known {
        let at = Instant::now();
        let mut stamps = Stamps::default();
        let found = GitDirectory::find(&self.directory, &mut stamps);
        let facts = found.map(|git| facts(&git, parts, &mut stamps));
        Known { parts, facts, stamps, at }
    }
}

fn facts(git: &GitDirectory, parts: VcsParts, stamps: &mut Stamps) -> Vcs {
    let head = head::read(git, parts.head, stamps);
    Vcs {
        kind: "git".to_owned(),
        root: portcullis_decision::path_text::encode(&git.root),
        branch: head.branch,
        head: head.commit,
        dirty: parts.dirty.then(|| changes::any(git)).flatten(),
        remotes: if parts.remotes { remotes::read(git, stamps) } else { Vec::new() },
    }
}
