//! Tests of the user's `ssh`, which the host starts outside the sandbox: commands make it execute nothing, and it ends
//! with them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User, World};

use super::ssh::{FENCE, OwnSsh, PREFIX, run, run_with, settings};
use super::{before, folders, marked, section};
use crate::network::PROGRAM;

as_each_user!(
    no_program_of_a_command_runs_outside,
    the_users_configuration_opens_nothing,
    the_agent_stays_outside,
    a_changed_key_of_the_server_is_explained,
    ssh_ends_with_the_command,
    few_run_at_once,
);

const REACHED: &str = "git ls-remote $S/git/repo.git > /dev/null && echo REACHED";

/// A program that connects standard input and output with a host, as `ProxyCommand` has it.
const RELAY: &str = "#!/usr/bin/env python3\n\
    import os, socket, sys, threading\n\
    open(os.path.dirname(os.path.abspath(__file__)) + '/started', 'w').close()\n\
    there = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n\
    def pump(source, sink):\n\
    \x20   while piece := source(65536): sink(piece)\n\
    threading.Thread(target=pump, args=(lambda size: os.read(0, size), there.sendall), daemon=True).start()\n\
    pump(there.recv, lambda piece: os.write(1, piece))\n";

fn write_relay(scene: &Scene, directory: &Path) -> Result<()> {
    scene.write(&directory.join("relay"), RELAY)?;
    Ok(fs::set_permissions(directory.join("relay"), fs::Permissions::from_mode(0o755))?)
}

fn no_program_of_a_command_runs_outside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    // The user's PATH begins with a directory of the project, as with `npm run`.
    let (of_project, own) = (scene.project().join("bin"), scene.at("own-ssh"));
    write_relay(&scene, &own)?;
    let ssh = OwnSsh { config: "ProxyCommand relay %h %p\n", path: Some(&of_project), ..OwnSsh::default() };
    let planted = format!(
        "mkdir bin; cat > bin/relay <<'END'\n{RELAY}END\nchmod +x bin/relay; bin/relay allowed.test 2222 < /dev/null; ls bin; rm -f bin/started"
    );
    let scripts = [planted.as_str(), REACHED];
    let finished = run_with(
        &world,
        &scene,
        (&settings(FENCE, false), ssh),
        &(before(&folders()?) + PREFIX + &marked(&scripts)),
    )?;
    ensure!(
        section(&finished.stdout, 0)?.contains("started"),
        "the control, which runs inside: {finished:#?}"
    );
    ensure!(section(&finished.stdout, 1)?.contains("REACHED"), "{finished:#?}");
    ensure!(own.join("started").exists() && !of_project.join("started").exists(), "{finished:#?}");
    Ok(())
}

/// A configuration that opens more than git needs.
const OPEN: &str = "ForwardAgent yes\nForwardX11 yes\nControlMaster auto\nControlPersist 60\nLogLevel DEBUG3\n\
    PermitLocalCommand yes\nLocalCommand touch %d/local-command\nRequestTTY force\n\
    LocalForward 127.0.0.1:7001 127.0.0.1:7002\nEscapeChar ~\n";

/// What is in force in place of it, as `ssh -G` writes it.
const CLOSED: &[&str] = &[
    "forwardagent no",
    "forwardx11 no",
    "controlmaster false",
    "loglevel INFO",
    "permitlocalcommand no",
    "requesttty false",
    "clearallforwardings yes",
    "batchmode yes",
    "escapechar none",
];

fn the_users_configuration_opens_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let own = scene.at("own-ssh");
    let config = format!("{OPEN}ControlPath {}/m-%C\n", own.display());
    let first = "/usr/bin/ssh -G -F \"$OWN/config\" \"$@\" > \"$OWN/in-force\"\n\
                 set -- $$ $(cat /proc/$$/stat) -- \"$@\"; echo \"$1 $7\" > \"$OWN/session\"\n\
                 while [ \"$1\" != -- ]; do shift; done; shift\n";
    let ssh = OwnSsh { config: &config, first, ..OwnSsh::default() };
    let script = before(&folders()?) + PREFIX + &marked(&[&format!("{REACHED} 2>&1")]);
    let finished = run_with(&world, &scene, (&settings(FENCE, false), ssh), &script)?;
    ensure!(section(&finished.stdout, 0)?.contains("REACHED"), "{finished:#?}");
    ensure!(!finished.stdout.contains("debug") && !finished.stderr.contains("debug"), "{finished:#?}");
    let in_force = fs::read_to_string(own.join("in-force"))?;
    let plain = Command::new("/usr/bin/ssh")
        .arg("-G")
        .arg("-F")
        .arg(own.join("config"))
        .arg("allowed.test")
        .output()?;
    let plain = String::from_utf8(plain.stdout)?;
    for wanted in CLOSED {
        ensure!(in_force.lines().any(|line| line == *wanted), "{wanted}: {in_force}");
        ensure!(!plain.lines().any(|line| line == *wanted), "the control, {wanted}: {plain}");
    }
    let masters = fs::read_dir(&own)?.filter_map(Result::ok);
    ensure!(masters.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("m-")));
    let session = fs::read_to_string(own.join("session"))?;
    let (process, leader) = session.trim().split_once(' ').context("two numbers")?;
    ensure!(process == leader, "it can ask at the user's terminal: {session}");
    Ok(())
}

/// An agent, which ends with the test.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn the_agent_stays_outside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    // Where OpenSSH makes it.
    let socket = scene.home().join(".ssh/agent");
    scene.write(&socket.with_extension("txt"), "")?;
    // A first run makes the key of the user.
    let prefix = before(&folders()?) + PREFIX;
    run(&world, &scene, &settings(FENCE, false), &(prefix.clone() + REACHED))?;
    let mut agent = scene.user().command("/usr/bin/ssh-agent".as_ref());
    agent.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
    let _agent = Agent(agent.spawn()?);
    Deadline::start().until("the agent", || Ok(socket.exists().then_some(())))?;
    let mut add = scene.user().command("/usr/bin/ssh-add".as_ref());
    let added = add.arg(scene.at("world").join("client_key")).env("SSH_AUTH_SOCK", &socket).output()?;
    ensure!(added.status.success(), "{added:?}");
    let connect = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{0}\"); print(\"CONNECTED\")'; ssh-add -l; \
         SSH_AUTH_SOCK={0} ssh-add -l; env | grep -c '^SSH_'; ls -d /tmp/ssh-* {0}",
        socket.display()
    );
    let through = "$GIT_SSH_COMMAND -A -p 2222 git@allowed.test \"git-upload-pack '/git/none'\"; GIT_SSH_COMMAND='ssh -A -o BatchMode=yes' git ls-remote $S/git/repo.git";
    let scripts = [REACHED, connect.as_str(), through];
    let ssh = OwnSsh { agent: Some(&socket), ..OwnSsh::default() };
    let finished = run_with(&world, &scene, (&settings(FENCE, false), ssh), &(prefix + &marked(&scripts)))?;
    ensure!(section(&finished.stdout, 0)?.contains("REACHED"), "the agent is used outside: {finished:#?}");
    let inside = section(&finished.stdout, 1)?;
    ensure!(!inside.contains("CONNECTED") && !inside.contains("SHA256"), "{inside}");
    ensure!(inside.contains("\n0\n") || inside.starts_with("0\n"), "no variable names it: {inside}");
    ensure!(!section(&finished.stdout, 2)?.contains("refs/heads"), "{finished:#?}");
    Ok(())
}

fn a_changed_key_of_the_server_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let prefix = before(&folders()?) + PREFIX;
    let known = run(&world, &scene, &settings(FENCE, false), &(prefix.clone() + REACHED))?;
    ensure!(known.stdout.contains("REACHED"), "the control: {known:#?}");
    let mut make = scene.user().command("/usr/bin/ssh-keygen".as_ref());
    let other = scene.at("own-ssh").join("other");
    ensure!(make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&other).status()?.success());
    let key = fs::read_to_string(other.with_extension("pub"))?;
    scene.write(&scene.at("own-ssh").join("known_hosts"), &format!("[allowed.test]:2222 {key}"))?;
    let finished = run(&world, &scene, &settings(FENCE, false), &(prefix + REACHED + " 2>&1"))?;
    ensure!(!finished.stdout.contains("REACHED"), "{finished:#?}");
    let said = format!("{}{}", finished.stdout, finished.stderr);
    ensure!(said.contains("is not the one that you know"), "{finished:#?}");
    Ok(())
}

fn ssh_ends_with_the_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts = [
        "git ls-remote $S/git/endless.git; sleep 3",
        "timeout 3 git ls-remote $S/git/hang.git; sleep 3",
        "( exec 3<>/dev/tcp/allowed.test/2222; printf 'portcullis-git/1\\0git\\0\\0git-upload-pack '\"'/git/hang.git'\"'\\0' >&3; head -c 4000000 /dev/zero >&3 & sleep 3; kill $! ); sleep 3",
        REACHED,
    ];
    let script = before(&folders()?) + PREFIX + &marked(&scripts);
    let finished = run(&world, &scene, &settings(FENCE, false), &script)?;
    ensure!(section(&finished.stdout, 3)?.contains("REACHED"), "{finished:#?}");
    let commands = fs::read_to_string(scene.at("world").join("commands"))?;
    let services = commands.lines().map(|line| line.rsplit('/').next().unwrap_or(line));
    let order: Vec<&str> = services.collect();
    let wanted =
        ["endless.git'", "endless ended", "hang.git'", "hang ended", "hang.git'", "hang ended", "repo.git'"];
    ensure!(order == wanted, "{commands}\n{finished:#?}");
    Ok(())
}

/// How many may run at once.
const AT_ONCE: usize = 16;

fn few_run_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let own = scene.at("own-ssh");
    let first = "echo + >> \"$OWN/running\"; /usr/bin/ssh -F \"$OWN/config\" \"$@\"; status=$?\n\
                 echo - >> \"$OWN/running\"; exit $status\n";
    let ssh = OwnSsh { first, ..OwnSsh::default() };
    let many =
        "for i in $(seq 24); do git ls-remote $S/git/slow.git 2>&1 | grep -c 'this is slow' & done; wait";
    let script = before(&folders()?) + PREFIX + &marked(&[many]);
    let finished = run_with(&world, &scene, (&settings(FENCE, false), ssh), &script)?;
    let answered = section(&finished.stdout, 0)?.lines().filter(|line| *line == "1").count();
    ensure!(answered == 24, "{finished:#?}");
    let (mut running, mut most) = (0_usize, 0);
    for line in fs::read_to_string(own.join("running"))?.lines() {
        running = if line == "+" { running + 1 } else { running.saturating_sub(1) };
        most = most.max(running);
    }
    ensure!((2..=AT_ONCE).contains(&most), "{most} at once");
    Ok(())
}
