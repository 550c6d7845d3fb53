//! Helpers that the tests share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use portcullis_exec_surface::git::{Content, Judgement, judge};
use portcullis_exec_surface::{Change, Class, Site, class};

/// A site with a root `/w` and the names that exist.
pub(crate) struct TestTree {
    roots: Vec<PathBuf>,
    there: BTreeSet<PathBuf>,
}

impl TestTree {
    pub(crate) fn with(there: &[String]) -> Self {
        let there = there.iter().map(|path| Path::new("/w").join(path)).collect();
        Self { roots: vec![PathBuf::from("/w")], there }
    }

    pub(crate) fn class(&self, path: &str, change: Change) -> Class {
        let exists = |path: &Path| self.there.contains(path);
        class(
            &Path::new("/w").join(path),
            change,
            &Site { exists: &exists, ..Site::without_files(&self.roots[0], &self.roots) },
        )
    }
}

/// Returns the judgement of `new` at `path` below `/w`.
pub(crate) fn judged(content: Content, path: &str, previous: Option<&str>, new: &str) -> Judgement {
    let roots = [PathBuf::from("/w")];
    let site = Site::without_files(&roots[0], &roots);
    judge(content, &Path::new("/w").join(path), previous.map(str::as_bytes), new.as_bytes(), &site)
}

/// Returns a git command without any configuration, with its home in `home`.
pub(crate) fn git(home: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0")]);
    command.env("HOME", home).current_dir(home);
    command
}

/// Runs git, which must be installed.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("this test needs the program git")
}
