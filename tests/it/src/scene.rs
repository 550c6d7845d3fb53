//! A temporary home, project and outside directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use tempfile::TempDir;

use crate::{Finished, PiVersion, Tools, User, tools};

/// Scenes are outside `/tmp`, which a confined session replaces by its own.
const SCENES: &str = "/var/tmp";

/// The files of one test; they are removed when this is dropped.
#[derive(Debug)]
pub struct Scene {
    root: TempDir,
    user: User,
    /// The path of the directory pi is started in, from the root of the scene.
    project: &'static str,
    /// Further directories of PATH.
    programs: Vec<PathBuf>,
    /// A program, with its first arguments, that takes a facility away and executes its last arguments.
    through: Option<(&'static str, &'static [&'static str])>,
    /// The confiner of commands, for the program of other systems.
    confiner: Option<PathBuf>,
}

/// A program in the place of macOS' `sandbox-exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confiner {
    /// It confines.
    Confines,
    /// It runs commands as they are.
    Nothing,
    /// It runs no command.
    Everything,
    /// There is none.
    Missing,
}

impl Confiner {
    fn text(self) -> Option<&'static str> {
        match self {
            Self::Confines => Some(include_str!("../../confiners/confine.py")),
            Self::Nothing => Some(include_str!("../../confiners/nothing.sh")),
            Self::Everything => Some(include_str!("../../confiners/everything.sh")),
            Self::Missing => None,
        }
    }
}

impl Scene {
    /// Makes an empty home, project and outside directory that belong to `user`.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new(user: User) -> anyhow::Result<Self> {
        Self::below(Path::new(SCENES), user)
    }

    /// Makes them in a directory that all users may enter.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn below(parent: &Path, user: User) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in(parent)?;
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755))?;
        user.own(root.path())?;
        let scene =
            Self { root, user, project: "project", programs: Vec::new(), through: None, confiner: None };
        for folder in [scene.home(), scene.project(), scene.outside(), scene.bin()] {
            fs::create_dir(&folder)?;
            user.own(&folder)?;
        }
        Ok(scene)
    }

    /// Returns the same scene for the program of systems other than Linux, with this confiner of commands.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn portable(self, confiner: Confiner) -> anyhow::Result<Self> {
        let program = self.at("confiner");
        if let Some(text) = confiner.text() {
            self.write(&program, text)?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { confiner: Some(program), ..self })
    }

    /// Returns the program under test.
    ///
    /// # Errors
    ///
    /// When it is missing.
    pub fn host(&self) -> anyhow::Result<PathBuf> {
        match &self.confiner {
            Some(_) => tools::portable(self.user),
            None => tools::portcullis(self.user),
        }
    }

    /// Returns the variables that name the confiner of commands.
    #[must_use]
    pub fn confiner(&self) -> Vec<(&'static str, String)> {
        let name = |program: &PathBuf| ("PORTCULLIS_CONFINER", program.display().to_string());
        self.confiner.iter().map(name).collect()
    }

    /// Returns the same scene with the home directory as the project.
    #[must_use]
    pub fn at_home(self) -> Self {
        Self { project: "home", ..self }
    }

    /// Returns the same scene with this directory, from the root of the scene, as the project.
    #[must_use]
    pub fn with_project(self, project: &'static str) -> Self {
        Self { project, ..self }
    }

    /// Returns the same scene with further directories in PATH, behind the first one.
    #[must_use]
    pub fn with_programs(self, programs: Vec<PathBuf>) -> Self {
        Self { programs, ..self }
    }

    /// Returns the user as whom everything in the scene runs.
    #[must_use]
    pub fn user(&self) -> User {
        self.user
    }

    /// Returns the home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.at("home")
    }

    /// Returns the directory where pi is started.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.at(self.project)
    }

    /// Returns a directory of the same user that is neither home nor project.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.at("outside")
    }

    /// Returns the folder that comes first in PATH: `rg`, `fd` and `pi`.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.at("bin")
    }

    /// Returns the path of `name` beside home and project, for the harness's own files.
    #[must_use]
    pub fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the files of the audit log.
    ///
    /// # Errors
    ///
    /// When there is no log, or it cannot be listed.
    pub fn logs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let directory = self.home().join(".local/state/portcullis/audit");
        let mut logs = Vec::new();
        for entry in fs::read_dir(&directory).with_context(|| format!("listing `{}`", directory.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                logs.push(path);
            }
        }
        Ok(logs)
    }

    /// Writes a file of the user, with its parent directories.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.user.own(folder)?;
        }
        fs::write(path, text).with_context(|| format!("writing `{}`", path.display()))?;
        self.user.own(path)
    }

    /// Makes `command` start in the project, with the home and the PATH of the scene and nothing else of the caller's
    /// environment.
    pub fn enter(&self, command: &mut Command) {
        command.env_clear().env("HOME", self.home()).env("PATH", self.search_path()).env("LANG", "C.UTF-8");
        command.envs(self.confiner()).current_dir(self.project());
    }

    /// Returns the value of PATH.
    #[must_use]
    pub fn search_path(&self) -> String {
        let folders = std::iter::once(self.bin()).chain(self.programs.iter().cloned());
        let folders: String = folders.map(|folder| format!("{}:", folder.display())).collect();
        folders + "/usr/local/bin:/usr/bin:/bin"
    }

    /// Runs `portcullis` with `arguments` to its end.
    ///
    /// # Errors
    ///
    /// When the binary is missing or does not end in time.
    pub fn portcullis(&self, arguments: &[&str]) -> anyhow::Result<Finished> {
        Finished::run(&mut self.portcullis_command(arguments)?)
    }

    /// Returns the command that [`Self::portcullis`] runs.
    ///
    /// # Errors
    ///
    /// When the binary is missing.
    pub fn portcullis_command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = self.program(&self.host()?);
        self.enter(&mut command);
        // Rows of tables stay whole.
        command.args(arguments).env("COLUMNS", "10000");
        Ok(command)
    }

    /// Has every host of this scene started through a program that executes its last arguments.
    #[must_use]
    pub fn through(mut self, program: &'static str, words: &'static [&'static str]) -> Self {
        self.through = Some((program, words));
        self
    }

    /// Returns true if hosts are started without a facility of the machine.
    #[must_use]
    pub fn is_weakened(&self) -> bool {
        self.through.is_some()
    }

    /// Returns the command that starts a program as the scene's user.
    #[must_use]
    pub fn program(&self, program: &Path) -> Command {
        let Some((through, words)) = self.through else { return self.user.command(program) };
        let mut command = self.user.command(through.as_ref());
        command.args(words).arg(program);
        command
    }

    /// Makes the user trust the component at this path, so that its answers count in full.
    ///
    /// # Errors
    ///
    /// If the binary is missing or does not end in time.
    pub fn trust(&self, component: &Path) -> anyhow::Result<()> {
        let component = component.to_str().context("a path is text")?;
        self.portcullis(&["policy", "trust", "file", component])?.ended_with(0)?;
        Ok(())
    }

    /// Puts pi's helper programs and a `pi` that runs `version` into [`Self::bin`].
    ///
    /// # Errors
    ///
    /// When a tool is missing.
    pub fn install_pi(&self, version: PiVersion) -> anyhow::Result<crate::Pi> {
        let tools = Tools::find()?;
        for name in ["rg", "fd"] {
            let link = self.bin().join(name);
            if !link.exists() {
                symlink(tools.helper(name, self.user)?, link)?;
            }
        }
        let pi = tools.pi(version, self.user)?;
        let wrapper = self.bin().join("pi");
        let text = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", pi.node.display(), pi.cli.display());
        self.write(&wrapper, &text)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        Ok(pi)
    }
}
