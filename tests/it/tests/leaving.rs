//! Turning the sandbox off, step by step, and every way in which pi and its host can end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes::{self, Process};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns};
use portcullis_it::{Deadline, Launch, PiVersion, Scene, Screen, User, script};
use rustix::process::Signal;

on_each_pi!(
    turning_off_undoes_everything,
    a_reload_forgets_answers,
    pi_is_told_to_end,
    pi_is_killed,
    its_host_is_killed,
    print_mode_ends_with_the_answer,
);

/// The five effects that turning off must undo according to `@oddsjam/pi-sandbox`, each checked separately in one
/// session.
fn turning_off_undoes_everything(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.home().join("notes");
    scene.write(&notes, "hunter1")?;
    let asked = |name| {
        (name, vec![read(&notes.display().to_string()), expecting("hunter1", say(&format!("{name} over")))])
    };
    let refused = vec![read(&notes.display().to_string()), expecting_no("hunter1", say("third over"))];
    let script = turns([
        asked("first"),
        asked("second"),
        ("third", refused),
        (
            "told",
            vec![
                bash("echo 'bash: /x: Operation not permitted'; echo sum-$((40+2))"),
                expecting("sum-42", say("told over")),
            ],
        ),
    ]);
    let plain = facts_of_plain_pi(version, user)?;
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on")?;
    let host = processes::host_of(&scene)?;
    let pi = parent_of(&host)?;
    let caught = signals(pi)?;
    screen.enter("first")?;
    screen.wait_for("[s]    For this session")?;
    screen.press_calmly("s")?;
    screen.wait_for("first over")?;

    toggle(&screen, "→ Disable sandbox", "Portcullis OFF")?;
    // 1. Turning off waited for the end of the host, and with it of the sandbox.
    ensure!(!processes::of_scene(&scene)?.contains(&host), "the host outlived the toggle");
    ensure!(sessions(&scene)?.is_empty(), "{:?}", sessions(&scene)?);
    // 3. Neither tool calls nor the output of commands are checked.
    screen.enter("second")?;
    screen.wait_for("second over")?;
    screen.enter("told")?;
    screen.wait_for("told over")?;
    ensure!(!screen.text()?.contains("For this session"), "{}", screen.text()?);
    // 4. The environment is the one that pi was started with. 5. Portcullis catches no signal.
    let off = facts(&scene, &screen)?;
    ensure!(off.names == plain.names, "environment: {:?} {:?}", off.names, plain.names);
    ensure!(signals(pi)? == caught && caught == plain.signals, "signals: {caught:x} {:x}", plain.signals);

    // 2. Grants from before are forgotten.
    toggle(&screen, "→ Enable sandbox", "Portcullis on")?;
    screen.enter("third")?;
    screen.wait_for("[s]    For this session")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("third over")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// `/reload` starts a new host, which forgets the grants for the session.
fn a_reload_forgets_answers(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.home().join("notes");
    scene.write(&notes, "hunter1")?;
    let path = notes.display().to_string();
    let script = turns([
        ("first", vec![read(&path), expecting("hunter1", say("first over"))]),
        ("second", vec![read(&path), expecting_no("hunter1", say("second over"))]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on")?;
    let host = processes::host_of(&scene)?;
    screen.enter("first")?;
    screen.wait_for("[s]    For this session")?;
    screen.press_calmly("s")?;
    screen.wait_for("first over")?;
    screen.enter("/reload")?;
    screen.wait_for("Reloaded ")?;
    let is_gone = || Ok((!processes::of_scene(&scene)?.contains(&host)).then_some(()));
    Deadline::start().until("the end of the first host", is_gone)?;
    screen.enter("second")?;
    screen.wait_for("[s]    For this session")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("second over")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

fn toggle(screen: &Screen, entry: &str, footer: &str) -> Result<()> {
    screen.enter("/sandbox")?;
    screen.wait_for(entry)?;
    screen.press("Enter")?;
    screen.wait_for(footer)?;
    Ok(())
}

/// What a command of pi can observe about pi.
struct Facts {
    names: Vec<String>,
    signals: u64,
}

fn facts_of_plain_pi(version: PiVersion, user: User) -> Result<Facts> {
    let scene = Scene::new(user)?;
    let screen = Launch::plain(&scene, version, &script([say("hello")]))?.screen()?;
    screen.wait_for("scripted")?;
    let facts = facts(&scene, &screen)?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(facts)
}

fn facts(scene: &Scene, screen: &Screen) -> Result<Facts> {
    let file = scene.outside().join("facts");
    // The output goes to a file, so that the terminal cannot wrap it; the shell that runs it is pi's own.
    let script =
        format!("{{ echo $PPID; env -0 | cut -z -d= -f1 | tr '\\0' '\\n'; }} > '{}'", file.display());
    scene.write(&scene.outside().join("tell"), &script)?;
    screen.enter("!. ../outside/tell; echo sum-$((50+2))")?;
    screen.wait_for("sum-52")?;
    let text = std::fs::read_to_string(&file)?;
    let (pi, names) = text.split_once('\n').context("a number and names")?;
    // `portcullis pi` tells pi in these variables where its host is, before pi starts.
    let kept = |name: &&str| !name.starts_with("PORTCULLIS_");
    let mut names: Vec<String> = names.lines().filter(kept).map(str::to_owned).collect();
    names.sort();
    Ok(Facts { names, signals: signals(pi.trim().parse()?)? })
}

/// Returns the signals that a process catches, as a bit mask without SIGCHLD, whose handler comes and goes with
/// children.
fn signals(process: u32) -> Result<u64> {
    const OF_CHILDREN: u64 = 1 << 16;
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.context("the signals that are caught")?.trim(), 16)?;
    Ok(caught & !OF_CHILDREN)
}

/// SIGINT, SIGTERM and SIGHUP, each while a command runs in its sandbox.
fn pi_is_told_to_end(version: PiVersion, user: User) -> Result<()> {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (scene, _pi, running) = busy(version, user)?;
        // A second signal during the shutdown changes nothing.
        for _ in 0..2 {
            drop(kill(running.pi, signal));
        }
        nothing_is_left(&scene, &running).with_context(|| format!("after {signal:?}"))?;
    }
    Ok(())
}

fn pi_is_killed(version: PiVersion, user: User) -> Result<()> {
    let (scene, _pi, running) = busy(version, user)?;
    kill(running.pi, Signal::KILL)?;
    nothing_is_left(&scene, &running)
}

fn its_host_is_killed(version: PiVersion, user: User) -> Result<()> {
    let (scene, pi, running) = busy(version, user)?;
    let before = sessions(&scene)?;
    ensure!(!before.is_empty(), "a session has a directory");
    kill(running.host.id, Signal::KILL)?;
    // The extension removes what the killed host left, and starts another one.
    processes::wait_end(&running.host)?;
    processes::wait_gone(&running.sleep)?;
    let is_swept = || Ok(sessions(&scene)?.iter().all(|left| !before.contains(left)).then_some(()));
    Deadline::start().until("the sweeping", is_swept)?;
    drop(pi);
    nothing_is_left(&scene, &running)
}

/// The processes of a session with a running command.
struct Running {
    pi: u32,
    host: Process,
    sleep: String,
}

/// Starts pi with a command that has made files in its `/tmp` and sleeps; other terminals can connect to the session.
fn busy(version: PiVersion, user: User) -> Result<(Scene, portcullis_it::Rpc, Running)> {
    let scene = Scene::new(user)?;
    let sleep = processes::long_sleep();
    let script = script([
        bash(&format!("mkdir -p /tmp/a/b; echo x > /tmp/a/b/c; echo y > made; {sleep}")),
        say("never"),
    ]);
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    pi.prompt("go")?;
    processes::wait_running(&sleep)?;
    let host = processes::host_of(&scene)?;
    ensure!(sessions(&scene)?.iter().any(|session| session.join("control").exists()), "a socket");
    let running = Running { pi: parent_of(&host)?, host, sleep };
    Ok((scene, pi, running))
}

/// Checks that no process, mount, socket or file is left, except the files that the command was allowed to make.
fn nothing_is_left(scene: &Scene, running: &Running) -> Result<()> {
    processes::wait_gone(&running.sleep)?;
    processes::wait_scene_gone(scene, |_| false)?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let root = scene.project().parent().context("a scene")?.display().to_string();
    ensure!(!mounts.contains(&root), "a mount is left: {mounts}");
    let sockets = std::fs::read_to_string("/proc/net/unix")?;
    ensure!(!sockets.contains(&root), "a socket is left: {sockets}");
    ensure!(sessions(scene)?.is_empty(), "left: {:?}", sessions(scene)?);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(scene.project())? {
        names.push(entry?.file_name());
    }
    ensure!(names == ["made"], "ghosts in the project: {names:?}");
    Ok(())
}

/// `pi -p` ends as soon with Portcullis as without it: the extension does not keep its event loop alive.
fn print_mode_ends_with_the_answer(version: PiVersion, user: User) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(3);
    let scene = Scene::new(user)?;
    let script = script([bash("echo sum-$((40+2))"), expecting("sum-42", say("done"))]);
    let finished = Launch::guarded(&scene, version, &script)?.print("go")?.ended_unattended()?;
    let lingered = finished.lingered()?;
    ensure!(lingered < AT_ONCE, "it went on for {lingered:?} after the answer");
    processes::wait_scene_gone(&scene, |_| false)?;
    ensure!(sessions(&scene)?.is_empty());
    Ok(())
}

fn sessions(scene: &Scene) -> Result<Vec<PathBuf>> {
    let directory = scene.home().join(".local/state/portcullis/sessions");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

fn parent_of(process: &Process) -> Result<u32> {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.id.to_string()).join("status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.context("a parent")?.trim().parse().context("a number")
}

fn kill(process: u32, signal: Signal) -> Result<()> {
    let id = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw).context("a process id")?;
    Ok(rustix::process::kill_process(id, signal)?)
}
