//! Attempts to use the user's `ssh` for more than git, each next to a use that works.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};

use super::ssh::{FENCE, PREFIX, run, settings};
use super::{before, folders, marked, section};
use crate::network::PROGRAM;

as_each_user!(the_users_ssh_carries_git_only);

/// Says bytes to the gate as the client of git does, with zero bytes for `@`.
const SAY: &str = "say() { exec 3<>/dev/tcp/allowed.test/2222; printf '%s' \"$1\" | tr @ '\\000' >&3; \
                   timeout 5 cat <&3 | tr -d '\\000'; exec 3>&-; }\n";

/// Attempts, with what is said about them.
const ATTACKS: &[(&str, &str, &str)] = &[
    ("a command", "$GIT_SSH_COMMAND -p 2222 git@allowed.test id", "only git can use it"),
    ("a shell", "$GIT_SSH_COMMAND -p 2222 git@allowed.test 'sh -c id'", "only git can use it"),
    (
        "another program for the upload",
        "git fetch-pack --upload-pack='touch pwned; git-upload-pack' $S/git/repo.git",
        "only git can use it",
    ),
    (
        "a command behind the repository",
        "$GIT_SSH_COMMAND -p 2222 git@allowed.test \"git-upload-pack '/git/repo.git'; touch pwned\"",
        "not one quoted word",
    ),
    (
        "a command in the repository",
        "$GIT_SSH_COMMAND -p 2222 git@allowed.test \"git-upload-pack /git/\\$(touch pwned)\"",
        "not one quoted word",
    ),
    (
        "characters of a shell in a quoted name",
        "git ls-remote \"$S/git/\\$(touch pwned)'; touch pwned #\"",
        "",
    ),
    (
        "an option as the repository",
        "say \"portcullis-git/1@git@@git-upload-pack '--strict'@\"",
        "in different ways",
    ),
    ("another repository", "git ls-remote $S/other/repo.git", "does not have"),
    ("another user", "git ls-remote ssh://root@allowed.test:2222/git/repo.git", "for the user `root`"),
    (
        "an option as the user",
        "say \"portcullis-git/1@-oProxyCommand=id@@git-upload-pack '/git/repo.git'@\"",
        "user name",
    ),
    (
        "an option as the host",
        "git -c protocol.ext.allow=always ls-remote 'ssh://-oProxyCommand=touch pwned/git/repo.git'",
        "strange hostname",
    ),
    (
        "options of the client",
        "$GIT_SSH_COMMAND -oProxyCommand='touch pwned' -A -L 1:a:1 -p 2222 git@allowed.test \"git-upload-pack '/git/none'\"",
        "",
    ),
    (
        "another version of the protocol",
        "GIT_PROTOCOL='version=2:x' $GIT_SSH_COMMAND -p 2222 git@allowed.test \"git-upload-pack '/git/repo.git'\"",
        "another version",
    ),
    (
        "a zero byte in the repository",
        "say \"portcullis-git/1@git@@git-upload-pack '/git/re@po.git'@\"",
        "not one quoted word",
    ),
    ("another port", "git ls-remote ssh://git@allowed.test:2223/git/repo.git", ""),
    (
        "git's other ways to name a client",
        "GIT_SSH_COMMAND= GIT_SSH=/usr/bin/ssh git ls-remote $S/git/repo.git",
        "",
    ),
    (
        "a configuration of its own",
        "printf 'Host forge\\nHostName allowed.test\\nPort 2222\\nUser git\\nBatchMode yes\\nForwardAgent yes\\n' > config; \
         GIT_SSH_COMMAND=\"ssh -F $PWD/config\" git ls-remote forge:git/repo.git; git ls-remote forge:git/repo.git",
        "",
    ),
    ("the plain client", "ssh -o BatchMode=yes -p 2222 git@allowed.test id", ""),
    ("the plain client for git", "GIT_SSH_COMMAND=ssh git ls-remote $S/git/repo.git", ""),
    ("bytes of another protocol", "say 'SSH-2.0-mine'", "other programs have no key"),
    (
        "a request with more in it",
        "say \"portcullis-git/1@git@@git-upload-pack '/git/repo.git'\nid@\"",
        "not one quoted",
    ),
    (
        "a request that is too long",
        "say \"portcullis-git/1@$(head -c 9000 /dev/zero | tr '\\0' a)\"",
        "other programs",
    ),
];

fn the_users_ssh_carries_git_only(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let reached = "git ls-remote $S/git/repo.git > /dev/null && echo REACHED";
    let by_hand =
        "say \"portcullis-git/1@git@@git-upload-pack '/git/repo.git'@\" | head -c 4000 | grep -c HEAD";
    let scripts: Vec<&str> = ATTACKS.iter().map(|(_, script, _)| *script).chain([reached, by_hand]).collect();
    let script = before(&folders()?) + PREFIX + SAY + &marked(&scripts) + "ls pwned\n";
    let finished = run(&world, &scene, &settings(FENCE, false), &script)?;
    for (number, (name, _, wanted)) in ATTACKS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        let said = format!("{output}{}", finished.stderr);
        let has_reached = output.contains("uid=") || output.contains("refs/heads");
        ensure!(said.contains(wanted) && !has_reached, "{name}: {output}\n{}", finished.stderr);
    }
    ensure!(section(&finished.stdout, ATTACKS.len())?.contains("REACHED"), "the control: {finished:#?}");
    ensure!(section(&finished.stdout, ATTACKS.len() + 1)?.trim() != "0", "by hand: {finished:#?}");
    ensure!(!scene.project().join("pwned").exists(), "{finished:#?}");
    for command in fs::read_to_string(scene.at("world").join("commands"))?.lines() {
        let is_git = command.contains("git-upload-pack '/git/");
        ensure!(is_git && !command.contains("--strict") && !command.contains("other"), "{command}");
    }
    Ok(())
}
