//! A loaded policy, as the policy chain calls it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_decision::context::VcsParts;
use portcullis_decision::profile::Profile;
use portcullis_decision::request::{ActionKinds, Request};
use portcullis_decision::verdict::{Evaluation, OutputEvaluation, ToolOutput};
use portcullis_decision::{Context, Policy, PolicyError};

use crate::description::Description;
use crate::error::LoadError;
use crate::exports::abstention;
use crate::instance::Running;
use crate::limits::Limits;
use crate::link::in_call;
use crate::ready::{Ready, Start};
use crate::snapshot_job::{Slot, SnapshotJob};
use crate::state::{LogLevel, LogLine};

/// Number of log lines that are kept until they are read.
const KEPT_LINES: usize = 1000;

/// Bytes of a crashed policy's output in the error.
const LAST_WORDS: usize = 300;

/// A policy component with its configuration.
///
/// Every call runs in a fresh copy of the configured instance. Several threads may call at once; their stacks
/// must have 1 MiB.
pub struct ComponentPolicy {
    name: String,
    digest: String,
    description: Description,
    configuration: String,
    limits: Limits,
    /// The linked component. A snapshot job replaces it.
    ready: Arc<Slot>,
    snapshot: Mutex<Option<SnapshotJob>>,
    has_output_filter: bool,
    rewrites: bool,
    sees_output: bool,
    log: Mutex<VecDeque<LogLine>>,
}

/// The parts of a policy.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) description: Description,
    pub(crate) configuration: String,
    pub(crate) limits: Limits,
    pub(crate) ready: Arc<Slot>,
    pub(crate) snapshot: Option<SnapshotJob>,
}

impl ComponentPolicy {
    /// Creates a policy, unless it rejects its configuration.
    pub(crate) fn new(parts: Parts) -> Result<Self, LoadError> {
        let log = configured(&parts)?;
        let Parts { name, digest, description, configuration, limits, ready, snapshot } = parts;
        let has_output_filter =
            ready.read().unwrap_or_else(PoisonError::into_inner).exports.has_output_filter();
        let needs_output = description.capabilities.is_none_or(|needs| needs.output);
        Ok(Self {
            name,
            digest,
            description,
            configuration,
            limits,
            ready,
            snapshot: Mutex::new(snapshot),
            has_output_filter,
            rewrites: false,
            sees_output: needs_output,
            log: Mutex::new(VecDeque::from(log)),
        })
    }

    /// Returns the policy's description of itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Lets the policy change the input of tools that it allows, as its manifest declares, unless the policy itself
    /// says that it does not.
    #[must_use]
    pub fn rewriting(mut self) -> Self {
        self.rewrites = self.description.capabilities.is_none_or(|needs| needs.rewrites);
        self
    }

    /// Tells the policy nothing about version control. For policies that do not use it and cannot say so.
    #[must_use]
    pub fn without_vcs(mut self) -> Self {
        self.description.depends_on = VcsParts::default();
        self
    }

    /// Forbids the policy to change the input of tools, as for a policy whose manifest does not declare it.
    #[must_use]
    pub fn without_rewrites(mut self) -> Self {
        self.rewrites = false;
        self
    }

    /// Hides the output of tools from the policy: the user has not agreed to show it.
    #[must_use]
    pub fn without_output(mut self) -> Self {
        self.sees_output = false;
        self
    }

    /// Returns how copies of the policy are started.
    #[must_use]
    pub fn start(&self) -> Start {
        self.ready().start
    }

    /// Takes the job that makes a snapshot of the policy.
    ///
    /// Returns it once, and `None` if copies already start from one.
    pub fn snapshot_job(&self) -> Option<SnapshotJob> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the lines that the policy has logged since the last call, oldest first.
    pub fn take_log(&self) -> Vec<LogLine> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Starts one copy that can be called several times, to measure the cost of a fresh copy.
    ///
    /// Decisions never share a copy.
    ///
    /// # Errors
    /// Those of [`Policy::evaluate`].
    pub fn copy(&self) -> Result<PolicyCopy<'_>, PolicyError> {
        let ready = self.ready();
        let running = ready.start(self.limits.configure_time, &self.configuration)?;
        Ok(PolicyCopy { policy: self, ready, running })
    }

    /// Returns the context with only those facts about version control that the policy depends on: a rule made from
    /// others would not be made anew when they change.
    fn known<'a>(&self, context: &'a Context) -> Cow<'a, Context> {
        let Some(vcs) = &context.workspace.vcs else { return Cow::Borrowed(context) };
        let mut known = context.clone();
        known.workspace.vcs = vcs.only(self.description.depends_on);
        Cow::Owned(known)
    }

    fn ready(&self) -> Arc<Ready> {
        Arc::clone(&self.ready.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `call` on a fresh copy of the configured instance.
    fn on_a_copy<T>(
        &self,
        ready: &Ready,
        call: impl FnOnce(&mut Running) -> Result<T, PolicyError>,
    ) -> Result<T, PolicyError> {
        let mut running = ready.start(self.limits.configure_time, &self.configuration)?;
        let answer = call(&mut running);
        let lines = running.into_log();
        let answer = answer.map_err(|error| with_last_words(error, &lines));
        self.keep_log(lines);
        answer
    }

    fn keep_log(&self, lines: Vec<LogLine>) {
        if lines.is_empty() {
            return;
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend(lines);
        let surplus = log.len().saturating_sub(KEPT_LINES);
        log.drain(..surplus);
    }
}

impl Policy for ComponentPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    fn handles(&self) -> ActionKinds {
        self.description.handles
    }

    fn vcs_parts(&self) -> VcsParts {
        self.description.depends_on
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
        let ready = self.ready();
        if !ready.exports.has_evaluator() {
            return Ok(abstention());
        }
        let (time, context) = (self.limits.decision_time, &self.known(context));
        self.on_a_copy(&ready, |running| ready.exports.evaluate(running, time, request, context))
    }

    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError> {
        let ready = self.ready();
        if !ready.exports.has_confinement() {
            return Ok(None);
        }
        let (time, context) = (self.limits.setup_time, &self.known(context));
        self.on_a_copy(&ready, |running| ready.exports.standing(running, time, context))
    }

    fn for_command(&self, request: &Request, context: &Context) -> Result<Option<Profile>, PolicyError> {
        let ready = self.ready();
        if !ready.exports.has_confinement() {
            return Ok(None);
        }
        let (time, context) = (self.limits.decision_time, &self.known(context));
        self.on_a_copy(&ready, |running| ready.exports.for_command(running, time, request, context))
    }

    fn rewrites(&self) -> bool {
        self.rewrites
    }

    fn inspects(&self) -> bool {
        self.sees_output && self.has_output_filter
    }

    fn inspect(
        &self,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError> {
        let ready = self.ready();
        if !self.inspects() {
            return Ok(None);
        }
        let (time, context) = (self.limits.decision_time, &self.known(context));
        self.on_a_copy(&ready, |running| ready.exports.inspect(running, time, output, context))
    }

    fn brief(&self, context: &Context) -> Result<String, PolicyError> {
        let ready = self.ready();
        if !ready.exports.has_orientation() {
            return Ok(String::new());
        }
        let (time, context) = (self.limits.setup_time, &self.known(context));
        self.on_a_copy(&ready, |running| ready.exports.brief(running, time, context))
    }
}

/// Adds to a crash the last line that the policy wrote to its standard error: there, languages with exceptions name
/// the exception.
fn with_last_words(error: PolicyError, lines: &[LogLine]) -> PolicyError {
    let warnings = lines.iter().rev().filter(|line| line.level == LogLevel::Warn);
    let last = warnings.map(|line| line.message.trim()).find(|line| !is_of_runtime(line));
    match (error, last) {
        (PolicyError::Trap { detail }, Some(line)) => {
            let line = line.get(..line.floor_char_boundary(LAST_WORDS)).unwrap_or_default();
            PolicyError::Trap { detail: format!("{detail}; its last words: `{line}`") }
        }
        (error, _) => error,
    }
}

/// Returns true for an empty line, and for one that the runtimes of Python and JavaScript add to each exception.
fn is_of_runtime(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("note: run with `RUST_BACKTRACE")
        || line.starts_with("thread '")
        || line == "Python function threw an unexpected exception"
}

/// Configures a copy of a policy during loading. Returns its log.
fn configured(parts: &Parts) -> Result<Vec<LogLine>, LoadError> {
    let Parts { configuration, limits, ready, .. } = parts;
    let ready = ready.read().unwrap_or_else(PoisonError::into_inner);
    if ready.start == Start::Snapshot {
        return Ok(Vec::new());
    }
    let in_call = in_call("configure");
    let mut running = ready.runner.start(limits.configure_time).map_err(&in_call)?;
    let errors =
        ready.exports.configure(&mut running, limits.configure_time, configuration).map_err(&in_call)?;
    if errors.is_empty() { Ok(running.into_log()) } else { Err(LoadError::Configuration { errors }) }
}

/// A copy of a policy that keeps running between calls.
pub struct PolicyCopy<'a> {
    policy: &'a ComponentPolicy,
    ready: Arc<Ready>,
    running: Running,
}

impl PolicyCopy<'_> {
    /// Like [`Policy::evaluate`], on this copy. After an error the copy is unusable.
    ///
    /// # Errors
    /// Those of [`Policy::evaluate`].
    pub fn evaluate(&mut self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
        let (time, context) = (self.policy.limits.decision_time, &self.policy.known(context));
        self.ready.exports.evaluate(&mut self.running, time, request, context)
    }
}

impl std::fmt::Debug for PolicyCopy<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PolicyCopy").field("policy", &self.policy.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ComponentPolicy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ComponentPolicy")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .field("start", &self.start())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trapped(lines: &[(LogLevel, &str)]) -> String {
        let lines: Vec<LogLine> = lines
            .iter()
            .map(|(level, text)| LogLine { level: *level, message: (*text).to_owned() })
            .collect();
        with_last_words(PolicyError::Trap { detail: "unreachable".to_owned() }, &lines).to_string()
    }

    #[test]
    fn a_crash_is_told_with_its_exception() {
        let python = [
            (LogLevel::Info, "hello"),
            (LogLevel::Warn, "Traceback (most recent call last):"),
            (LogLevel::Warn, "ValueError: no such key"),
            (LogLevel::Warn, ""),
            (LogLevel::Warn, "thread '<unnamed>' (1) panicked at runtime/src/lib.rs:1280:25:"),
            (LogLevel::Warn, "Python function threw an unexpected exception"),
            (LogLevel::Warn, "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"),
        ];
        assert_eq!(trapped(&python), "trapped: unreachable; its last words: `ValueError: no such key`");
        assert_eq!(trapped(&[(LogLevel::Info, "hello")]), "trapped: unreachable");
        let long = "é".repeat(LAST_WORDS);
        assert!(trapped(&[(LogLevel::Warn, &long)]).len() < LAST_WORDS + 60);
        let late = with_last_words(PolicyError::TimeLimit { limit_ms: 5 }, &[]);
        assert_eq!(late, PolicyError::TimeLimit { limit_ms: 5 });
    }
}
