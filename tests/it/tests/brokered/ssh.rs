//! Git over ssh, by the user's own `ssh` outside: fetches, pushes against the fence, and policies.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, Tools, User, World};
use serde_json::{Value, json};

use super::pushes::{AT_ONCE, MAKE_LONG, Outcome, PRELUDE, changed, quoted, tried_by};
use super::{SECRET, SOURCE, before, folders, logs, marked, section, write_modules};
use crate::network::PROGRAM;

as_each_user!(
    only_permitted_references_move_over_ssh,
    git_fetches_over_ssh_without_a_key,
    a_policy_decides_about_ssh,
    a_server_that_takes_no_key_is_explained,
);

const SERVERS: &str = concat!(
    include_str!("../network/packages.py"),
    include_str!("git_server.py"),
    include_str!("servers.py")
);

/// What cannot reach the server in the same way over ssh, or is refused for another reason.
const OTHERWISE: &[(&str, Outcome)] = &[
    ("compressed as a whole", Outcome::Nowhere("cannot be read")),
    // There, the client has ended before the push did.
    ("a pack that is cut", Outcome::Nowhere("")),
];

/// Bodies by hand, for a connection that is not closed behind a push.
const ONE_CHANNEL: &[(&str, &str, Outcome)] = &[
    (
        "a second push behind the first",
        "raw 'open(\"good\", \"wb\").write(good + b\"0000\" + pack); open(\"evil\", \"wb\").write(evil + b\"0000\" + pack); \
         body = b\"0000\"'; ( cat good; sleep 1; cat evil ) | $GIT_SSH_COMMAND -p 2222 git@allowed.test \
         \"git-receive-pack '/git/pushed.git'\" | tr -d '\\0'; echo",
        Outcome::Moves(&["refs/heads/agent/raw"]),
    ),
    (
        "a second push at once",
        "raw 'open(\"both\", \"wb\").write(good + b\"0000\" + pack + evil + b\"0000\" + pack); body = b\"0000\"'; \
         $GIT_SSH_COMMAND -p 2222 git@allowed.test \"git-receive-pack '/git/pushed.git'\" < both | tr -d '\\0'; echo",
        Outcome::Nowhere("the push is not sent"),
    ),
];

/// Pushes that move something under a rule that permits all: the control of those that are refused.
const FREE: &[(&str, &str)] = &[
    ("git checkout -q -b x v1~1; change a; git push -qf origin x:agent/side", "refs/heads/agent/side"),
    ("git push -q origin :agent/old", "refs/heads/agent/old"),
    ("change a; git push -q origin HEAD:main", "refs/heads/main"),
    ("raw 'body = evil + b\"0000\" + pack'", "refs/heads/main"),
];

pub(super) const PREFIX: &str = "export S=ssh://git@allowed.test:2222\n";

pub(super) fn settings(refs: &[&str], is_free: bool) -> Value {
    let mut settings = super::settings();
    settings["network"]["pushes"] = json!([{
        "host": "allowed.test:2222", "repositories": ["git/pushed", "git/long"], "maxKib": 256, "refs": refs,
        "force": is_free, "delete": is_free, "secrets": is_free,
    }]);
    settings["credentials"]["ssh"] = json!([
        { "name": "forge-ssh", "host": "allowed.test:2222", "user": "git", "fetch": ["git/*"] },
    ]);
    settings
}

pub(super) const FENCE: &[&str] = &["refs/heads/agent/*", "refs/tags/agent-*", "refs/notes/commits"];

/// The user's own `ssh` of a machine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnSsh<'a> {
    /// Lines of its configuration that come first.
    pub(super) config: &'a str,
    /// A script that runs before it.
    pub(super) first: &'a str,
    /// The first directory of PATH.
    pub(super) path: Option<&'a Path>,
    /// The socket of an agent.
    pub(super) agent: Option<&'a Path>,
}

impl OwnSsh<'_> {
    /// Writes it, and returns its directory.
    fn write(&self, scene: &Scene) -> Result<PathBuf> {
        let own = scene.at("own-ssh");
        let key = match self.agent {
            Some(_) => String::new(),
            None => format!("IdentityFile {}/client_key\nIdentitiesOnly yes\n", scene.at("world").display()),
        };
        let config = format!(
            "{}{key}UserKnownHostsFile {}/known_hosts\nStrictHostKeyChecking accept-new\n",
            self.config,
            own.display()
        );
        scene.write(&own.join("config"), &config)?;
        let ssh = own.join("ssh");
        let script = format!(
            "#!/bin/sh\nOWN='{0}'\n{1}exec /usr/bin/ssh -F '{0}/config' \"$@\"\n",
            own.display(),
            self.first
        );
        scene.write(&ssh, &script)?;
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755))?;
        Ok(own)
    }
}

/// Runs a script inside, on a machine whose user has a key for the server.
pub(super) fn run(world: &World<'_>, scene: &Scene, settings: &Value, script: &str) -> Result<Finished> {
    run_with(world, scene, (settings, OwnSsh::default()), script)
}

/// Runs a script inside, on a machine with this `ssh`.
pub(super) fn run_with(
    world: &World<'_>,
    scene: &Scene,
    (settings, ssh): (&Value, OwnSsh<'_>),
    script: &str,
) -> Result<Finished> {
    let directory = scene.at("world");
    let path = prepare(scene, ssh)?;
    let own = scene.at("own-ssh");
    let mut settings = settings.clone();
    settings["filesystem"]["denyRead"] = json!([own, directory.join("client_key")]);
    let settings_file = scene.at("brokered.json");
    scene.write(&settings_file, &settings.to_string())?;
    let authority = directory.join("authority.pem");
    let mut variables = vec![
        (SOURCE, OsStr::new(SECRET)),
        ("SSL_CERT_FILE", authority.as_os_str()),
        ("PATH", OsStr::new(&path)),
    ];
    variables.extend(ssh.agent.map(|agent| ("SSH_AUTH_SOCK", agent.as_os_str())));
    world.run_under(&settings_file, &variables, script)
}

/// Prepares the servers of a world and the user's own `ssh`, and returns the PATH with it.
pub(super) fn prepare(scene: &Scene, ssh: OwnSsh<'_>) -> Result<String> {
    let directory = scene.at("world");
    let sshd = Tools::find()?.folders(&["sshd"])?.first().context("a folder")?.join("sshd");
    scene.write(&directory.join("sshd"), sshd.to_str().context("a path of text")?)?;
    scene.write(&directory.join("more.py"), SERVERS)?;
    write_modules(&directory, scene)?;
    let own = ssh.write(scene)?;
    let path = std::env::var("PATH")?;
    let first = ssh.path.map(|path| format!("{}:", path.display())).unwrap_or_default();
    Ok(format!("{first}{}:{path}", own.display()))
}

fn only_permitted_references_move_over_ssh(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    // Git inside may not write this setting.
    let mut making = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut making);
    Finished::run(making.args(["-c", MAKE_LONG]))?.ended_with(0)?;
    let all = [tried_by(user), ONE_CHANNEL.to_vec()].concat();
    for pushes in all.chunks(AT_ONCE) {
        let scripts: Vec<String> =
            pushes.iter().map(|(_, script, _)| format!("case_of {}", quoted(script))).collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let script = before(&folders()?) + PREFIX + PRELUDE + &marked(&scripts);
        let finished = run(&world, &scene, &settings(FENCE, false), &script)?;
        for (number, (name, _, outcome)) in pushes.iter().enumerate() {
            let other = OTHERWISE.iter().find(|(other, _)| other == name).map(|(_, outcome)| outcome);
            let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
            let moved = changed(output);
            match other.unwrap_or(outcome) {
                Outcome::Moves(names) => {
                    ensure!(moved == *names, "{name}: {moved:?}\n{output}\n{}", finished.stderr)
                }
                Outcome::Refused(reason) | Outcome::Nowhere(reason) => {
                    ensure!(moved.is_empty(), "{name}: {moved:?}\n{output}");
                    let said = format!("{output}{}", finished.stderr);
                    ensure!(said.contains(reason), "{name}: {output}\n{}", finished.stderr);
                }
            }
        }
    }
    if user == User::Ordinary {
        return Ok(());
    }
    let scripts: Vec<String> = FREE.iter().map(|(script, _)| format!("case_of {}", quoted(script))).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let script = before(&folders()?) + PREFIX + PRELUDE + &marked(&scripts);
    let finished = run(&world, &scene, &settings(&["refs/**"], true), &script)?;
    for (number, (_, name)) in FREE.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(changed(output) == [*name], "the control: {output}\n{}", finished.stderr);
    }
    Ok(())
}

fn git_fetches_over_ssh_without_a_key(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts = [
        "git clone -q $S/git/repo.git cloned && cat cloned/file",
        "git -c protocol.version=0 clone -q $S/git/repo.git zero && cat zero/file",
        "git -c protocol.version=1 clone -q $S/git/repo.git one && cat one/file",
        "git clone -q --depth 1 $S/git/repo.git part && cat part/file",
        "git archive --remote=$S/git/repo.git HEAD file | tar -xO",
        "git -c core.sshCommand=/bin/false ls-remote $S/git/repo.git >/dev/null && echo REACHED",
    ];
    let script = before(&folders()?) + PREFIX + &marked(&scripts) + "cat $KEY; ls $KEY\n";
    let script = format!("KEY={}/client_key\n{script}", scene.at("world").display());
    let finished = run(&world, &scene, &settings(FENCE, false), &script)?;
    for (number, script) in scripts.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains("REACHED"), "{script}: {output}\n{finished:#?}");
    }
    ensure!(!finished.stdout.contains("PRIVATE KEY"), "{finished:#?}");
    let commands = fs::read_to_string(scene.at("world").join("commands"))?;
    for wanted in
        ["version=2 git-upload-pack '/git/repo.git'", "version=1 git-upload-pack", "git-upload-archive"]
    {
        ensure!(commands.contains(wanted), "{commands}");
    }
    let log = logs(&scene)?;
    ensure!(log.contains("the credential `forge-ssh` goes into git-upload-pack"), "{log}");
    Ok(())
}

fn a_policy_decides_about_ssh(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut settings = settings(FENCE, false);
    settings["credentials"]["brokered"].as_array_mut().context("a list")?.remove(2);
    settings["credentials"]["ssh"][0]["name"] = json!("forge-key");
    settings["policies"] = json!([{ "use": "workspace" }, { "use": portcullis_it::guest("stages", user)? }]);
    let scripts = ["git ls-remote $S/git/guarded", "git ls-remote $S/git/repo.git && echo REACHED"];
    let finished = run(&world, &scene, &settings, &(before(&folders()?) + PREFIX + &marked(&scripts)))?;
    ensure!(
        section(&finished.stdout, 0)?.contains("the credential forge-key is not for this"),
        "{finished:#?}"
    );
    ensure!(section(&finished.stdout, 1)?.contains("REACHED"), "{finished:#?}");
    let commands = fs::read_to_string(scene.at("world").join("commands"))?;
    ensure!(!commands.contains("guarded"), "{commands}");
    Ok(())
}

fn a_server_that_takes_no_key_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut settings = settings(FENCE, false);
    settings["credentials"]["ssh"][0]["user"] = json!("stranger");
    let greeting = json!({ "name": "greeting", "host": "allowed.test:22" });
    settings["credentials"]["ssh"].as_array_mut().context("a list")?.push(greeting);
    let scripts = [
        "git ls-remote ssh://allowed.test:2222/git/repo.git",
        "git ls-remote ssh://git@allowed.test/git/repo.git",
    ];
    let finished = run(&world, &scene, &settings, &(before(&folders()?) + &marked(&scripts)))?;
    let refused = section(&finished.stdout, 0)?;
    ensure!(
        refused.contains("your own `ssh` could not connect") && refused.contains("ssh-add"),
        "{finished:#?}"
    );
    ensure!(section(&finished.stdout, 1)?.contains("in a terminal outside"), "{finished:#?}");
    Ok(())
}
