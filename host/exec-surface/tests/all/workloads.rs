//! Files that git itself writes pass: everyday commands of the real git, each followed by a check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portcullis_exec_surface::git::{Judgement, judge};
use portcullis_exec_surface::{Change, Class, Site, class};

use crate::kit::{git, output};

/// A directory in which git works, with every judged file as it was after the last command.
struct Desk {
    directory: tempfile::TempDir,
    known: BTreeMap<PathBuf, Vec<u8>>,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = "[user]\n\tname = A\n\temail = a@b.test\n[init]\n\tdefaultBranch = main\n\
                        [protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n";
        std::fs::write(directory.path().join(".gitconfig"), settings).unwrap();
        std::fs::create_dir(directory.path().join("w")).unwrap();
        Self { directory, known: BTreeMap::new() }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("w")
    }

    /// Runs git in `place` below the root and checks all files that it left.
    fn git(&mut self, place: &str, arguments: &str) {
        let home = self.directory.path().to_owned();
        let mut command = git(&home);
        command.env("GIT_SEQUENCE_EDITOR", "true").env("GIT_EDITOR", "true");
        let done = output(command.current_dir(self.root().join(place)).args(arguments.split(' ')));
        assert!(done.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&done.stderr));
        self.look(arguments);
    }

    /// Runs git, which must stop at a conflict, and checks the files with which it continues: `noted` contains
    /// `option`.
    fn stops(&mut self, place: &str, arguments: &str, (noted, option): (&str, &str)) {
        let home = self.directory.path().to_owned();
        let mut command = git(&home);
        let done = output(command.current_dir(self.root().join(place)).args(arguments.split(' ')));
        assert!(!done.status.success(), "git {arguments} does not stop");
        self.look(arguments);
        let found = self.known.iter().find(|(path, _)| path.ends_with(noted));
        let text = found.map(|(_, text)| String::from_utf8_lossy(text)).unwrap_or_default();
        assert!(text.contains(option), "{noted} after git {arguments}: {text:?}");
    }

    fn write(&mut self, path: &str, text: &str) {
        std::fs::write(self.root().join(path), text).unwrap();
    }

    fn look(&mut self, step: &str) {
        let roots = [self.root()];
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_link = |path: &Path| path.is_symlink();
        let site = Site { exists: &exists, is_link: &is_link, ..Site::without_files(&roots[0], &roots) };
        let mut seen = BTreeMap::new();
        let mut open = vec![self.root()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    assert_eq!(
                        class(&path, Change::MakeDirectory, &site),
                        Class::Free,
                        "{path:?} after {step}"
                    );
                    open.push(path);
                    continue;
                }
                match class(&path, Change::Install, &site) {
                    Class::Free => {}
                    Class::Judged(_, content) => {
                        let text = std::fs::read(&path).unwrap();
                        for previous in [None, self.known.get(&path).map(Vec::as_slice)] {
                            let judgement = judge(content, &path, previous, &text, &site);
                            assert_eq!(judgement, Judgement::Harmless, "{path:?} after {step}");
                        }
                        seen.insert(path, text);
                    }
                    class @ (Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_)) => {
                        panic!("{path:?} is {class:?} after {step}")
                    }
                }
            }
        }
        self.known = seen;
    }
}

/// Returns a directory with a repository `up` of two branches.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.git("", "init up");
    desk.write("up/f", "1\n");
    desk.git("up", "add f");
    desk.git("up", "commit -m one");
    desk.git("up", "checkout -b topic");
    desk.write("up/g", "2\n");
    desk.git("up", "add g");
    desk.git("up", "commit -m two");
    desk.git("up", "checkout main");
    assert!(desk.known.keys().any(|path| path.ends_with("up/.git/config")), "nothing is looked at");
    desk
}

#[test]
fn new_repositories() {
    let mut desk = desk();
    desk.git("", "init --bare bare.git");
    desk.git("", "init --bare --shared=group shared.git");
    desk.git("", "init --ref-format=reftable tables");
    desk.git("", "init up");
    desk.git("", "clone up copy");
    desk.git("", "clone --bare up copy.git");
    desk.git("", "clone --mirror up mirror.git");
    let url = format!("file://{}", desk.root().join("up").display());
    desk.git("", &format!("clone --depth 1 {url} shallow"));
    desk.git("", &format!("clone --single-branch --no-tags --origin theirs {url} single"));
    desk.git("", "clone --local --reference up up referring");
    desk.git("", "clone --sparse up sparse");
}

#[test]
fn branches_and_remotes() {
    let mut desk = desk();
    desk.git("", "clone up c");
    desk.git("c", "checkout --track origin/topic");
    desk.git("c", "checkout -b feature/x.y --track origin/main");
    desk.git("c", "branch -m feature/x.y feature/z");
    desk.git("c", "branch -u origin/topic feature/z");
    desk.git("c", "checkout main");
    desk.git("c", "branch -d topic");
    desk.git("c", "branch -D feature/z");
    desk.git("c", "branch --edit-description");
    desk.git("c", "remote add other https://host.test/a.git");
    desk.git("c", "remote add -t main -m main team/fork git@host.test:a/b.git");
    desk.git("c", "remote rename other another");
    desk.git("c", "remote set-url another ssh://git@host.test/a.git");
    desk.git("c", "remote set-url --add --push another ../up");
    desk.git("c", "remote set-branches --add another x");
    desk.git("c", "remote remove another");
    desk.git("c", "push -u origin main:new");
    desk.git("c", "pull --rebase origin main");
    desk.git("c", "config pull.rebase true");
    desk.git("c", "config user.email other@b.test");
    desk.git("c", "config core.autocrlf input");
    desk.git("c", "config --unset core.autocrlf");
}

#[test]
fn worktrees() {
    let mut desk = desk();
    desk.git("", "clone up c");
    desk.git("c", "worktree add ../beside -b beside");
    desk.git("c", "worktree add inside -b inside");
    desk.git("c", "worktree move inside moved");
    desk.git("c", "worktree lock moved");
    desk.git("c", "worktree unlock moved");
    desk.git("c", "worktree repair");
    desk.git("c", "config extensions.worktreeConfig true");
    desk.git("c/moved", "config --worktree user.name W");
    desk.git("c", "worktree remove --force moved");
    desk.git("beside", "config --worktree core.sparseCheckout true");
    desk.git("c", "worktree prune");
}

#[test]
fn submodules() {
    let mut desk = desk();
    desk.git("", "clone up c");
    desk.git("c", "submodule add ../up sub");
    desk.git("c", "submodule add -b topic --name lib/deep ../up lib/deep");
    desk.git("c", "commit -m submodules");
    desk.git("c", "submodule init");
    desk.git("c", "submodule sync --recursive");
    desk.git("c", "submodule update --init --recursive");
    desk.git("c", "submodule set-url sub ../up/.git");
    desk.git("c", "submodule set-branch -b topic sub");
    desk.git("c", "add -A");
    desk.git("c", "commit -m again");
    desk.git("c/sub", "worktree add ../of-sub -b of-sub");
    desk.git("", "clone --recurse-submodules c nested");
    desk.git("nested", "worktree add ../tree -b tree");
    desk.git("tree", "submodule update --init");
    desk.git("c", "submodule deinit -f lib/deep");
    desk.git("", "init c/late");
    desk.write("c/late/f", "1\n");
    desk.git("c/late", "add f");
    desk.git("c/late", "commit -m late");
    desk.git("c", "submodule add ./late late");
    desk.git("c", "submodule absorbgitdirs");
}

#[test]
fn everyday_work() {
    let mut desk = desk();
    desk.git("", "clone up c");
    desk.git("c", "sparse-checkout set a");
    desk.git("c", "sparse-checkout reapply");
    desk.git("c", "sparse-checkout disable");
    desk.write("c/f", "3\n");
    desk.git("c", "stash");
    desk.git("c", "stash pop");
    desk.git("c", "commit -am three");
    desk.git("c", "rebase -i --root");
    desk.git("c", "revert --no-edit HEAD");
    desk.git("c", "merge --no-ff origin/topic -m merged");
    desk.git("c", "rebase --rebase-merges --onto origin/main origin/main");
    desk.git("c", "cherry-pick --no-commit --strategy-option=ours origin/topic");
    desk.git("c", "reset --hard");
    desk.git("c", "tag -a v1 -m v1");
    desk.git("c", "notes add -m note");
    desk.git("c", "bisect start HEAD origin/main");
    desk.git("c", "bisect reset");
    desk.git("c", "gc");
    desk.git("c", "maintenance register");
    desk.git("c", "maintenance run");
    desk.git("c", "maintenance unregister");
    desk.git("c", "pack-refs --all");
    desk.git("c", "fetch --all --prune");
    desk.git("c", "update-index --index-version 4");
    desk.git("c", "-c index.threads=2 -c index.recordOffsetTable=true update-index --force-write-index");
    desk.git("c", "update-index --index-version 2");
    desk.git("c", "-c index.threads=2 -c index.recordOffsetTable=true update-index --force-write-index");
    desk.git("c", "update-index --untracked-cache");
    desk.git("c", "reset --hard HEAD~1");
    desk.git("c", "clean -fdx");
}

#[test]
fn a_rebase_that_has_stopped_goes_on() {
    let mut desk = desk();
    desk.git("", "clone up c");
    for line in ["a", "b"] {
        desk.write("c/f", line);
        desk.git("c", &format!("commit -am {line}"));
    }
    let stop = "sequence.editor=sed -i s/^pick/edit/";
    let home = desk.directory.path().to_owned();
    let mut command = git(&home);
    command.current_dir(desk.root().join("c")).args(["-c", stop, "rebase", "-i", "HEAD~2"]);
    assert!(output(&mut command).status.success());
    desk.look("rebase that stops");
    assert!(desk.known.keys().any(|path| path.ends_with("git-rebase-todo")), "{:?}", desk.known.keys());
    desk.git("c", "rebase --continue");
    desk.git("c", "rebase --abort");
}

#[test]
fn what_has_stopped_keeps_its_options() {
    let mut desk = desk();
    for (branch, text) in [("left", "left\n"), ("right", "right\n")] {
        desk.git("up", &format!("checkout -b {branch} main"));
        desk.write("up/f", text);
        desk.git("up", &format!("commit -am {branch}"));
    }
    let told = "-X find-renames=30% -X diff-algorithm=histogram -X ignore-space-change";
    desk.stops("up", &format!("rebase {told} left right"), ("strategy_opts", "find-renames=30%"));
    desk.git("up", "rebase --abort");
    desk.stops("up", &format!("cherry-pick {told} main left"), ("sequencer/opts", "histogram"));
    desk.git("up", "cherry-pick --abort");
    desk.git("up", "format-patch -1 left");
    let told = "-p1 -C1 --whitespace=fix --exclude=*.o --reject";
    desk.stops("up", &format!("am {told} 0001-left.patch"), ("apply-opt", "--whitespace=fix"));
    desk.git("up", "am --abort");
}
