//! The directory of a branch: how it is made, found, locked and removed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use portcullis_changes::branch::{Layers, Settled, Time};
use portcullis_decision::path_text;
use portcullis_sandbox::decode_mount_path;
use portcullis_session::BranchLayer;
use serde::{Deserialize, Serialize};

use crate::home::{lock_file, name_of, private};
use crate::process_env::random_name;
use crate::scratch;

const BRANCHES: &str = "branches";
const ABOUT: &str = "about.json";
const LOCK: &str = "lock";
const UPPER: &str = "upper";
const WORK: &str = "work";
const SESSIONS: &str = "sessions";
const SETTLED: &str = "settled.json";
/// What begins the name of a directory that is being removed.
const REMOVED: &str = ".removed-";
/// The longest name of a branch.
const LONGEST_NAME: usize = 64;

/// The description of a branch, in `about.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    /// The project, as path text.
    project: String,
    /// The inode number and the time of birth of the project's directory.
    directory: (u64, Time),
    /// When the branch began.
    begun: Time,
}

/// A branch in the state directory.
#[derive(Debug, Clone)]
pub struct StoredBranch {
    /// Its name.
    pub name: String,
    /// The project.
    pub project: PathBuf,
    /// Whether a command runs in it, or it is being committed.
    pub is_in_use: bool,
    about: About,
    pub(super) directory: PathBuf,
    settled: BTreeMap<PathBuf, Settled>,
    upper: PathBuf,
}

/// A branch whose lock this process holds: no other process can run commands in it, commit it or drop it.
#[derive(Debug)]
pub struct OpenBranch {
    stored: StoredBranch,
    is_new: bool,
    _lock: File,
}

impl StoredBranch {
    /// Returns when it began.
    #[must_use]
    pub fn begun(&self) -> SystemTime {
        let (seconds, nanoseconds) = self.about.begun;
        UNIX_EPOCH + Duration::new(u64::try_from(seconds).unwrap_or_default(), nanoseconds)
    }

    /// Returns its two directories.
    #[must_use]
    pub fn layers(&self) -> Layers<'_> {
        Layers { project: &self.project, upper: &self.upper, begun: self.about.begun, settled: &self.settled }
    }

    /// Checks that the project is there and is the one of which this is a branch.
    ///
    /// # Errors
    /// If it is not.
    pub fn require_project(&self) -> anyhow::Result<()> {
        let (name, project) = (&self.name, self.project.display());
        let found = match directory_id(&self.project) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                bail!(
                    "the project `{project}` of the branch `{name}` is not there; if you moved it, move it back, or \
                     remove the branch with `portcullis branch drop {name} --project {project}`"
                )
            }
            found => found.with_context(|| format!("looking at `{project}`"))?,
        };
        ensure!(
            found == self.about.directory,
            "`{project}` is another directory than the one of which `{name}` is a branch; if you moved that, move it \
             back, or remove the branch with `portcullis branch drop {name}`"
        );
        Ok(())
    }

    /// Locks it.
    ///
    /// # Errors
    /// If it is in use.
    pub fn lock(self) -> anyhow::Result<OpenBranch> {
        let lock = lock_of(&self.directory, &self.name)?;
        // Without the lock, it may have changed since it was read.
        let stored = read(&self.directory)?.with_context(|| format!("the branch `{}` is gone", self.name))?;
        Ok(OpenBranch { stored, is_new: false, _lock: lock })
    }

    /// Returns the ids of the sessions that worked in it.
    pub(super) fn sessions(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.join(SESSIONS)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl OpenBranch {
    /// Returns the branch.
    #[must_use]
    pub fn stored(&self) -> &StoredBranch {
        &self.stored
    }

    /// Returns the directories for a session.
    #[must_use]
    pub fn layer(&self) -> BranchLayer {
        BranchLayer {
            project: self.stored.project.clone(),
            upper: self.stored.upper.clone(),
            work: self.stored.directory.join(WORK),
        }
    }

    /// Notes a session that works in it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note_session(&self, id: &str) -> anyhow::Result<()> {
        let path = self.stored.directory.join(SESSIONS);
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("opening `{}`", path.display()))?;
        writeln!(file, "{id}").with_context(|| format!("writing to `{}`", path.display()))
    }

    /// Returns true if this process has made the branch, and its upper directory is empty.
    #[must_use]
    pub fn is_new_and_empty(&self) -> bool {
        self.is_new && self.is_empty()
    }

    /// Returns true if its upper directory is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.stored.upper).is_ok_and(|mut names| names.next().is_none())
    }

    /// Removes the branch and its changes.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> anyhow::Result<()> {
        let directory = &self.stored.directory;
        let context = || format!("removing `{}`", directory.display());
        let removed = directory.with_file_name(format!("{REMOVED}{}", random_name()?));
        std::fs::rename(directory, &removed).with_context(context)?;
        scratch::remove_tree(&removed).with_context(context)?;
        if let Some(all) = directory.parent() {
            // It stays if the project has other branches.
            let _empty = std::fs::remove_dir(all);
        }
        Ok(())
    }

    /// Notes names as a commit has left them.
    pub(super) fn settle(
        &mut self,
        names: impl IntoIterator<Item = (PathBuf, Settled)>,
    ) -> anyhow::Result<()> {
        self.stored.settled.extend(names);
        let settled = self.stored.settled.iter();
        let all: Vec<(String, Settled)> =
            settled.map(|(path, settled)| (path_text::encode(path), *settled)).collect();
        write_whole(&self.stored.directory, SETTLED, &serde_json::to_vec(&all)?)
    }
}

/// Opens a branch of a project, which is made if it is missing; without a name a new one is made.
///
/// # Errors
/// If it is in use, or the project cannot have a branch.
pub fn begin(state: &Path, project: &Path, name: Option<&str>) -> anyhow::Result<OpenBranch> {
    check_project(state, project)?;
    let all = of_project(state, project);
    private().recursive(true).create(&all).with_context(|| format!("making `{}`", all.display()))?;
    // The sandbox opens it without following links.
    let all = all.canonicalize().with_context(|| format!("opening `{}`", all.display()))?;
    let name = match name {
        Some(name) => check_name(name)?.to_owned(),
        None => (1_u32..)
            .map(|number| format!("b{number}"))
            .find(|name| all.join(name).symlink_metadata().is_err())
            .context("there are too many branches")?,
    };
    let directory = all.join(&name);
    let shown = directory.display();
    match private().create(&directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.with_context(|| format!("making `{shown}`"))?,
    }
    let lock = lock_of(&directory, &name)?;
    if let Some(stored) = read(&directory)? {
        stored.require_project()?;
        return Ok(OpenBranch { stored, is_new: false, _lock: lock });
    }
    make(&directory, project).with_context(|| format!("making the branch in `{shown}`"))?;
    let stored = read(&directory)?.with_context(|| format!("reading `{shown}`"))?;
    Ok(OpenBranch { stored, is_new: true, _lock: lock })
}

/// Makes the directories and files of a branch. `about.json` comes last: a directory without it is made again.
fn make(directory: &Path, project: &Path) -> anyhow::Result<()> {
    let of_project = project.metadata()?;
    for name in [UPPER, WORK] {
        let path = directory.join(name);
        match private().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(of_project.uid()), Some(of_project.gid()))?;
        }
    }
    // Commands see it as the mode of the project.
    let mode = Permissions::from_mode(of_project.permissions().mode() & 0o777);
    std::fs::set_permissions(directory.join(UPPER), mode)?;
    // By the clock of file times, which lags behind the other one.
    let upper = directory.join(UPPER).metadata()?;
    let about = About {
        project: path_text::encode(project),
        directory: directory_id(project)?,
        begun: (upper.ctime(), u32::try_from(upper.ctime_nsec())?),
    };
    write_whole(directory, ABOUT, &serde_json::to_vec(&about)?)
}

/// Checks that an overlay of the project is possible, as far as that can be told without mounting it.
fn check_project(state: &Path, project: &Path) -> anyhow::Result<()> {
    let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    ensure!(
        !state.starts_with(project) && !project.starts_with(&state),
        "`{}` cannot have a branch, because the state directory `{}` lies in it",
        project.display(),
        state.display()
    );
    let mounts =
        std::fs::read_to_string("/proc/self/mountinfo").context("reading the mounts of this machine")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(decode_mount_path);
    if let Some(inside) = points.into_iter().find(|point| point != project && point.starts_with(project)) {
        bail!(
            "`{}` cannot have a branch, because another file system is mounted in it, at `{}`",
            project.display(),
            inside.display()
        );
    }
    Ok(())
}

fn check_name(name: &str) -> anyhow::Result<&str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let starts_well = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    ensure!(
        starts_well && name.len() <= LONGEST_NAME && name.chars().all(is_plain),
        "`{name}` is no name of a branch: letters, digits, `-`, `_` and `.`, at most {LONGEST_NAME}, the first one a \
         letter or a digit"
    );
    Ok(name)
}

/// Returns the branches of a project, or of all, in the order of their names.
///
/// # Errors
/// If the state directory cannot be read.
pub fn stored(state: &Path, project: Option<&Path>) -> anyhow::Result<Vec<StoredBranch>> {
    let tops = match project {
        Some(project) => vec![of_project(state, project)],
        None => directories(&state.join(BRANCHES))?,
    };
    let mut found = Vec::new();
    for top in tops {
        for directory in directories(&top)? {
            found.extend(read(&directory)?);
        }
    }
    found.sort_by(|one, other| (&one.project, &one.name).cmp(&(&other.project, &other.name)));
    Ok(found)
}

/// Returns the branch of a project with this name; without a name the only one.
///
/// # Errors
/// If there is none, or there are several.
pub fn named(state: &Path, project: &Path, name: Option<&str>) -> anyhow::Result<StoredBranch> {
    let mut all = stored(state, Some(project))?;
    let names = || all.iter().map(|branch| branch.name.as_str()).collect::<Vec<_>>().join(", ");
    let place = match (name, all.len()) {
        (Some(name), _) => all.iter().position(|branch| branch.name == name).with_context(|| {
            format!("no branch `{name}` of `{}`; `portcullis branch list` shows them", project.display())
        })?,
        (None, 0) => bail!("`{}` has no branch; `portcullis run --branch` begins one", project.display()),
        (None, 1) => 0,
        (None, _) => bail!("name one of the branches: {}", names()),
    };
    Ok(all.swap_remove(place))
}

fn of_project(state: &Path, project: &Path) -> PathBuf {
    state.join(BRANCHES).join(name_of(project))
}

fn directories(top: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(top) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("reading `{}`", top.display()))?,
    };
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir())).collect())
}

/// Reads the branch in a directory; `None` if it is none, or is not finished.
fn read(directory: &Path) -> anyhow::Result<Option<StoredBranch>> {
    let name = directory.file_name().and_then(|name| name.to_str()).filter(|name| check_name(name).is_ok());
    let Some(name) = name else { return Ok(None) };
    let text = match std::fs::read(directory.join(ABOUT)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        text => text.with_context(|| format!("reading the branch in `{}`", directory.display()))?,
    };
    let damaged = || format!("the branch in `{}` is damaged; remove that directory", directory.display());
    let about: About = serde_json::from_slice(&text).with_context(damaged)?;
    let project = path_text::decode(&about.project).with_context(damaged)?;
    let settled: Vec<(String, Settled)> = match std::fs::read(directory.join(SETTLED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        text => serde_json::from_slice(&text.with_context(damaged)?).with_context(damaged)?,
    };
    let settled =
        settled.into_iter().filter_map(|(path, settled)| Some((path_text::decode(&path)?, settled)));
    let in_use = File::open(directory.join(LOCK));
    let is_in_use =
        in_use.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)));
    Ok(Some(StoredBranch {
        name: name.to_owned(),
        project,
        is_in_use,
        about,
        upper: directory.join(UPPER),
        settled: settled.collect(),
        directory: directory.to_owned(),
    }))
}

fn lock_of(directory: &Path, name: &str) -> anyhow::Result<File> {
    let lock = lock_file(&directory.join(LOCK))?;
    match lock.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => bail!(
            "the branch `{name}` is in use: a command runs in it, or it is being committed or dropped; wait for that, \
             or take another name"
        ),
        locked => locked.with_context(|| format!("locking `{}`", directory.display()))?,
    }
    Ok(lock)
}

fn directory_id(path: &Path) -> io::Result<(u64, Time)> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let wanted = rustix::fs::StatxFlags::BASIC_STATS | rustix::fs::StatxFlags::BTIME;
    let found = rustix::fs::statx(rustix::fs::CWD, path, flags, wanted)?;
    Ok((found.stx_ino, (found.stx_btime.tv_sec, found.stx_btime.tv_nsec)))
}

/// Writes a file of a branch, as a whole or not at all.
pub(super) fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let new = directory.join(format!("{name}.new"));
    let written = || -> io::Result<()> {
        std::fs::write(&new, bytes)?;
        std::fs::rename(&new, directory.join(name))
    };
    written().with_context(|| format!("writing `{}`", directory.join(name).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().canonicalize().unwrap();
        let (state, project) = (path.join("state"), path.join("project"));
        std::fs::create_dir_all(&state).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        (top, state, project)
    }

    #[test]
    fn a_branch_is_made_once_and_used_by_one() {
        let (_top, state, project) = scene();
        let first = begin(&state, &project, Some("one")).unwrap();
        assert!(first.is_new_and_empty());
        let said = begin(&state, &project, Some("one")).unwrap_err().to_string();
        assert!(said.contains("is in use"), "{said}");
        let second = begin(&state, &project, None).unwrap();
        assert_eq!(second.stored().name, "b1");
        let listed = stored(&state, Some(&project)).unwrap();
        assert_eq!(
            listed.iter().map(|one| (one.name.as_str(), one.is_in_use)).collect::<Vec<_>>(),
            [("b1", true), ("one", true)]
        );
        drop(first);
        let again = begin(&state, &project, Some("one")).unwrap();
        assert!(!again.is_new_and_empty(), "it was there");
        again.remove().unwrap();
        second.remove().unwrap();
        assert!(stored(&state, None).unwrap().is_empty());
    }

    #[test]
    fn another_directory_at_the_path_of_the_project_is_refused() {
        let (_top, state, project) = scene();
        drop(begin(&state, &project, Some("one")).unwrap());
        std::fs::rename(&project, project.with_file_name("moved")).unwrap();
        let found = named(&state, &project, None).unwrap();
        let said = found.require_project().unwrap_err().to_string();
        assert!(said.contains("is not there") && said.contains("move it back"), "{said}");
        std::fs::create_dir(&project).unwrap();
        let said = begin(&state, &project, Some("one")).unwrap_err().to_string();
        assert!(said.contains("another directory"), "{said}");
        std::fs::remove_dir(&project).unwrap();
        std::fs::rename(project.with_file_name("moved"), &project).unwrap();
        assert!(begin(&state, &project, Some("one")).is_ok(), "control");
    }

    #[test]
    fn names_are_plain() {
        let (_top, state, project) = scene();
        for name in ["", "..", "a/b", "-x", ".hidden", "a b", &"x".repeat(65)] {
            let said = begin(&state, &project, Some(name)).unwrap_err().to_string();
            assert!(said.contains("is no name of a branch"), "{name}: {said}");
        }
    }

    #[test]
    fn a_project_around_the_state_directory_has_no_branch() {
        let (top, state, _project) = scene();
        let around = top.path().canonicalize().unwrap();
        let said = begin(&state, &around, None).unwrap_err().to_string();
        assert!(said.contains("the state directory"), "{said}");
    }
}
