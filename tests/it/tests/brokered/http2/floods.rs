//! Floods: what is cheap to send costs the host neither memory nor the time of others.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User, World, processes};

use super::{run, section, settings};
use crate::network::PROGRAM;

as_each_user!(floods_are_bounded);

const FRAMES: &str = include_str!("frames.py");
const FLOODS: &str = include_str!("floods.py");

/// How much the host may grow, in KiB, under all floods together.
const GROWTH_MAX: u64 = 64 * 1024;
/// How long an ordinary request may take meanwhile, in seconds. The machine of the tests is busy.
const SLOWEST: f64 = 15.0;

/// Floods that end the connection.
const CLOSED: &[&str] = &[
    "requests that are withdrawn",
    "settings",
    "settings that change",
    "pings",
    "answers to pings",
    "priorities",
    "frames of an unknown kind",
    "empty continuations",
    "long continuations",
    "empty data",
    "padded empty data",
    "malformed requests",
    "a long field, a thousand times",
    "a head that drips",
    "no greeting at all",
];

/// Floods that only keep the client's own connection busy.
const HARMLESS: &[&str] = &[
    "tiny data",
    "windows",
    "tables that grow and shrink",
    "streams that do not end",
    "requests as fast as possible",
    "answers without a window",
    "answers that are not read",
    "a huge table",
    "too many streams",
];

fn floods_are_bounded(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("frames.py"), FRAMES)?;
    scene.write(&scene.project().join("floods.py"), FLOODS)?;
    let begun = scene.project().join("begun");
    let ended = scene.project().join("ended");
    let go = scene.project().join("go");
    let stop = scene.project().join("stop");
    // One request of each kind comes first, so that what is counted is the flood.
    let script = "RAW_TOKEN=$STREAMS_TOKEN python3 frames.py 9456 0.1 >/dev/null; touch begun; \
                  while [ ! -e go ]; do sleep 0.1; done; RAW_TOKEN=$STREAMS_TOKEN python3 floods.py; touch ended; \
                  while [ ! -e stop ]; do sleep 0.1; done";
    let (finished, before, after) = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&world, &scene, &settings(), &[script]));
        let measured = (|| {
            let deadline = Deadline::start();
            deadline.until("the first requests", || Ok(begun.exists().then_some(())))?;
            let host = host(&scene)?;
            let before = peak(host)?;
            scene.write(&go, "")?;
            while !ended.exists() && !running.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            Ok::<_, anyhow::Error>((before, peak(host)?))
        })();
        scene.write(&go, "")?;
        scene.write(&stop, "")?;
        let finished = running.join().ok().context("the run panicked")??;
        let (before, after) = measured.with_context(|| format!("{finished:#?}"))?;
        Ok::<_, anyhow::Error>((finished, before, after))
    })?;
    let output = section(&finished.stdout, 0).with_context(|| format!("{finished:#?}"))?;
    let line = |name: &str| {
        let line = output.lines().find(|line| line.split(" | ").next() == Some(name));
        line.with_context(|| format!("{name}: {output}\n{}", finished.stderr))
    };
    for name in CLOSED {
        ensure!(line(name)?.contains("| closed"), "{}\n{output}", line(name)?);
    }
    for name in HARMLESS {
        line(name)?;
    }
    line("long heads of HTTP/1.1")?;
    ensure!(line("many connections")?.ends_with("| 16 24 True"), "{output}");
    for name in ["a head that drips", "no greeting at all"] {
        let seconds: f64 = line(name)?.rsplit(' ').next().context("seconds")?.parse()?;
        ensure!((20.0..50.0).contains(&seconds), "{output}");
    }
    let slowest: f64 = line("slowest")?.rsplit(' ').next().context("seconds")?.parse()?;
    ensure!(slowest < SLOWEST, "an ordinary request took {slowest} s: {output}");
    ensure!(after - before < GROWTH_MAX, "the host grew from {before} to {after} KiB: {output}");
    Ok(())
}

/// Returns the process of the host.
fn host(scene: &Scene) -> Result<u32> {
    let is_host = |one: &processes::Process| one.command_line.contains("run --ask deny --settings");
    let mut hosts: Vec<u32> =
        processes::of_scene(scene)?.into_iter().filter(is_host).map(|one| one.id).collect();
    hosts.sort_unstable();
    let is_named = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == "portcullis")
    };
    hosts.into_iter().find(is_named).context("no host runs")
}

/// Returns the most memory that a process has had, in KiB.
fn peak(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse()?)
}
