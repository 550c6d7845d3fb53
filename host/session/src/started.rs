//! A running command, and how it ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use portcullis_approvals::CommandQuestions;
use portcullis_decision::{Decision, Grant, RefusalText, Request, RuleSet};
use portcullis_file_gate::FileError;
use portcullis_sandbox_runtime::{Exit, LaunchError};
use portcullis_session_sandbox::limits::{Bounds, LimitMet, met};
use portcullis_session_sandbox::network::Sandbox;
use portcullis_session_sandbox::new_directories::NewDirectory;
use portcullis_session_sandbox::own_directories::LayersUser;
use portcullis_session_sandbox::running::RunningCommand;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The exit status.
    pub exit: Exit,
    /// The limit that ended it, if any.
    pub met: Option<LimitMet>,
}

impl Ended {
    /// Returns the time limit, if it ended the command.
    #[must_use]
    pub fn timed_out_after(&self) -> Option<Duration> {
        if let Some(LimitMet::Time(time)) = self.met { Some(time) } else { None }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.exit {
            Exit::Code(code) => write!(formatter, "exit {code}")?,
            Exit::Signal(signal) => write!(formatter, "signal {signal}")?,
            Exit::Lost => formatter.write_str("lost with its sandbox")?,
        }
        self.met.iter().try_for_each(|met| write!(formatter, ", {met}"))
    }
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It was not allowed.
    #[error("{}", RefusalText::for_decision(.0).with_next_step(None))]
    Denied(Box<Decision>),
    /// There is no sandbox.
    #[error("commands are refused because the sandbox could not be set up: {0}")]
    NoSandbox(String),
    /// The working directory cannot be used.
    #[error("the working directory of the command")]
    Directory(#[source] FileError),
    /// It could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl From<Box<Decision>> for CommandFailure {
    fn from(decision: Box<Decision>) -> Self {
        Self::Denied(decision)
    }
}

/// A running command.
#[derive(Debug)]
pub struct Started {
    pub(crate) running: Arc<RunningCommand>,
    pub(crate) questions: CommandQuestions,
    /// The client's call, if any.
    pub(crate) call: Option<String>,
    // Keeps the sandbox alive while a command runs in it, even if grants have created a new one.
    pub(crate) _sandbox: Arc<Sandbox>,
    /// The command's own rules, if they differ from the session's.
    pub(crate) rules: Option<Arc<RuleSet>>,
    pub(crate) request: Request,
    pub(crate) advice: Vec<String>,
    pub(crate) bounds: Bounds,
    pub(crate) started_at: Instant,
    /// Whether it was killed because of too much output.
    pub(crate) said_too_much: AtomicBool,
    /// Notes on its connections, set after it has ended.
    pub(crate) connections: OnceLock<Vec<String>>,
    /// Notes on refused operations, set after it has ended.
    pub(crate) refused: OnceLock<Vec<String>>,
    /// Notes on closed places that it names, shown if it fails.
    pub(crate) closed: Vec<String>,
    /// Grants for this command alone, from answers about those places.
    pub(crate) opened: Vec<Grant>,
    /// Directories that were created for it. Dropping this removes those that are still empty.
    pub(crate) made: Vec<NewDirectory>,
    /// The length of the record of changes when it started.
    pub(crate) recorded: Option<u64>,
    /// Counts it among those whose changes in caches are kept.
    pub(crate) _layers: Option<Arc<LayersUser>>,
}

impl Started {
    /// Returns the policies' texts for the model, to be sent with the result.
    #[must_use]
    pub fn advice(&self) -> &[String] {
        &self.advice
    }

    /// Returns the notes on the command's connections; empty until the command has ended.
    #[must_use]
    pub fn connections(&self) -> &[String] {
        self.connections.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the notes on refused operations; empty until the command has ended.
    #[must_use]
    pub fn refusal_notes(&self) -> &[String] {
        self.refused.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the maximum number of output bytes, for output that passes through the host.
    #[must_use]
    pub fn output_bytes(&self) -> u64 {
        self.bounds.output_bytes
    }

    /// Kills the command because it exceeded the output limit.
    pub fn end_for_output(&self) {
        self.said_too_much.store(true, Ordering::Relaxed);
        self.running.kill();
    }

    /// Kills the command and all its descendants.
    pub fn kill(&self) {
        self.running.kill();
    }

    pub(crate) fn met(&self, exit: Exit) -> Option<LimitMet> {
        if self.said_too_much.load(Ordering::Relaxed) {
            return Some(LimitMet::Output(self.bounds.output_bytes));
        }
        met(self.bounds.sandbox, exit, self.running.breach())
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }
}
