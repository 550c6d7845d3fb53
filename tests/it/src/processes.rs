//! Finds the running processes of a scene.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;

use crate::{Deadline, Scene};

/// The time that terminated processes may take to end.
const LAST_MOMENTS: Duration = Duration::from_secs(20);

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: u32,
    /// Its command line, with the words separated by spaces.
    pub command_line: String,
}

/// Returns a command that sleeps for ten minutes, with a unique command line.
#[must_use]
pub fn long_sleep() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // `sleep` adds its arguments; the second one only serves as a mark.
    format!("sleep 600 0.{}9{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until a process with exactly this command line runs, and returns it.
///
/// # Errors
///
/// When there is none by the deadline.
pub fn wait_running(command_line: &str) -> anyhow::Result<Process> {
    let exact = |process: &Process| process.command_line == command_line;
    let wanted = format!("a process `{command_line}`");
    Deadline::start().until(&wanted, || Ok(all()?.into_iter().find(exact)))
}

/// Returns the running processes whose command line contains `text`.
///
/// # Errors
///
/// When `/proc` cannot be listed.
pub fn with_text(text: &str) -> anyhow::Result<Vec<Process>> {
    let matching = |process: &Process| process.command_line.contains(text);
    Ok(all()?.into_iter().filter(matching).collect())
}

/// Returns the running processes that have the scene's home in their environment or its paths on their command line:
/// all that were started in it, even detached ones, unless they have cleared their environment.
///
/// # Errors
///
/// If `/proc` cannot be listed.
pub fn of_scene(scene: &Scene) -> anyhow::Result<Vec<Process>> {
    let home = scene.home();
    of_root(home.parent().context("a home lies in its scene")?)
}

fn of_root(root: &Path) -> anyhow::Result<Vec<Process>> {
    Ok(all()?.into_iter().filter(|process| belongs(process, root)).collect())
}

/// Gives the processes of the scene at `root` a moment to end, so that they write nothing while the scene is removed.
/// A test may keep some of them longer than its terminal.
pub(crate) fn await_end_of_scene(root: &Path) {
    let is_over = || Ok(of_root(root)?.is_empty().then_some(()));
    let _kept = Deadline::after(Duration::from_secs(3)).until("the end of a terminal's processes", is_over);
}

/// Waits until all processes of a scene have ended except those for which `stays` returns true: ending takes a moment.
///
/// # Errors
///
/// If some are left at the deadline; the error names them.
pub fn wait_scene_gone(scene: &Scene, stays: impl Fn(&Process) -> bool) -> anyhow::Result<()> {
    let mut left = Vec::new();
    let gone = Deadline::after(LAST_MOMENTS).until("the end of a scene's processes", || {
        left = of_scene(scene)?;
        left.retain(|process| !stays(process));
        Ok(left.is_empty().then_some(()))
    });
    gone.with_context(|| format!("still running: {left:?}"))
}

/// Returns the host that serves the pi of `scene`, once it runs.
///
/// # Errors
///
/// When there is none by the deadline.
pub fn host_of(scene: &Scene) -> anyhow::Result<Process> {
    let serves = |process: &Process| process.command_line.contains("portcullis serve");
    await_host(scene, serves)
}

/// Returns the host that holds the contained pi of `scene`, once it runs.
///
/// # Errors
///
/// When there is none by the deadline.
pub fn container_of(scene: &Scene) -> anyhow::Result<Process> {
    // The program that starts the model has the whole command line as its own.
    let holds = |process: &Process| {
        let line = &process.command_line;
        line.contains("portcullis pi --contain") && !line.contains("model.mjs")
    };
    await_host(scene, holds)
}

fn await_host(scene: &Scene, is_host: impl Fn(&Process) -> bool) -> anyhow::Result<Process> {
    let mut seen = Vec::new();
    let host = Deadline::start().until("the host", || {
        seen = of_scene(scene)?;
        Ok(seen.iter().find(|process| is_host(process)).cloned())
    });
    host.with_context(|| format!("seen instead: {seen:?}"))
}

/// Waits until `process` has ended.
///
/// # Errors
///
/// When it is still there at the deadline.
pub fn wait_end(process: &Process) -> anyhow::Result<()> {
    let wanted = format!("the end of {process:?}");
    Deadline::start().until(&wanted, || Ok((!all()?.contains(process)).then_some(())))
}

/// Waits until no process matches `text`.
///
/// # Errors
///
/// If some are left at the deadline; the error names them.
pub fn wait_gone(text: &str) -> anyhow::Result<()> {
    let mut left = Vec::new();
    let gone = Deadline::start().until("the end of processes", || {
        left = with_text(text)?;
        Ok(left.is_empty().then_some(()))
    });
    gone.with_context(|| format!("still running: {left:?}"))
}

fn belongs(process: &Process, root: &Path) -> bool {
    let root = root.as_os_str().as_bytes();
    let environment = fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
    let holds = |bytes: &[u8]| bytes.windows(root.len()).any(|window| window == root);
    holds(&environment) || holds(process.command_line.as_bytes())
}

fn all() -> anyhow::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("listing `/proc`")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end between the listing and the read; zombies have no command line.
        let Ok(words) = fs::read(format!("/proc/{id}/cmdline")) else { continue };
        if words.is_empty() || id == std::process::id() {
            continue;
        }
        let text = String::from_utf8_lossy(&words).replace('\0', " ");
        found.push(Process { id, command_line: text.trim_end().to_owned() });
    }
    Ok(found)
}
