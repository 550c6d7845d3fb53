//! The facts of real repositories, and of files that only look like one.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_decision::context::{Vcs, VcsParts};
use portcullis_vcs::Repository;

/// A directory of the test with a repository in `p`.
struct Scratch {
    top: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let place = Self { top: tempfile::tempdir().unwrap() };
        fs::create_dir(place.project()).unwrap();
        place.git(&["init", "--quiet", "--initial-branch", "main"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn project(&self) -> PathBuf {
        self.path("p")
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.project(), arguments)
    }

    fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(directory).args(["-c", "user.name=a", "-c", "user.email=a@b.test"]).args(arguments);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", self.top.path());
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, name: &str) {
        fs::write(self.project().join(name), name).unwrap();
        self.git(&["add", name]);
        self.git(&["commit", "--quiet", "--message", name]);
    }

    fn facts(&self) -> Option<Vcs> {
        Repository::of(&self.project()).facts(VcsParts::ALL)
    }
}

fn branch(repository: &Repository) -> Option<String> {
    repository.facts(VcsParts::BRANCH).and_then(|facts| facts.branch)
}

#[test]
fn a_switch_of_the_branch_is_seen() {
    let place = Scratch::new();
    let repository = Repository::of(&place.project());
    assert_eq!(branch(&repository).as_deref(), Some("main"));
    place.commit("a");
    place.git(&["switch", "--quiet", "--create", "feature/x"]);
    assert_eq!(branch(&repository).as_deref(), Some("feature/x"));
    place.git(&["switch", "--quiet", "--detach"]);
    let facts = repository.facts(VcsParts::ALL).unwrap();
    assert_eq!((facts.branch, facts.head), (None, Some(place.git(&["rev-parse", "HEAD"]))));
    place.git(&["switch", "--quiet", "main"]);
    assert_eq!(branch(&repository).as_deref(), Some("main"));
    fs::rename(place.project().join(".git"), place.path("away")).unwrap();
    assert_eq!(repository.facts(VcsParts::ALL), None);
}

#[test]
fn an_answer_is_used_until_a_file_changes() {
    let place = Scratch::new();
    let repository = Repository::of(&place.project());
    // A head of the same length, written into the same file at once.
    let head = place.project().join(".git/HEAD");
    for name in ["abcd", "main", "efgh", "main"] {
        fs::write(&head, format!("ref: refs/heads/{name}\n")).unwrap();
        assert_eq!(branch(&repository).as_deref(), Some(name));
    }
}

#[test]
fn the_commit_is_found_loose_and_packed() {
    let place = Scratch::new();
    assert_eq!(place.facts().unwrap().head, None, "a branch without commits");
    place.commit("a");
    let commit = place.git(&["rev-parse", "HEAD"]);
    assert_eq!(place.facts().unwrap().head.as_ref(), Some(&commit));
    place.git(&["pack-refs", "--all"]);
    assert!(!place.project().join(".git/refs/heads/main").exists());
    assert_eq!(place.facts().unwrap().head.as_ref(), Some(&commit));
}

#[test]
fn changes_are_told() {
    let place = Scratch::new();
    assert_eq!(place.facts().unwrap().dirty, None, "there is no index yet");
    place.commit("a");
    // A file that is as new as the index is looked at again by git, too.
    let settle = || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        place.git(&["update-index", "--refresh", "--force-write-index"]);
    };
    settle();
    assert_eq!(place.facts().unwrap().dirty, Some(false));
    place.git(&["gc", "--quiet"]);
    settle();
    assert_eq!(place.facts().unwrap().dirty, Some(false), "the commit is in a pack");
    fs::write(place.project().join("untracked"), "x").unwrap();
    assert_eq!(place.facts().unwrap().dirty, Some(false));
    fs::write(place.project().join("a"), "longer than before").unwrap();
    assert_eq!(place.facts().unwrap().dirty, Some(true));
    place.git(&["checkout", "--quiet", "a"]);
    settle();
    assert_eq!(place.facts().unwrap().dirty, Some(false));
    fs::remove_file(place.project().join("a")).unwrap();
    assert_eq!(place.facts().unwrap().dirty, Some(true));
    place.git(&["checkout", "--quiet", "a"]);
    place.git(&["mv", "a", "b"]);
    settle();
    assert_ne!(place.facts().unwrap().dirty, Some(false), "a change that is staged");
    place.git(&["write-tree"]);
    place.git(&["commit", "--quiet", "--message", "moved"]);
    settle();
    assert_eq!(place.facts().unwrap().dirty, Some(false));
}

#[test]
fn a_worktree_and_a_submodule_have_facts_of_their_own() {
    let place = Scratch::new();
    place.commit("a");
    place.git(&["remote", "add", "origin", "https://user:secret@host.test/p.git"]);
    place.git(&["worktree", "add", "--quiet", "-b", "other", "../w"]);
    let facts = Repository::of(&place.path("w")).facts(VcsParts::ALL).unwrap();
    assert_eq!(facts.branch.as_deref(), Some("other"));
    assert_eq!(facts.head, Some(place.git(&["rev-parse", "HEAD"])));
    assert_eq!(facts.root, place.path("w").to_str().unwrap());
    let remote = facts.remotes.first().unwrap();
    assert_eq!((remote.name.as_str(), remote.url.as_str()), ("origin", "https://host.test/p.git"));
    assert_eq!(branch(&Repository::of(&place.project())).as_deref(), Some("main"));

    fs::create_dir(place.path("lib")).unwrap();
    place.git_in(&place.path("lib"), &["init", "--quiet", "--initial-branch", "of-lib"]);
    fs::write(place.path("lib/x"), "x").unwrap();
    place.git_in(&place.path("lib"), &["add", "x"]);
    place.git_in(&place.path("lib"), &["commit", "--quiet", "--message", "x"]);
    let url = place.path("lib");
    place.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url.to_str().unwrap(),
        "lib",
    ]);
    let lib = Repository::of(&place.project().join("lib"));
    assert_eq!(branch(&lib).as_deref(), Some("of-lib"));
}

#[test]
fn the_nearest_repository_counts() {
    let place = Scratch::new();
    let inner = place.project().join("a/b");
    fs::create_dir_all(&inner).unwrap();
    let repository = Repository::of(&inner);
    assert_eq!(branch(&repository).as_deref(), Some("main"));
    place.git_in(&inner, &["init", "--quiet", "--initial-branch", "inner"]);
    assert_eq!(branch(&repository).as_deref(), Some("inner"));
}

#[test]
fn no_program_of_a_repository_runs() {
    let place = Scratch::new();
    place.commit("a");
    let ran = place.path("ran");
    let script = place.path("evil.sh");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "core.sshCommand",
        "diff.external",
    ] {
        place.git(&["config", key, script]);
    }
    place.git(&["config", "include.path", "/dev/stdin"]);
    fs::write(place.project().join(".gitattributes"), "* filter=x\n").unwrap();
    fs::create_dir_all(place.project().join(".git/hooks")).unwrap();
    for hook in ["post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"] {
        fs::copy(script, place.project().join(".git/hooks").join(hook)).unwrap();
    }
    fs::write(place.project().join("a"), "b").unwrap();
    let facts = place.facts().unwrap();
    assert_eq!(facts.branch.as_deref(), Some("main"));
    assert!(!ran.exists(), "a program of the repository ran");
    // Control: git itself runs one of them.
    let mut git = Command::new("git");
    git.current_dir(place.project()).args(["status"]).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let _status = git.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(ran.exists(), "the repository is not as hostile as it should be");
}

#[test]
fn what_is_no_plain_file_is_not_read() {
    let place = Scratch::new();
    place.commit("a");
    let git = place.project().join(".git");
    let other = Scratch::new();
    other.git(&["symbolic-ref", "HEAD", "refs/heads/of-another"]);
    let secret = other.project().join(".git");

    // A head that is a link, a pipe, and too long.
    let head = git.join("HEAD");
    fs::remove_file(&head).unwrap();
    symlink(secret.join("HEAD"), &head).unwrap();
    assert_eq!(place.facts().unwrap().branch, None);
    fs::remove_file(&head).unwrap();
    assert!(Command::new("mkfifo").arg(&head).status().unwrap().success());
    assert_eq!(place.facts().unwrap().branch, None);
    fs::remove_file(&head).unwrap();
    fs::write(&head, format!("ref: refs/heads/{}\n", "x".repeat(1 << 20))).unwrap();
    assert_eq!(place.facts().unwrap().branch, None);
    fs::write(&head, "ref: refs/heads/../../../etc/passwd\n").unwrap();
    assert_eq!(place.facts().unwrap().branch, None);
    fs::write(&head, "ref: refs/heads/main\n").unwrap();

    // References behind a link, and too many packed ones.
    let commit = place.facts().unwrap().head;
    assert!(commit.is_some());
    fs::rename(git.join("refs"), git.join("away")).unwrap();
    symlink("away", git.join("refs")).unwrap();
    assert_eq!(place.facts().unwrap().head, None);
    fs::write(git.join("packed-refs"), vec![b'\n'; 9 << 20]).unwrap();
    assert_eq!(place.facts().unwrap().head, None);
    fs::remove_file(git.join("packed-refs")).unwrap();
    assert!(Command::new("mkfifo").arg(git.join("packed-refs")).status().unwrap().success());
    assert_eq!(place.facts().unwrap().head, None);
    fs::write(git.join("index"), vec![0xff; 1 << 20]).unwrap();
    assert_eq!(place.facts().unwrap().dirty, None);

    // The directory itself as a link.
    fs::rename(&git, place.path("moved")).unwrap();
    symlink(&secret, &git).unwrap();
    assert_eq!(place.facts(), None);
}

#[test]
fn a_pointer_to_another_repository_tells_nothing_of_it() {
    let place = Scratch::new();
    let project = place.path("q");
    fs::create_dir(&project).unwrap();
    let pointer = project.join(".git");
    let facts = || Repository::of(&project).facts(VcsParts::ALL);
    for target in
        [place.project().join(".git").to_str().unwrap(), "../p/.git", "/dev/null", "", "../p/.git\nx"]
    {
        fs::write(&pointer, format!("gitdir: {target}\n")).unwrap();
        assert_eq!(facts(), None, "{target}");
    }
    // A worktree of another directory.
    place.commit("a");
    place.git(&["worktree", "add", "--quiet", "-b", "other", "../w"]);
    let of_other = fs::read(place.path("w/.git")).unwrap();
    fs::write(&pointer, &of_other).unwrap();
    assert_eq!(facts(), None);
    // Control: the directory that the repository knows.
    assert!(Repository::of(&place.path("w")).facts(VcsParts::ALL).is_some());
}
