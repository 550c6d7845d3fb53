//! Commits a branch: with a record of changes of its own, so that `portcullis undo` takes it back.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_changes::branch::{self, BranchChange, Settled, settled};
use portcullis_changes::undo::{Report, Whole, history, recover};
use portcullis_changes::{Recorder, Store};
use portcullis_sandbox::NameOrder;
use portcullis_settings_format::Undo;

use super::stored::{OpenBranch, StoredBranch, write_whole};
use crate::changes::{About, OwnChanges, StoredChanges, remove_changes, stored_changes};
use crate::process_env::random_name;

/// The file with the id of the record of a commit that has begun.
const COMMIT: &str = "commit";

/// The result of a commit.
#[derive(Debug)]
pub enum Committed {
    /// All of it was made; the number of names.
    Whole(usize),
    /// Nothing was committed, because a file of the project changed meanwhile or could not be written.
    Nothing(Report),
    /// The commit failed, and some of its changes are still in the project. The next `portcullis branch` takes them back.
    Unfinished(Report),
}

/// Makes the chosen changes in the project, while no command and no tool changes a name.
///
/// # Errors
/// If the record cannot be written, or the branch has changed since it was compared.
pub fn commit(
    state: &Path,
    undo: Undo,
    branch: &mut OpenBranch,
    chosen: &[&BranchChange],
) -> anyhow::Result<Committed> {
    anyhow::ensure!(
        !finish(state, branch)?,
        "nothing was committed: an earlier commit of this branch was not complete, and is taken back only now; look at \
         the branch again"
    );
    let stored = branch.stored();
    stored.require_project()?;
    let label = format!("commit of branch {}", stored.name);
    let (id, project) = (random_name()?, stored.project.clone());
    let about = About { id: id.clone(), project: project.clone(), agent: format!("branch {}", stored.name) };
    // A commit that is killed must be taken back as a whole, so the bounds on what is kept do not apply.
    let all = Undo { max_file_mib: Some(u64::MAX), max_session_mib: Some(u64::MAX), ..undo };
    let own = OwnChanges::make(state, &about, all)?;
    let names = state.join("names");
    let order = NameOrder::open(&names)
        .with_context(|| format!("opening the order of changes of names in `{}`", names.display()))?;
    write_whole(&stored.directory, COMMIT, id.as_bytes())?;
    let recorder = Recorder::new(Store::open(&own.store_path()).context("opening the record of changes")?);
    let made = {
        let _alone = order.exclusive().context("waiting for the turn to write")?;
        let made = branch::commit(&recorder, stored.layers(), chosen, &label);
        match made {
            Ok(made) => made,
            Err(error) => {
                let later =
                    "taking back a commit that failed; the next `portcullis branch` goes on with that";
                let back = recover(&recorder, &project).with_context(|| format!("{error}")).context(later)?;
                let back = back.unwrap_or_default();
                branch.settle(given_back(&project, &back))?;
                if !back.is_complete() {
                    return Ok(Committed::Unfinished(back));
                }
                own.discard();
                end(&branch.stored().directory)?;
                return Err(error).context("nothing was committed");
            }
        }
    };
    match made {
        Whole::Made => {}
        Whole::Stopped { back, .. } if !back.is_complete() => {
            branch.settle(given_back(&project, &back))?;
            return Ok(Committed::Unfinished(*back));
        }
        Whole::Stopped { by, back } => {
            own.discard();
            branch.settle(given_back(&project, &back))?;
            end(&branch.stored().directory)?;
            return Ok(Committed::Nothing(by));
        }
    }
    let paths: Vec<PathBuf> = chosen.iter().map(|change| change.path.clone()).collect();
    branch.settle(settled(&project, &paths).context("looking at what was committed")?)?;
    end(&branch.stored().directory)?;
    Ok(Committed::Whole(chosen.len()))
}

/// Returns the names that a commit had changed, as they were given back: that is no change of the user's.
fn given_back(project: &Path, back: &Report) -> BTreeMap<PathBuf, Settled> {
    let paths = back.done.iter().filter_map(|path| path.strip_prefix(project).ok());
    // Of a name that cannot be looked at, a conflict is shown.
    paths.filter_map(|path| settled(project, &[path.to_owned()]).ok()).flatten().collect()
}

fn end(directory: &Path) -> anyhow::Result<()> {
    let file = directory.join(COMMIT);
    std::fs::remove_file(&file).with_context(|| format!("removing `{}`", file.display()))
}

/// Takes back what an interrupted commit has done; `None` if it was complete.
fn take_back(state: &Path, stored: &StoredChanges) -> anyhow::Result<Option<Report>> {
    let order = NameOrder::open(&state.join("names")).context("opening the order of changes of names")?;
    let _alone = order.exclusive().context("waiting for the turn to write")?;
    let recorder = Recorder::new(Store::open(&stored.store).context("opening the record of changes")?);
    let back = recover(&recorder, &stored.about.project).context("putting back what the commit has done")?;
    // `portcullis undo` or `changes` may have taken it back already.
    let is_void = history(recorder.store()).context("reading the record of changes")?.newest().is_none();
    Ok(back.or_else(|| is_void.then(Report::default)))
}

/// Takes back a commit of a project's branches that was interrupted; returns the names of these branches.
///
/// # Errors
/// If it cannot be taken back.
pub fn finish_interrupted(state: &Path, branches: &[StoredBranch]) -> anyhow::Result<Vec<String>> {
    let mut taken_back = Vec::new();
    for branch in branches.iter().filter(|branch| !branch.is_in_use) {
        if branch.directory.join(COMMIT).exists() && finish(state, &mut branch.clone().lock()?)? {
            taken_back.push(branch.name.clone());
        }
    }
    Ok(taken_back)
}

/// Takes back a commit of a branch that was interrupted; returns whether there was one.
fn finish(state: &Path, locked: &mut OpenBranch) -> anyhow::Result<bool> {
    let branch = locked.stored().clone();
    let file: PathBuf = branch.directory.join(COMMIT);
    let id = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        id => id.with_context(|| format!("reading `{}`", file.display()))?,
    };
    let mut is_taken_back = false;
    let records = stored_changes(state, Some(&branch.project))?;
    if let Some(stored) = records.iter().find(|stored| stored.about.id == id) {
        branch.require_project()?;
        let doing = || format!("taking back an interrupted commit of branch `{}`", branch.name);
        if let Some(back) = take_back(state, stored).with_context(doing)? {
            locked.settle(given_back(&branch.project, &back))?;
            let failed = back.failed.iter().map(|(path, error)| format!("`{}`: {error}", path.display()));
            let left = back.left.iter().map(|(path, why, _)| format!("`{}`: {why}", path.display()));
            let all: Vec<String> = failed.chain(left).collect();
            anyhow::ensure!(all.is_empty(), "{}: {}", doing(), all.join(", "));
            remove_changes(stored)?;
            is_taken_back = true;
        }
    }
    end(&branch.directory)?;
    Ok(is_taken_back)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::{self, File};

    use portcullis_changes::branch::compare;
    use portcullis_changes::{Place, Record};

    use super::*;
    use crate::branches::begin;

    struct Scene {
        _top: tempfile::TempDir,
        state: PathBuf,
        project: PathBuf,
    }

    impl Scene {
        fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            let path = top.path().canonicalize().unwrap();
            let (state, project) = (path.join("state"), path.join("project"));
            for directory in [&state, &project] {
                fs::create_dir(directory).unwrap();
            }
            for name in ["first", "second"] {
                fs::write(project.join(name), "of the project").unwrap();
            }
            Self { _top: top, state, project }
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.project.join(name)).unwrap()
        }

        /// Begins a commit of the branch that changes one file, and does not end.
        fn begin_commit(&self, branch: &OpenBranch) {
            let id = random_name().unwrap();
            let about = About { id: id.clone(), project: self.project.clone(), agent: "branch".to_owned() };
            let own = OwnChanges::make(&self.state, &about, Undo::default()).unwrap();
            write_whole(&branch.stored().directory, COMMIT, id.as_bytes()).unwrap();
            let recorder = Recorder::new(Store::open(&own.store_path()).unwrap());
            let call = recorder.own_call();
            recorder.store().append(&[Record::Whole { call }]).unwrap();
            let (directory, name) = (File::open(&self.project).unwrap(), CString::new("first").unwrap());
            let path = self.project.join("first");
            let place = Place { directory: &directory, name: &name, path: &path };
            recorder.before(call, place).unwrap();
            let reaches = Record::Reaches { call, path: path.clone(), to: None };
            recorder.store().append(&[reaches]).unwrap();
            fs::write(&path, "half-way").unwrap();
        }

        /// Commits everything that differs, conflicts as well.
        fn commit(&self, branch: &mut OpenBranch) -> anyhow::Result<Committed> {
            let changes = compare(branch.stored().layers()).unwrap();
            commit(&self.state, Undo::default(), branch, &changes.iter().collect::<Vec<_>>())
        }
    }

    /// A commit is interrupted, and a second one begins before any other command repairs the branch. In the control the
    /// note of the interrupted commit is missing.
    #[test]
    fn a_second_commit_does_not_forget_an_interrupted_one() {
        for is_noted in [true, false] {
            let scene = Scene::new();
            let mut branch = begin(&scene.state, &scene.project, Some("one")).unwrap();
            fs::write(branch.layer().upper.join("second"), "of the branch").unwrap();
            scene.begin_commit(&branch);
            assert_eq!(scene.read("first"), "half-way", "control");
            if is_noted {
                let said = scene.commit(&mut branch).unwrap_err().to_string();
                assert!(said.contains("an earlier commit of this branch was not complete"), "{said}");
                assert_eq!(
                    (scene.read("first").as_str(), scene.read("second").as_str()),
                    ("of the project", "of the project")
                );
                assert!(stored_changes(&scene.state, None).unwrap().is_empty(), "its record is gone");
            } else {
                end(&branch.stored().directory).unwrap();
            }
            let made = scene.commit(&mut branch).unwrap();
            assert!(matches!(made, Committed::Whole(1)), "{made:?}");
            assert_eq!(scene.read("second"), "of the branch");
            assert_eq!(scene.read("first") == "of the project", is_noted);
            assert!(!branch.stored().directory.join(COMMIT).exists());
        }
    }
}
