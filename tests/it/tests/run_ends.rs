//! `portcullis run` ends when it gets a signal to end, however its command reacts.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portcullis_it::{Scene, User, processes};
use rustix::process::{Pid, Signal, kill_process};

as_each_user!(a_command_that_ends_itself_is_waited_for, a_command_that_does_not_end_is_killed);

/// Starts a command and waits until it has made the file `ready`.
fn started(scene: &Scene, script: &str) -> Result<Child> {
    let ready = scene.project().join("ready");
    let mut child = scene.portcullis_command(&["run", "--", "bash", "-c", script])?.spawn()?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while !ready.exists() {
        ensure!(Instant::now() < deadline && child.try_wait()?.is_none(), "the command has not begun");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn tell(child: &Child, signal: Signal) -> Result<()> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process id")?;
    Ok(kill_process(id, signal)?)
}

/// The control: `run` waits for a command that ends itself.
fn a_command_that_ends_itself_is_waited_for(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = "trap 'sleep 1; exit 7' TERM; touch ready; while :; do sleep 0.1; done";
    let mut child = started(&scene, script)?;
    tell(&child, Signal::TERM)?;
    let status = child.wait()?;
    ensure!(status.code() == Some(7), "{status} {:?}", status.signal());
    Ok(())
}

fn a_command_that_does_not_end_is_killed(user: User) -> Result<()> {
    for (script, signal) in [
        ("trap '' TERM HUP INT; touch ready; while :; do sleep 0.1; done", Signal::TERM),
        ("trap '' TERM HUP INT; touch ready; while :; do sleep 0.1; done", Signal::HUP),
        ("touch ready; kill -STOP $$", Signal::TERM),
    ] {
        let scene = Scene::new(user)?;
        let mut child = started(&scene, script)?;
        tell(&child, signal)?;
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "`{script}` goes on after {signal:?}");
            thread::sleep(Duration::from_millis(50));
        }
        let left = processes::of_scene(&scene)?;
        ensure!(left.is_empty(), "{left:?}");
    }
    Ok(())
}
