//! A developer's home with a project in it, made anew for each run of a task.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use portcullis_it::{Deadline, Finished, Scene, User, processes};

use crate::{Machine, Task};

/// Where homes are made: the first that this user can write, unless the variable names another directory.
const HOMES: [&str; 2] = ["/home", "/var/tmp"];
const HOMES_VARIABLE: &str = "PORTCULLIS_EVERYDAY_HOMES";
/// The project, from the root of the scene.
const PROJECT: &str = "home/work/app";
/// What a second session finds of the first: Portcullis' own files.
const KEPT: [&str; 4] =
    [".local/state/portcullis", ".local/share/portcullis", ".config/portcullis", ".pi/agent/sandbox"];
/// The script that fills a home.
const LAYOUT: &str = include_str!("../layout.sh");

/// A home with dot files, caches, a project below `~/work` and a sibling of it.
#[derive(Debug)]
pub(crate) struct Home {
    scene: Scene,
    variables: Vec<(String, String)>,
}

impl Home {
    /// Makes an empty one.
    pub(crate) fn new(machine: &Machine, user: User) -> Result<Self> {
        let scene = Scene::below(&homes()?, user)?.with_project(PROJECT);
        let mut programs = vec![scene.home().join(".local/bin")];
        programs.extend(machine.programs().iter().cloned());
        let home = Self { scene: scene.with_programs(programs), variables: machine.variables().to_vec() };
        home.make_project()?;
        Ok(home)
    }

    /// Fills it, and prepares a task.
    pub(crate) fn furnish(&self, setup: &str) -> Result<()> {
        self.run_script(LAYOUT, Deadline::start())?.ended_with(0).context("filling the home")?;
        let prepared = self.run_script(&format!("set -e\n{setup}"), Deadline::start())?;
        prepared.ended_with(0).context("preparing the task")?;
        Ok(())
    }

    /// Empties it of everything but Portcullis' own files.
    pub(crate) fn clear(&self) -> Result<()> {
        let kept: Vec<PathBuf> = KEPT.iter().map(|name| self.scene.home().join(name)).collect();
        empty(&self.scene.home(), &kept)?;
        self.make_project()
    }

    fn make_project(&self) -> Result<()> {
        fs::create_dir_all(self.scene.project())?;
        self.scene.user().own(&self.scene.home().join("work"))?;
        self.scene.user().own(&self.scene.project())
    }

    /// Returns the files and the user.
    pub(crate) fn scene(&self) -> &Scene {
        &self.scene
    }

    /// Returns all variables of a command, as a login would set them.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let home = self.scene.home().display().to_string();
        // Programs name directories in `/tmp` after their users.
        let name = if self.scene.user().is_stranger() { "dev" } else { "caller" };
        let own = [
            ("HOME", home),
            ("PATH", self.scene.search_path()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("USER", name.to_owned()),
            ("LOGNAME", name.to_owned()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.variables.iter().cloned()).collect()
    }

    /// Runs a script in the project without a sandbox.
    pub(crate) fn run_script(&self, script: &str, deadline: Deadline) -> Result<Finished> {
        let mut command: Command = self.scene.program("/bin/bash".as_ref());
        self.scene.enter(&mut command);
        command.envs(self.environment()).env("OUTPUT", self.output());
        Finished::run_until(deadline, command.args(["-c", script]))
    }

    /// Starts a task's service, and waits until it is ready.
    pub(crate) fn serve(&self, task: &Task) -> Result<Option<Service>> {
        let Some(script) = &task.service else { return Ok(None) };
        let (ready, folder) = (self.scene.at("ready"), self.scene.at("service"));
        if ready.exists() {
            fs::remove_file(&ready)?;
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        self.scene.user().own(&folder)?;
        let mut command: Command = self.scene.program("/bin/bash".as_ref());
        self.scene.enter(&mut command);
        command.envs(self.environment()).env("SERVICE", &folder).env("READY", &ready);
        command.args(["-c", script]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let service = Service(command.spawn().context("starting the service")?);
        Deadline::start().until("the service", || Ok(ready.exists().then_some(())))?;
        Ok(Some(service))
    }

    /// Runs the check of a task on what it wrote.
    pub(crate) fn has_worked(&self, check: &str, output: &str) -> Result<bool> {
        self.scene.write(&self.output(), output)?;
        Ok(self.run_script(&format!("set -e\n{check}"), Deadline::start())?.code() == 0)
    }

    fn output(&self) -> PathBuf {
        self.scene.at("output.txt")
    }
}

/// A running service; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).output());
        drop(self.0.wait());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What a task left running outside; inside, the sandbox ends it.
        for process in processes::of_scene(&self.scene).unwrap_or_default() {
            drop(Command::new("kill").args(["-KILL", &process.id.to_string()]).output());
        }
        // Go makes its cache read-only; the rest is removed with the scene.
        let home = self.scene.home();
        drop(Command::new("chmod").arg("-R").arg("u+rwX").arg(home).output());
    }
}

fn homes() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(HOMES_VARIABLE) {
        return Ok(named.into());
    }
    let is_writable = |place: &&&str| {
        let probe = Path::new(place).join(format!(".portcullis-{}", std::process::id()));
        fs::create_dir_all(&probe).and_then(|()| fs::remove_dir(&probe)).is_ok()
    };
    let found = HOMES.iter().find(is_writable).context("no directory for homes can be written")?;
    Ok(PathBuf::from(found))
}

/// Removes all names in a directory but those that are kept, or lead to them.
fn empty(directory: &Path, kept: &[PathBuf]) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_directory = path.is_dir() && !path.is_symlink();
        if kept.contains(&path) {
            continue;
        }
        if is_directory && kept.iter().any(|kept| kept.starts_with(&path)) {
            empty(&path, kept)?;
            continue;
        }
        let removed = if is_directory { remove_tree(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("removing `{}`", path.display()))?;
    }
    Ok(())
}

/// Removes a directory whose parts may be read-only.
fn remove_tree(directory: &Path) -> std::io::Result<()> {
    drop(Command::new("chmod").arg("-R").arg("u+rwX").arg(directory).output()?);
    fs::remove_dir_all(directory)
}
