//! The access of a contained pi to the user's terminal, and how it ends: a hostile program in the place of pi.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, Terminal, User};
use rustix::process::{Pid, Signal, kill_process};

as_each_user!(
    the_users_terminal_stays_outside,
    who_does_not_read_keys_keeps_no_question_open,
    who_leaves_the_door_leaves_nothing_behind,
    who_ignores_signals_is_ended,
    no_repository_is_left_among_the_sessions
);

/// Reports which of its descriptors are terminals, and writes to both outputs.
const LOOKS: &str =
    "for fd in 0 1 2; do if [ -t $fd ]; then echo $fd >&3; fi; done 3> seen; echo said; echo told >&2";
/// Makes the terminal send more input than the program reads, and tries to write outside.
const DEAF: &str = "stty raw -echo; : > begun; until [ -e go ]; do sleep 0.05; done; \
    if echo x > OUTSIDE/made; then echo written > end; else echo refused > end; fi";
/// Makes repositories and start-up files in the directory of its sessions.
const PLANTS: &str = "[ \"$1\" = --version ] && { echo 1.5.2; exit; }
    cd \"$(find ~/.pi/agent/sessions -mindepth 1 -type d | head -1)\" && echo session > s.jsonl && mkdir s.jsonl.lock
    repository() { mkdir -p $1 $1/objects $1/refs; echo ref: refs/heads/m > $1/HEAD
      printf '[core]\nrepositoryformatversion = 0\nfsmonitor = \"touch ~/RAN; false\"\n' > $1/config; }
    repository .git; repository .; repository d; repository d/.git; echo x > .envrc; mv d e; true";
const STUBBORN: &str = "trap '' HUP INT TERM; : > begun; while :; do sleep 0.05; done";

/// A scene in which `pi` is a shell script.
pub(super) fn with_pi(user: User, script: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    program(&scene, "pi", script)?;
    Ok(scene)
}

fn program(scene: &Scene, name: &str, script: &str) -> Result<()> {
    let path = scene.bin().join(name);
    scene.write(&path, &format!("#!/bin/bash\n{script}\n"))?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
}

/// Whichever of the standard streams is not a terminal, the others do not give access to the user's terminal inside.
fn the_users_terminal_stays_outside(user: User) -> Result<()> {
    for (redirect, known, shown) in
        [("< /dev/null", "1\n2\n", ["said", "told"]), ("> out", "0\n2\n", ["told", "told"])]
    {
        let scene = with_pi(user, LOOKS)?;
        program(&scene, "redirected", &format!("exec \"$@\" {redirect}"))?;
        let words = scene.bin().join("redirected").display().to_string();
        let seen = || fs::read_to_string(scene.project().join("seen")).context("what it has seen");
        let (code, text) = Terminal::start_through(&scene, &[&words], &["pi", "-p", "go"])?.end()?;
        ensure!(code == 0 && seen()? == known, "the control: {code} {text} {}", seen()?);
        let (code, text) =
            Terminal::start_through(&scene, &[&words], &["pi", "--contain", "-p", "go"])?.end()?;
        ensure!(code == 0 && seen()?.is_empty(), "{redirect}: {code} {text} {}", seen()?);
        ensure!(shown.iter().all(|word| text.contains(word)), "{redirect}: {text}");
    }
    Ok(())
}

fn who_does_not_read_keys_keeps_no_question_open(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    program(&scene, "pi", &DEAF.replace("OUTSIDE", &scene.outside().display().to_string()))?;
    let mut terminal = Terminal::start(&scene, &["pi", "--contain"])?;
    Deadline::start().until("the beginning", || Ok(scene.project().join("begun").exists().then_some(())))?;
    terminal.press(&"x".repeat(400_000))?;
    scene.write(&scene.project().join("go"), "")?;
    terminal.wait_for("outside of pi")?;
    terminal.wait_for("\r\n> ")?;
    terminal.press("n\r")?;
    let end =
        Deadline::start().until("the end", || Ok(fs::read_to_string(scene.project().join("end")).ok()))?;
    ensure!(end == "refused\n" && !scene.outside().join("made").exists(), "{end}");
    Ok(())
}

/// A client that stops reading and then sends an invalid message.
const LEAVES: &str = r#"mkfifo in out frames
"$PORTCULLIS_HOST" serve < in > out 3> frames 2> /dev/null & client=$!
exec 4> in 5< out 6< frames
say() { echo "{ \"jsonrpc\": \"2.0\", \"id\": $1, \"method\": \"$2\", \"params\": { $3 } }" | tr -d '\n' >&4; echo >&4; }
say 1 hello '"protocol": 1, "client": { "name": "x", "version": "0" }, "piVersion": "1.5.2", "mode": "rpc",
    "interactive": true, "cwd": "'"$PWD"'", "agentDir": "/x", "sessionId": "s", "projectTrusted": true'
read -r answer <&5
say 2 exec '"callId": "c", "stream": 1, "script": ": > started; exec SLEEP", "cwd": "'"$PWD"'",
    "env": { "PATH": "/usr/bin:/bin" }, "origin": "agent"'
until [ -e go ]; do sleep 0.05; done
exec 5<&- 6<&-
echo nonsense >&4
wait $client
: > left
sleep 600"#;

fn who_leaves_the_door_leaves_nothing_behind(user: User) -> Result<()> {
    let sleep = portcullis_it::processes::long_sleep();
    let scene = with_pi(user, &LEAVES.replace("SLEEP", &sleep))?;
    let mut command: Command = scene.portcullis_command(&["pi", "--contain", "-p", "go"])?;
    let mut host = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let sessions = || {
        Ok::<_, anyhow::Error>(fs::read_dir(scene.home().join(".local/state/portcullis/sessions"))?.count())
    };
    let is_there = |name: &'static str| {
        let path = scene.project().join(name);
        Deadline::start().until(name, || Ok(path.exists().then_some(())))
    };
    let attacked = (|| {
        is_there("started")?;
        portcullis_it::processes::wait_running(&sleep).context("the control: its command runs")?;
        let before = sessions()?;
        scene.write(&scene.project().join("go"), "")?;
        is_there("left")?;
        portcullis_it::processes::wait_gone(&sleep)?;
        Deadline::start().until("its session to be gone", || Ok((sessions()? < before).then_some(())))
    })();
    kill_process(Pid::from_child(&host), Signal::TERM)?;
    host.wait()?;
    attacked
}

fn who_ignores_signals_is_ended(user: User) -> Result<()> {
    let scene = with_pi(user, STUBBORN)?;
    let mut command: Command = scene.portcullis_command(&["pi", "--contain", "-p", "go"])?;
    let mut host = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = || Ok(scene.project().join("begun").exists().then_some(()));
    let ended = Deadline::start().until("the beginning", begun).and_then(|()| {
        let id = Pid::from_child(&host);
        // The control: the process survives a signal.
        kill_process(id, Signal::INT)?;
        std::thread::sleep(std::time::Duration::from_millis(300));
        ensure!(host.try_wait()?.is_none(), "it does not ignore signals");
        kill_process(id, Signal::TERM)?;
        Deadline::start().until("the end", || Ok(host.try_wait()?))
    });
    let _ended_already = host.kill();
    let status = ended?;
    ensure!(!status.success(), "{status}");
    portcullis_it::processes::wait_scene_gone(&scene, |_| false)
}

/// The user's git or shell may be started in the directory of a session. The control is a pi that is not contained.
fn no_repository_is_left_among_the_sessions(user: User) -> Result<()> {
    for is_contained in [true, false] {
        let scene = with_pi(user, PLANTS)?;
        scene.write(&scene.home().join(".pi/agent/settings.json"), "{}")?;
        let sessions = scene.home().join(".pi/agent/sessions");
        if !is_contained {
            scene.write(&sessions.join("--p--/older.jsonl"), "")?;
        }
        let words = if is_contained { &["pi", "--contain", "-p", "go"][..] } else { &["pi", "-p", "go"] };
        let told = Finished::run(&mut scene.portcullis_command(words)?)?;
        let of_the_project = fs::read_dir(&sessions)?.next().context("a directory")??.path();
        ensure!(of_the_project.join("s.jsonl").is_file(), "{told:#?}");
        let status = "git status; cd d 2>/dev/null && git status; cd ../e 2>/dev/null && git status; true";
        let mut shell = user.command("sh".as_ref());
        scene.enter(&mut shell);
        Finished::run(shell.args(["-c", status]).current_dir(&of_the_project))?;
        let has_run = scene.home().join("RAN").exists();
        ensure!(has_run != is_contained, "contained: {is_contained}: {told:#?}");
        ensure!(is_contained != of_the_project.join(".envrc").exists(), "{told:#?}");
    }
    Ok(())
}
