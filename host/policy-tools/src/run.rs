//! Runs cases against a component.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_decision::profile::{FileRight, FileRule, NetworkRule, Profile};
use portcullis_decision::verdict::{
    ContentBlock, Effect, Evaluation, OutputVerdict, ToolOutput, TraceStep, Verdict,
};
use portcullis_decision::{Policy, PolicyError};
use portcullis_policy_runtime::{ComponentPolicy, LoadError, Runtime};
use portcullis_sdk::cases::{self, Answer, Case, CasesError, Connection, Question};
use serde::Serialize;

use crate::question;

/// The result of running cases.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The number of cases run.
    pub run: usize,
    /// The cases with an unexpected answer.
    pub failures: Vec<Failure>,
    /// The rules that the policy declares; true if a case covers the rule.
    pub rules: BTreeMap<String, bool>,
}

impl Report {
    /// Returns the number of declared rules that a case covers.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.rules.values().filter(|seen| **seen).count()
    }
}

/// A case with an unexpected answer.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The file of cases.
    pub file: String,
    /// The name of the case.
    pub case: String,
    /// The expected and the actual answer.
    pub message: String,
    /// The rules that the policy checked, if it reports them.
    pub trace: Vec<String>,
}

/// The reason why cases could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of cases is invalid.
    #[error("reading the cases `{file}`")]
    Cases {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        source: CasesError,
    },
    /// The component is not a valid policy.
    #[error("loading the policy")]
    Load(#[source] Box<LoadError>),
}

/// A component and its cases.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The component.
    pub component: &'a [u8],
    /// The text of each file of cases, by file name.
    pub cases: &'a BTreeMap<String, String>,
}

/// Runs every case. `progress` gets the name of each file.
///
/// # Errors
/// If a file of cases or the component is invalid.
pub fn run(
    runtime: &Runtime,
    source: Source<'_>,
    mut progress: impl FnMut(&str),
) -> Result<Report, RunError> {
    let described = runtime.describe(source.component).map_err(|error| RunError::Load(Box::new(error)))?;
    let mut report = Report {
        rules: described.rules.into_iter().map(|rule| (rule.id, false)).collect(),
        ..Report::default()
    };
    // Configuring a policy takes most of the time, and many cases share a configuration.
    let mut loaded: BTreeMap<String, Result<ComponentPolicy, LoadError>> = BTreeMap::new();
    for (file, text) in source.cases {
        progress(file);
        let cases = cases::read(text).map_err(|source| RunError::Cases { file: file.clone(), source })?;
        for case in cases {
            report.run += 1;
            let policy = loaded
                .entry(case.given.config.clone())
                .or_insert_with_key(|configuration| runtime.load("policy", source.component, configuration));
            report.take(file, policy, &case);
        }
    }
    Ok(report)
}

impl Report {
    fn take(&mut self, file: &str, policy: &Result<ComponentPolicy, LoadError>, case: &Case) {
        let mut fail = |message: String, trace: Vec<TraceStep>| {
            let trace = trace.iter().map(step).collect();
            self.failures.push(Failure { file: file.to_owned(), case: case.name.clone(), message, trace });
        };
        let (answer, rules) = match answer(policy, case) {
            Ok(answered) => answered,
            Err(message) => return fail(message, Vec::new()),
        };
        if let Err(message) = case.check(&answer) {
            fail(message, trace(policy, case));
        }
        let undeclared: BTreeSet<&String> =
            rules.iter().filter(|rule| !self.rules.contains_key(*rule)).collect();
        for rule in undeclared {
            self.failures.push(Failure {
                file: file.to_owned(),
                case: case.name.clone(),
                message: format!("the policy does not declare the rule `{rule}` that answered"),
                trace: Vec::new(),
            });
        }
        for rule in rules {
            if let Some(seen) = self.rules.get_mut(&rule) {
                *seen = true;
            }
        }
    }
}

/// Returns the answer to a case, with the rule that gave it.
fn answer(policy: &Result<ComponentPolicy, LoadError>, case: &Case) -> Result<(Answer, Vec<String>), String> {
    let policy = match (policy, &case.question) {
        (Ok(_), Question::Configure) => return Ok((Answer::Configured(Vec::new()), Vec::new())),
        (Err(LoadError::Configuration { errors }), Question::Configure) => {
            let pointers = errors.iter().map(|error| error.pointer.clone()).collect();
            return Ok((Answer::Configured(pointers), Vec::new()));
        }
        (Ok(policy), _) => policy,
        (Err(error), _) => return Err(format!("the policy cannot be loaded: {error}")),
    };
    let (effect, rule) = match &case.question {
        Question::StandingFile { .. } | Question::StandingConnect(_) => standing(policy, case)?,
        Question::Output { .. } => output(policy, case)?,
        Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Connect(_)
        | Question::Tool { .. }
        | Question::Configure => {
            let evaluation = evaluate(policy, case, false)?;
            (effect_of(&evaluation.verdict), evaluation.cause.rule)
        }
    };
    let rules = if rule.is_empty() { Vec::new() } else { vec![rule.clone()] };
    Ok((Answer::Effect { effect, rule }, rules))
}

fn evaluate(policy: &ComponentPolicy, case: &Case, explain: bool) -> Result<Evaluation, String> {
    let mut context = question::context(&case.given);
    context.explain = explain;
    let request = question::request(case, &context)?.ok_or("there is nothing to evaluate")?;
    if !policy.handles().includes(&request.action) {
        return Ok(Evaluation {
            verdict: Verdict::Abstain,
            cause: portcullis_decision::verdict::Cause::default(),
            trace: Vec::new(),
        });
    }
    policy.evaluate(&request, &context).map_err(|error| format!("the policy {error}"))
}

/// Returns the policy's explanation of an unexpected answer.
fn trace(policy: &Result<ComponentPolicy, LoadError>, case: &Case) -> Vec<TraceStep> {
    let Ok(policy) = policy else { return Vec::new() };
    evaluate(policy, case, true).map(|evaluation| evaluation.trace).unwrap_or_default()
}

fn step(step: &TraceStep) -> String {
    let mark = if step.matched { "✓" } else { "·" };
    format!("{mark} {} {}", step.rule, step.detail).trim_end().to_owned()
}

fn output(policy: &ComponentPolicy, case: &Case) -> Result<(&'static str, String), String> {
    let Question::Output { text, tool } = &case.question else { return Err("there is no output".into()) };
    let context = question::context(&case.given);
    let output = ToolOutput {
        request: question::tool(tool, &case.given),
        is_error: false,
        truncated: false,
        content: vec![ContentBlock::Text(text.clone())],
    };
    let answered = policy.inspect(&output, &context).map_err(|error| format!("the policy {error}"))?;
    Ok(match answered {
        None => ("abstain", String::new()),
        Some(answer) => {
            let effect = match answer.verdict {
                OutputVerdict::Abstain => "abstain",
                OutputVerdict::Pass => "pass",
                OutputVerdict::Replace(_) => "replace",
                OutputVerdict::Withhold => "withhold",
            };
            (effect, answer.cause.rule)
        }
    })
}

fn standing(policy: &ComponentPolicy, case: &Case) -> Result<(&'static str, String), String> {
    let context = question::context(&case.given);
    let failed = |error: PolicyError| format!("the policy {error}");
    let stricter = match question::during(&case.given, &context) {
        Some(command) => policy.for_command(&command, &context).map_err(failed)?,
        None => None,
    };
    let profile = match stricter {
        Some(profile) => profile,
        None => policy.standing(&context).map_err(failed)?.unwrap_or_default(),
    };
    let found = match &case.question {
        Question::StandingFile { path, right } => {
            let right = match right {
                portcullis_sdk::Right::Read => FileRight::Read,
                portcullis_sdk::Right::Write => FileRight::Write,
                portcullis_sdk::Right::Execute => FileRight::Execute,
            };
            file_rule(&profile, path, right).map(|rule| (rule.effect, rule.id.clone()))
        }
        Question::StandingConnect(connection) => {
            network_rule(&profile, connection)?.map(|rule| (rule.effect, rule.id.clone()))
        }
        Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Connect(_)
        | Question::Tool { .. }
        | Question::Output { .. }
        | Question::Configure => None,
    };
    Ok(match found {
        Some((Effect::Allow, rule)) => ("allow", rule),
        Some((Effect::Ask, rule)) => ("ask", rule),
        Some((Effect::Deny, rule)) => ("deny", rule),
        None => ("none", String::new()),
    })
}

/// Returns the last rule that matches. A rule with a condition counts only if it does not allow.
pub(crate) fn file_rule<'a>(profile: &'a Profile, path: &str, right: FileRight) -> Option<&'a FileRule> {
    let path = portcullis_decision::path_text::decode(path)?;
    profile.files.iter().rfind(|rule| {
        (rule.condition.is_empty() || rule.effect != Effect::Allow)
            && rule.rights.contains(right)
            && rule.pattern.matcher().matches(&path)
    })
}

fn network_rule<'a>(
    profile: &'a Profile,
    connection: &Connection,
) -> Result<Option<&'a NetworkRule>, String> {
    let access = question::network(connection)?;
    let last = connection.program.rsplit('/').next().unwrap_or_default();
    Ok(profile.network.iter().rfind(|rule| {
        ["*", connection.program.as_str(), last].contains(&rule.program.as_str())
            && rule.target.matches(&access.target, access.port)
    }))
}

pub(crate) fn effect_of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Abstain => "abstain",
        Verdict::Allow(_) => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}
