//! The result of a program that has ended.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::{Deadline, Launch};

/// The output and end of a program.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
    /// The requests that the model received; empty without a model.
    pub requests: Vec<Value>,
    /// When it ended.
    pub ended_at: SystemTime,
}

impl Finished {
    pub(crate) fn of(launch: Launch<'_>) -> anyhow::Result<Self> {
        let mut finished = Self::run(&mut launch.command()?)?;
        finished.requests = Launch::requests(&launch.log)?;
        Ok(finished)
    }

    /// Runs `command` to its end with nothing on its standard input.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not end in time; then its process group is killed.
    pub fn run(command: &mut Command) -> anyhow::Result<Self> {
        Self::run_until(Deadline::start(), command)
    }

    /// Runs `command` like [`Self::run`], until a deadline of the test's own.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not end in time; then its process group is killed.
    pub fn run_until(deadline: Deadline, command: &mut Command) -> anyhow::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        // Files, so that a surviving process cannot hold a pipe open and block this.
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).process_group(0);
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let waited = deadline.until("the end of the program", || Ok(child.try_wait()?));
        let (stdout, stderr) = (text_of(&mut stdout)?, text_of(&mut stderr)?);
        let Ok(status) = waited else {
            kill_group(&mut child);
            anyhow::bail!("{command:?} did not end\nstdout: {stdout}\nstderr: {stderr}");
        };
        Ok(Self { status, stdout, stderr, requests: Vec::new(), ended_at: SystemTime::now() })
    }

    /// Returns the exit code, or 128 + n for a death by signal n, as a shell does.
    #[must_use]
    pub fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// Returns `self` if the program ended with exit code `code`.
    ///
    /// # Errors
    ///
    /// If it did not; the error contains all its output.
    pub fn ended_with(self, code: i32) -> anyhow::Result<Self> {
        anyhow::ensure!(self.code() == code, "exit code {} instead of {code}\n{self:#?}", self.code());
        Ok(self)
    }

    /// Returns `self` if pi without an interface ended as it should: with 126 if a question was refused without a user,
    /// which it reports, otherwise with 0.
    ///
    /// # Errors
    ///
    /// If it ended otherwise; the error contains all its output.
    pub fn ended_unattended(self) -> anyhow::Result<Self> {
        const REFUSED: i32 = 126;
        let says = self.stderr.contains("Exit status 126 (setting unattendedRefusals)");
        self.ended_with(if says { REFUSED } else { 0 })
    }

    /// Returns how long the program went on after the model's last answer.
    ///
    /// # Errors
    ///
    /// When the model was never asked.
    pub fn lingered(&self) -> anyhow::Result<Duration> {
        let last = self.requests.last().and_then(|request| request.get("at_ms")?.as_u64());
        let last = UNIX_EPOCH + Duration::from_millis(last.context("the model was never asked")?);
        Ok(self.ended_at.duration_since(last).unwrap_or_default())
    }

    /// Returns the text of the `index`th tool result that the model received, counted from 0.
    ///
    /// # Errors
    ///
    /// If there were fewer.
    pub fn tool_result(&self, index: usize) -> anyhow::Result<&str> {
        let lists = self.requests.iter().filter_map(|request| request.get("results")?.as_array());
        let result = lists.flatten().filter_map(Value::as_str).nth(index);
        result.with_context(|| format!("the model saw no tool result number {index}: {self:#?}"))
    }
}

/// Kills a child and all processes left in its process group, and waits for the child.
pub(crate) fn kill_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // If the group no longer exists, there is nothing to do.
        let _ = kill_process_group(group, Signal::KILL);
    }
    drop(child.wait());
}

fn text_of(file: &mut File) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
