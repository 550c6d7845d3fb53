//! A loaded policy, as the chain sees it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portcullis_decision::profile::Profile;
use portcullis_decision::request::{ActionKinds, Request};
use portcullis_decision::verdict::{Evaluation, OutputEvaluation, ToolOutput};
use portcullis_decision::{Context, Policy, PolicyError};

use serde::{Deserialize, Serialize};

use crate::cache::Start;
use crate::instance::{Runner, Running};
use crate::limits::Limits;
use crate::state::LogLine;
use crate::v0_1::{self, Exports};

/// Lines of log that are kept until somebody reads them.
const KEPT_LINES: usize = 1000;

/// A policy component with its configuration. Every call runs in a fresh copy of
/// the configured instance; calls may come from several threads, whose stacks
/// must hold 1 MiB.
pub struct ComponentPolicy {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) description: Description,
    pub(crate) configuration: String,
    pub(crate) start: Start,
    pub(crate) limits: Limits,
    pub(crate) runner: Runner,
    pub(crate) exports: Exports,
    pub(crate) rewrites: bool,
    pub(crate) sees_output: bool,
    pub(crate) log: Mutex<VecDeque<LogLine>>,
}

/// What a policy says of itself. Written by a guest: show it as quoted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// `namespace:name`.
    pub id: String,
    /// Its version.
    pub version: String,
    /// A few words.
    pub title: String,
    /// The actions that it judges.
    pub handles: ActionKinds,
    /// Every rule that it may name.
    pub rules: Vec<RuleInfo>,
    /// JSON Schema of its configuration; empty: it takes none.
    pub config_schema: String,
}

/// One rule, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleInfo {
    /// As in verdicts.
    pub id: String,
    /// A few words.
    pub title: String,
    /// Markdown; may be empty.
    pub help: String,
}

impl ComponentPolicy {
    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Lets it change the input of tools that it allows; its manifest has declared that it does.
    #[must_use]
    pub fn rewriting(mut self) -> Self {
        self.rewrites = true;
        self
    }

    /// Keeps the output of tools from it: nobody has agreed that it sees that.
    #[must_use]
    pub fn without_output(mut self) -> Self {
        self.sees_output = false;
        self
    }

    /// How its copies are started.
    #[must_use]
    pub fn start(&self) -> Start {
        self.start
    }

    /// Takes the lines that it logged since this was last asked, oldest first.
    pub fn take_log(&self) -> Vec<LogLine> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Starts one copy that can be asked several times: for measuring what a fresh
    /// copy costs. Decisions never share one.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    pub fn copy(&self) -> Result<PolicyCopy<'_>, PolicyError> {
        let mut running = self.runner.start(self.limits.configure_time)?;
        self.make_ready(&mut running)?;
        Ok(PolicyCopy { policy: self, running })
    }

    /// Runs `call` on a fresh copy of the configured instance.
    fn on_a_copy<T>(
        &self,
        time: Duration,
        call: impl FnOnce(&mut Running<'_>, Duration) -> Result<T, PolicyError>,
    ) -> Result<T, PolicyError> {
        let mut running = self.runner.start(self.limits.configure_time)?;
        let answer = self.make_ready(&mut running).and_then(|()| call(&mut running, time));
        self.keep_log(running.into_log());
        answer
    }

    fn make_ready(&self, running: &mut Running<'_>) -> Result<(), PolicyError> {
        match self.start {
            Start::Snapshot => Ok(()),
            Start::Configure => {
                let faults =
                    v0_1::configure(running, &self.exports, self.limits.configure_time, &self.configuration)?;
                if faults.is_empty() {
                    return Ok(());
                }
                Err(PolicyError::BadAnswer {
                    detail: "it now refuses the configuration that it took before".to_owned(),
                })
            }
        }
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

    fn evaluate(&self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
        let Some(export) = &self.exports.evaluator else { return Ok(v0_1::abstention()) };
        self.on_a_copy(self.limits.decision_time, |running, time| {
            v0_1::evaluate(running, export, time, request, context)
        })
    }

    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError> {
        let Some(export) = &self.exports.confinement else { return Ok(None) };
        self.on_a_copy(self.limits.setup_time, |running, time| {
            v0_1::standing(running, export, time, context).map(Some)
        })
    }

    fn for_command(&self, request: &Request, context: &Context) -> Result<Option<Profile>, PolicyError> {
        let Some(export) = &self.exports.confinement else { return Ok(None) };
        self.on_a_copy(self.limits.decision_time, |running, time| {
            v0_1::for_command(running, export, time, request, context)
        })
    }

    fn rewrites(&self) -> bool {
        self.rewrites
    }

    fn inspects(&self) -> bool {
        self.sees_output && self.exports.output_filter.is_some()
    }

    fn inspect(
        &self,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError> {
        if !self.inspects() {
            return Ok(None);
        }
        let Some(export) = &self.exports.output_filter else { return Ok(None) };
        self.on_a_copy(self.limits.decision_time, |running, time| {
            v0_1::inspect(running, export, time, output, context).map(Some)
        })
    }

    fn brief(&self, context: &Context) -> Result<String, PolicyError> {
        let Some(export) = &self.exports.orientation else { return Ok(String::new()) };
        self.on_a_copy(self.limits.setup_time, |running, time| v0_1::brief(running, export, time, context))
    }
}

/// A copy of a policy that goes on running.
pub struct PolicyCopy<'a> {
    policy: &'a ComponentPolicy,
    running: Running<'a>,
}

impl PolicyCopy<'_> {
    /// As [`Policy::evaluate`], on this copy; after an error it is of no more use.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    pub fn evaluate(&mut self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
        let Some(export) = &self.policy.exports.evaluator else { return Ok(v0_1::abstention()) };
        v0_1::evaluate(&mut self.running, export, self.policy.limits.decision_time, request, context)
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
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
