//! The fence around pushes, with git and with bodies made by hand: what moves at the server, with and without it.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::{SECRET, before, folders, marked, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(only_permitted_references_move);

pub(super) const PRELUDE: &str = include_str!("pushes.sh");

/// Makes a repository with a commit.
pub(super) const MAKE_LONG: &str = "git init -q --object-format=sha256 long && git -C long -c user.name=n -c user.email=e \
                         commit -q --allow-empty -m one";

/// How many pushes are made in one run, whose time is limited.
pub(super) const AT_ONCE: usize = 18;

/// What the fence does with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// These references move, with and without the fence.
    Moves(&'static [&'static str]),
    /// Nothing moves, and the reason has this text. Without the fence something moves.
    Refused(&'static str),
    /// Nothing moves, with and without the fence, since the server takes it for no push either.
    Nowhere(&'static str),
}
use Outcome::{Moves, Nowhere, Refused};

const NEW: &[&str] = &["refs/heads/agent/new"];
const OLD: &[&str] = &["refs/heads/agent/old"];
const RAW: &[&str] = &["refs/heads/agent/raw"];

pub(super) const PUSHES: &[(&str, &str, Outcome)] = &[
    ("a new branch", "change a; git push -q origin HEAD:refs/heads/agent/new", Moves(NEW)),
    (
        "a branch moved forward",
        "git checkout -q agent/old; change a; git push -q origin agent/old",
        Moves(OLD),
    ),
    (
        "a branch moved forward by a merge",
        "git checkout -q agent/old; change a; git merge -q -X ours -m m origin/main; git push -q origin agent/old",
        Moves(OLD),
    ),
    (
        "forced",
        "git checkout -q -b x v1~1; change a; git push -qf origin x:agent/side",
        Refused("does not follow"),
    ),
    (
        "forced with a lease",
        "git checkout -q -b x v1~1; change a; git push -q --force-with-lease origin x:agent/side",
        Refused("does not follow"),
    ),
    (
        "forced back to an earlier commit",
        "git push -q origin +v1~1:refs/heads/agent/side",
        Refused("does not follow"),
    ),
    ("a deletion", "git push -q origin :agent/old", Refused("would be deleted")),
    (
        "a deletion besides a new branch",
        "change a; git push -q origin HEAD:refs/heads/agent/new :agent/old",
        Refused("would be deleted"),
    ),
    ("a tag", "git tag agent-2; git push -q origin agent-2", Moves(&["refs/tags/agent-2"])),
    (
        "a tag with a message",
        "git tag -a -m m agent-2; git push -q origin agent-2",
        Moves(&["refs/tags/agent-2", "refs/tags/agent-2^{}"]),
    ),
    ("a tag that no rule is for", "git tag v2; git push -q origin v2", Refused("`refs/tags/v2`")),
    ("a tag moved", "git tag -f agent-1 v1~1; git push -qf origin agent-1", Refused("does not follow")),
    ("a branch that no rule is for", "change a; git push -q origin HEAD:main", Refused("`refs/heads/main`")),
    (
        "two branches, one of them forbidden",
        "change a; git push -q origin HEAD:refs/heads/agent/new HEAD:main",
        Refused("`refs/heads/main`"),
    ),
    (
        "two branches at once, one of them forbidden",
        "change a; git push -q --atomic origin HEAD:refs/heads/agent/new HEAD:main",
        Refused("`refs/heads/main`"),
    ),
    (
        "two branches",
        "change a; git push -q --atomic origin HEAD:refs/heads/agent/new HEAD:refs/heads/agent/two",
        Moves(&["refs/heads/agent/new", "refs/heads/agent/two"]),
    ),
    ("everything", "git push -q --mirror origin", Refused("no rule")),
    ("options", "change a; git push -q -o merge origin HEAD:refs/heads/agent/new", Refused("options")),
    (
        "signed",
        "ssh-keygen -q -t ed25519 -N '' -f key; change a; git -c gpg.format=ssh -c user.signingkey=key.pub \
         push -q --signed origin HEAD:refs/heads/agent/new",
        Refused("is signed"),
    ),
    (
        "from a shallow clone",
        "git clone -q --depth 1 $R shallow; cd shallow; change a; git push -q origin HEAD:refs/heads/agent/new",
        Refused("shallow clone"),
    ),
    ("no objects", "git push -q origin v1:refs/heads/agent/new", Moves(NEW)),
    (
        "a branch moved forward to a commit that the server has",
        "git push -q origin origin/main:refs/heads/agent/old",
        Refused("as far as the push shows"),
    ),
    (
        "a thin pack",
        "sed -i 1500s/line/other/ file; git commit -qam a; git push -q --thin origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "no thin pack",
        "sed -i 1500s/line/other/ file; git commit -qam a; git push -q --no-thin origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "a repository with alternates",
        "git clone -q --shared . shared; cd shared; change a; git push -q $R HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "a repository with SHA-256",
        "cd ../long; git push -q ${S:-$B}/git/long.git HEAD:refs/heads/agent/new",
        Refused("SHA-1"),
    ),
    (
        "more than the rule allows",
        "head -c 300000 /dev/urandom > large; git add large; git commit -qm a; git push -q origin HEAD:refs/heads/agent/new",
        Refused("larger"),
    ),
    (
        "a credential in a new file",
        "change \"TOKEN=ghp_$(printf 'aB3d%.0s' 1 2 3 4 5 6 7 8 9)\"; git push -q origin HEAD:refs/heads/agent/new",
        Refused("a GitHub token"),
    ),
    (
        "a credential in a changed file",
        "sed -i \"1500s/.*/ghp_$(printf 'aB3d%.0s' 1 2 3 4 5 6 7 8 9)/\" file; git commit -qam a; git push -q origin HEAD:refs/heads/agent/new",
        Refused("a GitHub token"),
    ),
    (
        "a name with other characters",
        "change a; git push -q origin \"HEAD:refs/heads/agent/\u{e9}-\\$(x)'#%2e\"",
        Moves(&["refs/heads/agent/\u{e9}-$(x)'#%2e"]),
    ),
    ("a review", "change a; git push -q origin HEAD:refs/for/main", Refused("`refs/for/main`")),
    ("notes", "git notes add -m n; git push -q origin refs/notes/commits", Moves(&["refs/notes/commits"])),
    (
        "protocol 0",
        "change a; git -c protocol.version=0 push -q origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "protocol 1",
        "change a; git -c protocol.version=1 push -q origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "protocol 2",
        "change a; git -c protocol.version=2 push -q origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "in chunks",
        "head -c 100000 /dev/urandom > f; git add f; git commit -qm a; git -c http.postBuffer=1000 push -q origin HEAD:refs/heads/agent/new",
        Moves(NEW),
    ),
    (
        "another repository",
        "change a; git push -q ${S:-$B}/git/other.git HEAD:refs/heads/agent/new",
        Refused("no rule in `network.pushes` is for"),
    ),
    (
        "another repository behind dots",
        "change a; git push -q ${S:-$B}/git/pushed.git/%2e%2e/other.git HEAD:refs/heads/agent/new",
        Nowhere("in different ways"),
    ),
    ("by hand", "raw pass", Moves(RAW)),
    ("by hand, another branch", "raw 'body = evil + b\"0000\" + pack'", Refused("`refs/heads/main`")),
    (
        "another branch after the end of the commands",
        "raw 'body = good + b\"0000\" + evil + b\"0000\" + pack'",
        Nowhere("the push is not sent"),
    ),
    (
        "another branch behind the objects",
        "raw 'body = body + evil + b\"0000\" + pack'",
        Refused("cannot be read"),
    ),
    (
        "another branch behind a zero byte",
        "raw 'body = good[:-1] + evil + b\"0000\" + pack'",
        Nowhere("the push is not sent"),
    ),
    (
        "another branch in the capabilities",
        "raw 'body = line(good[4:] + b\"\\0\" + evil[4:]) + b\"0000\" + pack'",
        Moves(RAW),
    ),
    (
        "another branch first, with a length that lies",
        "raw 'body = b\"0004\" + evil + good + b\"0000\" + pack'",
        Nowhere("the push is not sent"),
    ),
    (
        "a delimiter",
        "raw 'body = evil + b\"0001\" + good + b\"0000\" + pack'",
        Nowhere("the push is not sent"),
    ),
    ("a length in capitals", "raw 'body = good[:4].upper() + good[4:] + b\"0000\" + pack'", Moves(RAW)),
    (
        "a length with a sign",
        "raw 'body = b\"+\" + good[1:] + b\"0000\" + pack'",
        Nowhere("the push is not sent"),
    ),
    (
        "ids in capitals",
        "raw 'body = update(main.upper(), new.upper(), \"refs/heads/main\", caps) + b\"0000\" + pack'",
        Refused("no change of a reference"),
    ),
    (
        "compressed as a whole",
        "raw 'body = gzip.compress(evil + b\"0000\" + pack)' 'Content-Encoding: gzip'",
        Refused("compressed"),
    ),
    ("a pack that is cut", "raw 'body = good + b\"0000\" + pack[:-25]'", Nowhere("the push is not sent")),
];

fn fenced() -> Value {
    let mut settings = settings();
    let entry = json!({
        "host": "allowed.test:9443", "repositories": ["git/pushed", "git/long"], "maxKib": 256,
        "refs": ["refs/heads/agent/*", "refs/tags/agent-*", "refs/notes/commits"],
    });
    settings["network"]["pushes"] = json!([entry]);
    settings
}

fn with_password(mut settings: Value) -> Value {
    settings["credentials"]["brokered"][1]["variables"] = json!(["FORGE_PASSWORD"]);
    settings
}

/// Returns the names of the references that a case has changed.
pub(super) fn changed(output: &str) -> Vec<&str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("CHANGED "));
    let mut names: Vec<&str> = lines.filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn only_permitted_references_move(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    // Git inside may not write this setting.
    let mut making = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut making);
    Finished::run(making.args(["-c", MAKE_LONG]))?.ended_with(0)?;
    let pushes = tried_by(user);
    let fence = Fence {
        prelude: PRELUDE.to_owned(),
        fenced: with_password(fenced()),
        free: with_password(settings()),
    };
    for pushes in pushes.chunks(AT_ONCE) {
        judge(&scene, &world, pushes, &fence)?;
    }
    Ok(())
}

/// What pushes are tried with.
pub(super) struct Fence {
    /// What a script begins with.
    pub(super) prelude: String,
    /// Settings with the fence, and without.
    pub(super) fenced: Value,
    pub(super) free: Value,
}

/// Returns the pushes that a user tries. Each tries every second one; with `PORTCULLIS_EVERY_TASK` (`cargo xtask test
/// --full`), each tries all.
pub(super) fn tried_by(user: User) -> Vec<(&'static str, &'static str, Outcome)> {
    let tries_all = std::env::var_os("PORTCULLIS_EVERY_TASK").is_some();
    let own = usize::from(user == User::Ordinary);
    let all = PUSHES.iter().enumerate();
    all.filter(|(place, _)| tries_all || place % 2 == own).map(|(_, push)| *push).collect()
}

/// Runs some pushes with and without the fence, and compares what moved.
pub(super) fn judge(
    scene: &Scene,
    world: &World<'_>,
    pushes: &[(&str, &str, Outcome)],
    Fence { prelude, fenced, free }: &Fence,
) -> Result<()> {
    let scripts: Vec<String> =
        pushes.iter().map(|(_, script, _)| format!("case_of {}", quoted(script))).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let script = before(&folders()?) + prelude + &marked(&scripts);
    let finished = run_with(world, scene, fenced, &script)?;
    let free = run_with(world, scene, free, &script)?;
    for (number, (name, _, outcome)) in pushes.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        let control = section(&free.stdout, number).with_context(|| format!("{free:#?}"))?;
        let moved = changed(output);
        match outcome {
            Moves(names) => {
                ensure!(moved == *names, "{name}: {moved:?}\n{output}\n{}", finished.stderr);
                ensure!(changed(control) == *names, "{name}, the control: {control}");
            }
            Refused(reason) | Nowhere(reason) => {
                ensure!(moved.is_empty(), "{name}: {moved:?}\n{output}");
                let said = format!("{output}{}", finished.stderr);
                ensure!(said.contains(reason), "{name}: {output}\n{}", finished.stderr);
                let is_control = matches!(outcome, Refused(_));
                ensure!(changed(control).is_empty() != is_control, "{name}, the control: {control}");
            }
        }
    }
    ensure!(!finished.stdout.contains(SECRET) && !finished.stderr.contains(SECRET), "{finished:#?}");
    Ok(())
}

pub(super) fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}
