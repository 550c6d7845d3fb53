//! Attacks by commands of the agent on pi itself, on its host, and on the files and channels around them: under
//! `portcullis pi`, and in a contained pi. The control makes the same attempts on the same processes from outside, as
//! the same user, and succeeds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes;
use portcullis_it::script::{bash, expecting, expecting_no, say, turns};
use portcullis_it::{Deadline, Finished, Launch, PiVersion, Scene, User, script};

as_each_user!(under_portcullis, beside_a_contained_pi, kills_that_name_everybody, the_terminal_of_pi);

/// An attack: a name, and a script that exits with 0 if it succeeds. It changes nothing, so that pi can continue.
type Attack = (&'static str, &'static str);

/// Attacks on the process `$P`.
#[rustfmt::skip]
const ON_A_PROCESS: &[Attack] = &[
    ("seen", "[ -d /proc/$P ]"),
    ("signals", "kill -0 $P"),
    ("tracing", "perl -e 'exit !(syscall(101, 0x4206, 0 + $ENV{P}, 0, 0) == 0)'"),
    ("its memory, through its file", r#"perl -e 'open M, "/proc/$ENV{P}/maps"; ($at) = map { /^([0-9a-f]+)-\S+ r/ ? hex $1 : () } <M>;
        open F, "+<", "/proc/$ENV{P}/mem" or exit 1; sysseek F, $at, 0; exit !(sysread(F, $b, 16) == 16)'"#),
    ("its memory, by a call", r#"perl -e 'open M, "/proc/$ENV{P}/maps"; ($at) = map { /^([0-9a-f]+)-\S+ r/ ? hex $1 : () } <M>;
        $b = "x" x 16; $here = pack("QQ", unpack("Q", pack("p", $b)), 16); $there = pack("QQ", $at, 16);
        exit !(syscall(310, 0 + $ENV{P}, $here, 1, $there, 1, 0) == 16)'"#),
    ("its environment", "tr '\\0' '\\n' < /proc/$P/environ | grep -q hunter2"),
    ("its root", "ls /proc/$P/root/"),
    ("its directory", "ls /proc/$P/cwd/"),
    ("its descriptors", "ls -l /proc/$P/fd/0"),
    ("a descriptor opened anew", "for f in /proc/$P/fd/*; do (exec 3<>$f) && exit 0; done; exit 1"),
    ("a descriptor taken over", "perl -e '$p = syscall(434, 0 + $ENV{P}, 0); for (0 .. 40) { syscall(438, $p, $_, 0) >= 0 and exit 0 } exit 1'"),
    ("its priority", "perl -e '$n = getpriority(0, $ENV{P}); exit !(-d qq(/proc/$ENV{P}) && setpriority(0, $ENV{P}, $n))'"),
    ("its limits", "perl -e '$old = q(x) x 16; exit !(syscall(302, 0 + $ENV{P}, 7, 0, $old) == 0)'"),
    ("its processors", "perl -e '$m = qq(\\0) x 128; $n = syscall(204, 0 + $ENV{P}, 128, $m); exit !($n > 0 && syscall(203, 0 + $ENV{P}, $n, $m) == 0)'"),
    ("its end when memory is short", ": >> /proc/$P/oom_score_adj"),
    ("its name", ": >> /proc/$P/comm"),
];

/// Attacks on their surroundings.
#[rustfmt::skip]
const AROUND: &[Attack] = &[
    ("pi's settings", ": >> ~/.pi/agent/settings.json"),
    ("pi's keys", "grep -q hunter2 ~/.pi/agent/auth.json"),
    ("where pi sends what is said", ": >> ~/.pi/agent/models.json"),
    ("a new extension", "mkdir -p ~/.pi/agent/extensions && : >> ~/.pi/agent/extensions/new.ts"),
    ("what was said in this project", ": >> ~/.pi/agent/sessions/$OWN/s.jsonl"),
    ("what was said elsewhere", "grep -q hunter2 ~/.pi/agent/sessions/--elsewhere--/s.jsonl"),
    ("the extension between pi and the host", ": >> $EXTENSION"),
    ("the program that is found as pi", ": >> $BIN/pi"),
    ("what the host keeps of its sessions", "ls ~/.local/state/portcullis/sessions/*/"),
    ("the log", "ls ~/.local/state/portcullis/audit/"),
    ("the rules", ": >> ~/.pi/agent/sandbox/default.json"),
    ("the machine's temporary files", "grep -q hunter2 $SHARED"),
];

/// Only a contained pi has this socket.
const HANDOFF_SOCKET: Attack = (
    "the socket of the host",
    r#"perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => $ENV{HANDOFF})'"#,
);

/// Returns the attacks that apply to the processes of a run of pi.
fn all_attacks(is_contained: bool) -> Vec<(String, Option<&'static str>, &'static str)> {
    let on = |whose: &'static str, variable| {
        ON_A_PROCESS.iter().map(move |(name, script)| (format!("{name} ({whose})"), Some(variable), *script))
    };
    let socket = is_contained.then_some(&HANDOFF_SOCKET);
    let around = AROUND.iter().chain(socket).map(|(name, script)| ((*name).to_owned(), None, *script));
    on("pi", "PI").chain(on("the host", "HOST")).chain(around).collect()
}

/// Returns a bash script that waits for the file `targets`, tries all attacks, and prints a line for each.
fn attacking(attacks: &[(String, Option<&'static str>, &'static str)]) -> String {
    let mut script = "until [ -s targets ]; do sleep 0.05; done; . ./targets\n\
        attack() { s=$(cat); if (eval \"$s\") </dev/null >/dev/null 2>&1; then echo \"$1: reached\"; else echo \"$1: held\"; fi; }\n"
        .to_owned();
    for (name, target, attack) in attacks {
        if let Some(variable) = target {
            script.push_str(&format!("export P=${variable}\n"));
        }
        script.push_str(&format!("attack '{}' <<'END'\n{attack}\nEND\n", name.replace('\'', "’")));
    }
    script
}

fn under_portcullis(user: User) -> Result<()> {
    attacked(user, PiVersion::V0_74, false)
}

fn beside_a_contained_pi(user: User) -> Result<()> {
    attacked(user, PiVersion::V1_5, true)
}

fn attacked(user: User, version: PiVersion, is_contained: bool) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = prepared(&scene)?;
    let attacks = all_attacks(is_contained);
    let program = scene.project().join("attack.sh");
    scene.write(&program, &attacking(&attacks))?;
    let model = turns([
        (
            "attack",
            vec![
                bash("bash attack.sh > inside; echo over"),
                expecting("over", bash("env; ls /proc/self/fd | wc -l")),
                // One of the descriptors of `ls` is the directory that it reads.
                expecting(
                    "\n4\\s*$",
                    expecting_no("hunter2|PORTCULLIS_(HANDOFF|HOST|PATH)", say("attacked")),
                ),
            ],
        ),
        ("go on", vec![bash("echo sum-$((40+2))"), expecting("sum-42", say("done"))]),
    ]);
    let launch = match is_contained {
        true => Launch::contained(&scene, version, &model)?,
        false => Launch::guarded(&scene, version, &model)?,
    };
    let shared = tempfile::NamedTempFile::new_in("/tmp")?;
    fs::write(shared.path(), "hunter2")?;
    user.own(shared.path())?;
    let mut pi = launch.variable("OPENAI_API_KEY", "hunter2").rpc()?;
    pi.prompt("attack")?;
    let around = Around::find(&scene, is_contained)?;
    let targets = around.targets(&scene, &own, shared.path())?;
    // Renamed as a whole, because the script starts as soon as the file has content.
    scene.write(&scene.at("targets"), &targets)?;
    fs::rename(scene.at("targets"), scene.project().join("targets"))?;
    pi.wait_for("agent_end")?;

    let inside = fs::read_to_string(scene.project().join("inside"))?;
    let mut control = user.command("bash".as_ref());
    scene.enter(&mut control);
    let control = Finished::run(control.arg(&program))?.ended_with(0)?;
    for (name, ..) in &attacks {
        let name = name.replace('\'', "’");
        let says = |text: &str, what: &str| text.lines().any(|line| line == format!("{name}: {what}"));
        ensure!(says(&control.stdout, "reached"), "the control: `{name}` does not work: {control:#?}");
        ensure!(says(&inside, "held"), "`{name}` came through, or was not tried: {inside}");
    }
    pi.prompt("go on")?;
    pi.wait_for("agent_end")?;
    ensure!(pi.close()?.success(), "an expectation was not met");
    processes::wait_scene_gone(&scene, |_| false)
}

/// `kill -9 -1` means every process that may be signalled: those of the command. In the control a pid namespace keeps
/// it from all others.
fn kills_that_name_everybody(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let other = processes::long_sleep();
    let mut control = user.command("unshare".as_ref());
    control.args(["--user", "--map-root-user", "--pid", "--fork", "--", "sh", "-c"]);
    scene.enter(control.arg(format!("{other} & p=$!; kill -9 -1; wait $p; echo then $?")));
    let control = Finished::run(&mut control)?;
    ensure!(control.stdout == "then 137\n", "the control killed nothing: {control:#?}");

    let model = script([
        bash("kill -9 -1; echo still"),
        expecting("still", bash("echo sum-$((40+2))")),
        expecting("sum-42", say("done")),
    ]);
    for launch in [
        Launch::guarded(&scene, PiVersion::V0_74, &model)?,
        Launch::contained(&scene, PiVersion::V1_5, &model)?,
    ] {
        launch.print("go")?.ended_unattended()?;
    }
    Ok(())
}

/// Text written to, or typed into, the user's terminal is read by the user or by a program there. Neither commands of
/// the agent nor processes of a contained pi have that terminal.
fn the_terminal_of_pi(user: User) -> Result<()> {
    let attacks = [
        ("painted".to_owned(), None, "printf painted-it > $TERMINAL"),
        (
            "any painted".to_owned(),
            None,
            "for t in /dev/pts/[0-9]*; do printf painted-it > $t && exit 0; done; exit 1",
        ),
        (
            "typed".to_owned(),
            None,
            "perl -e 'open T, q(+<), $ENV{TERMINAL} or exit 1; $key = q(x); exit !ioctl(T, 0x5412, $key)'",
        ),
    ];
    for is_contained in [false, true] {
        let scene = Scene::new(user)?;
        let program = scene.project().join("attack.sh");
        scene.write(&program, &attacking(&attacks))?;
        // Like a server for tools.
        let extension = scene.at("other/starts.ts");
        scene.write(&extension, STARTS)?;
        let model = turns([("attack", vec![bash("bash attack.sh > inside; echo over"), say("attacked")])]);
        let launch = match is_contained {
            true => Launch::contained(&scene, PiVersion::V1_5, &model)?
                .with(["-e".into(), extension.into_os_string()]),
            false => Launch::guarded(&scene, PiVersion::V0_74, &model)?,
        };
        let screen = launch.screen()?;
        let terminal = screen.terminal()?;
        // As a login gives it to the user.
        user.own(&terminal)?;
        scene.write(&scene.at("targets"), &format!("export TERMINAL='{}'\n", terminal.display()))?;
        fs::rename(scene.at("targets"), scene.project().join("targets"))?;
        screen.wait_for(if is_contained { "pi contained" } else { "Portcullis on" })?;
        screen.enter("attack")?;
        screen.wait_for("attacked")?;
        let reports: &[&str] = if is_contained { &["inside", "by-extension"] } else { &["inside"] };
        for report in reports {
            let report = scene.project().join(report);
            let said = Deadline::start().until("a report", || Ok(fs::read_to_string(&report).ok()))?;
            ensure!(said.matches(": held").count() == attacks.len(), "{}: {said}", report.display());
        }
        ensure!(!screen.text()?.contains("painted-it"), "{}", screen.text()?);

        let mut control = user.command("bash".as_ref());
        scene.enter(&mut control);
        let control = Finished::run(control.arg(&program))?.ended_with(0)?;
        let mut works = control.stdout.lines().filter(|line| line.ends_with(": reached"));
        // Only root can type into another terminal.
        let is_root = rustix::process::geteuid().is_root() && !user.is_stranger();
        ensure!(works.clone().count() == if is_root { 3 } else { 2 }, "the control: {control:#?}");
        ensure!(works.all(|line| is_root || !line.starts_with("typed")), "{control:#?}");
        // pi may paint over it, once it gets a key.
        screen.wait("what came through", |text| {
            text.contains("painted-it") || text.lines().any(|line| line == "x")
        })?;
    }
    Ok(())
}

/// An extension that starts the script, and keeps its output.
const STARTS: &str = r#"
import { spawn } from "node:child_process";
export default function (pi) {
  pi.on("session_start", () => {
    spawn("sh", ["-c", "bash attack.sh > new && mv new by-extension"], { stdio: "ignore" });
  });
}
"#;

/// Creates all targets of attacks around pi; returns the name of the directory of its own sessions.
fn prepared(scene: &Scene) -> Result<String> {
    let project = scene.project().display().to_string();
    let own = format!("--{}--", project.trim_start_matches('/').replace('/', "-"));
    let agent = scene.home().join(".pi/agent");
    for (name, text) in [
        ("auth.json", r#"{ "scripted": { "type": "api_key", "key": "hunter2" } }"#),
        ("sandbox/default.json", SETTINGS),
        (&format!("sessions/{own}/s.jsonl"), "{}\n"),
        ("sessions/--elsewhere--/s.jsonl", "hunter2\n"),
    ] {
        scene.write(&agent.join(name), text)?;
    }
    Ok(own)
}

const SETTINGS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] }, "filesystem": { "denyRead": ["/home"],
    "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } }"#;

/// The processes of a running pi.
struct Around {
    pi: u32,
    host: u32,
}

impl Around {
    fn find(scene: &Scene, is_contained: bool) -> Result<Self> {
        // pi starts this process whether contained or not; if contained, it only connects to the host.
        let client = processes::host_of(scene)?;
        let pi = parent(client.id)?;
        let host = if is_contained { processes::container_of(scene)? } else { client };
        Ok(Self { pi, host: host.id })
    }

    /// Returns the data for the script, as lines of a shell.
    fn targets(&self, scene: &Scene, own: &str, shared: &Path) -> Result<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.pi))?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let socket =
            environment.split('\0').find_map(|variable| variable.strip_prefix("PORTCULLIS_HANDOFF="));
        let variables = [
            ("PI", self.pi.to_string()),
            ("HOST", self.host.to_string()),
            ("OWN", own.to_owned()),
            ("EXTENSION", extension(&scene.home().join(".local/share/portcullis"))?.display().to_string()),
            ("BIN", scene.bin().display().to_string()),
            ("SHARED", shared.display().to_string()),
            ("HANDOFF", socket.unwrap_or_default().to_owned()),
        ];
        Ok(variables.map(|(name, value)| format!("export {name}='{value}'\n")).concat())
    }
}

/// Returns the parent of a process.
fn parent(id: u32) -> Result<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).context("a parent")?;
    Ok(line.trim().parse()?)
}

/// Returns the path of the extension that `portcullis pi` has written.
fn extension(below: &Path) -> Result<PathBuf> {
    let mut left = vec![below.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.ends_with("index.ts") {
                return Ok(path);
            }
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    anyhow::bail!("no extension lies below `{}`", below.display())
}
