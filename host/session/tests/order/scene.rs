//! A project beside another one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_exec_surface::{Change, Class, Site, class, git};
use portcullis_settings_format::RequiredTier;

/// A project in a home directory.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
    pub(crate) project: PathBuf,
    /// The other project.
    pub(crate) near: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) attack: PathBuf,
    /// The least tier that will do for its sessions.
    pub(crate) least: RequiredTier,
}

impl Scene {
    /// Creates a project with a repository, a submodule and the compiled attack; `None` without a C compiler.
    pub(crate) fn new() -> Option<Self> {
        // The sandbox replaces `/tmp`.
        let directory = tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp");
        let directory = directory.expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("opened to all");
        let top = directory.path().canonicalize().expect("a path");
        let (home, project) = (top.join("home/u"), top.join("home/u/p"));
        let near = top.join("home/u/near");
        for made in [project.join("sub"), project.join("q"), home.join(".pi/agent"), near.clone()] {
            fs::create_dir_all(made).expect("a directory");
        }
        let mut scene =
            Self { directory, project, near, home, attack: PathBuf::new(), least: RequiredTier::Full };
        scene.attack = scene.compile("attack", include_str!("attack.c"))?;
        scene.git(&["init", "-q"]);
        scene.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "1".repeat(40))]);
        fs::write(scene.project.join("sub/.git"), "gitdir: ../.git/modules/x\n").expect("a link to a module");
        Some(scene)
    }

    /// Compiles a program of a command's; none without a compiler.
    pub(crate) fn compile(&self, name: &str, text: &str) -> Option<PathBuf> {
        let (program, source) = (self.project.join(name), self.place().join(name).with_extension("c"));
        fs::write(&source, text).expect("written");
        let compiled = Command::new("cc").args(["-O1", "-o"]).args([&program, &source]).status();
        compiled.is_ok_and(|status| status.success()).then_some(program)
    }

    /// Runs the user's own git in the project.
    pub(crate) fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(words).current_dir(&self.project).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        // The exit status depends on the state of the repository.
        drop(git.output().expect("git runs"));
    }

    /// Returns the directory of the scene.
    pub(crate) fn place(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the file that is created when git has run the program in the settings.
    pub(crate) fn mark(&self) -> PathBuf {
        self.directory.path().join("mark")
    }

    /// Returns true if a file with this content is harmful by the current rules on names.
    pub(crate) fn is_harmful(&self, path: &Path, content: &str) -> bool {
        let roots = [self.project.clone()];
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_link = |path: &Path| path.is_symlink();
        let site = Site { exists: &exists, is_link: &is_link, ..Site::without_files(&roots[0], &roots) };
        match class(path, Change::Write, &site) {
            Class::Free => false,
            Class::Judged(_, kind) => {
                git::judge(kind, path, None, content.as_bytes(), &site) != git::Judgement::Harmless
            }
            Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_) => true,
        }
    }
}
