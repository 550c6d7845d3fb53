//! Runs cases against a component.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_decision::chain::hear;
use portcullis_decision::inspect::is_like;
use portcullis_decision::profile::{FileRight, Profile};
use portcullis_decision::verdict::{
    ContentBlock, Effect, Evaluation, OutputVerdict, ToolOutput, TraceStep, Verdict,
};
use portcullis_decision::{Base, Caller, Policy as _, PolicyError, RuleLayer, RuleSet, Ruling};
use portcullis_packs::Capabilities;
use portcullis_policy_runtime::{ComponentPolicy, ConfigurationFault, LoadError, LogLine, Runtime};
use portcullis_sdk::cases::{self, Answer, Case, CasesError, Expected, Question};
use serde::Serialize;

use crate::declared::RULES_OF_TEXT;
use crate::policy_text::PolicyText;
use crate::project::component::with_capabilities;
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
    /// What the policy printed in the other cases, with the file and the name of each.
    #[serde(skip)]
    pub printed: Vec<(String, String, Vec<LogLine>)>,
    /// Whether the policy is a text, whose rules `describe` does not know.
    #[serde(skip)]
    is_of_text: bool,
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
    /// What the policy printed in this case.
    pub printed: Vec<LogLine>,
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
    /// The capabilities that its manifest asks for; `None` without a manifest.
    pub capabilities: Option<&'a Capabilities>,
    /// The text that the component runs, if there is one.
    pub text: Option<&'a PolicyText>,
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
    report.is_of_text = report.rules.remove(RULES_OF_TEXT).is_some();
    // Configuring a policy takes most of the time, and many cases share a configuration.
    let mut loaded: BTreeMap<String, Result<Tested, LoadError>> = BTreeMap::new();
    for (file, text) in source.cases {
        progress(file);
        let cases = cases::read(text).map_err(|source| RunError::Cases { file: file.clone(), source })?;
        for case in cases {
            report.run += 1;
            let policy = loaded
                .entry(case.given.config.clone())
                .or_insert_with_key(|configuration| Tested::load(runtime, source, configuration));
            if report.is_of_text {
                report.add_rules_of_text(policy, &case);
            }
            report.take(file, policy, &case);
        }
    }
    Ok(report)
}

/// A policy with the capabilities that it asks for.
struct Tested {
    policy: ComponentPolicy,
    /// Whether it inspects outputs, and its manifest does not ask for that.
    is_blind: bool,
}

impl Tested {
    fn load(runtime: &Runtime, source: Source<'_>, configuration: &str) -> Result<Self, LoadError> {
        let configuration = match source.text {
            None => configuration.to_owned(),
            Some(text) => text.in_config(configuration).map_err(|error| {
                let message = format!("{error:#}");
                LoadError::Configuration {
                    errors: vec![ConfigurationFault { pointer: String::new(), message }],
                }
            })?,
        };
        let whole = runtime.load("policy", source.component, &configuration)?;
        let inspects = whole.inspects();
        let policy = with_capabilities(whole, source.capabilities);
        Ok(Self { is_blind: inspects && !policy.inspects(), policy })
    }
}

impl Report {
    /// Adds the rules that a text checks for a case: its explanation lists them. A rule that matches is covered, also if
    /// a stricter one decides.
    fn add_rules_of_text(&mut self, policy: &Result<Tested, LoadError>, case: &Case) {
        for step in trace(policy, case) {
            *self.rules.entry(step.rule).or_default() |= step.matched;
        }
    }

    fn take(&mut self, file: &str, policy: &Result<Tested, LoadError>, case: &Case) {
        let answered = answer(policy, case);
        let printed = policy.as_ref().map(|tested| tested.policy.take_log()).unwrap_or_default();
        let mut fail = |message: String, trace: Vec<TraceStep>, printed: Vec<LogLine>| {
            let (file, case) = (file.to_owned(), case.name.clone());
            let trace = trace.iter().map(step).collect();
            self.failures.push(Failure { file, case, message, trace, printed });
        };
        let (answer, rules) = match answered {
            Ok(answered) => answered,
            Err(message) => return fail(message, Vec::new(), printed),
        };
        if case.check(&answer).is_err() {
            fail(difference(&case.expected, &answer), trace(policy, case), printed);
        } else if !printed.is_empty() {
            self.printed.push((file.to_owned(), case.name.clone(), printed));
        }
        if self.is_of_text {
            self.rules.extend(rules.iter().map(|rule| (rule.clone(), true)));
        }
        let undeclared: BTreeSet<&String> =
            rules.iter().filter(|rule| !self.rules.contains_key(*rule)).collect();
        for rule in undeclared {
            self.failures.push(Failure {
                file: file.to_owned(),
                case: case.name.clone(),
                message: format!("the policy does not declare the rule `{rule}` that answered"),
                trace: Vec::new(),
                printed: Vec::new(),
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
fn answer(policy: &Result<Tested, LoadError>, case: &Case) -> Result<(Answer, Vec<String>), String> {
    let tested = match (policy, &case.question) {
        (Ok(_), Question::Configure) => return Ok((Answer::Configured(Vec::new()), Vec::new())),
        (Err(LoadError::Configuration { errors }), Question::Configure) => {
            let pointers = errors.iter().map(|error| error.pointer.clone()).collect();
            return Ok((Answer::Configured(pointers), Vec::new()));
        }
        (Ok(tested), _) => tested,
        (Err(error), _) => {
            return Err(format!("the policy cannot be loaded: {}", portcullis_session::with_causes(error)));
        }
    };
    let Tested { policy, .. } = tested;
    let (effect, rule) = match &case.question {
        Question::StandingFile { .. } | Question::StandingConnect(_) => standing(policy, case)?,
        Question::Output { .. } => output(tested, case)?,
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
    hear(policy, &request, &context).map_err(|error| failure(policy, &error))
}

/// Returns a failure in words, with the missing capability if that is the cause.
fn failure(policy: &ComponentPolicy, error: &PolicyError) -> String {
    let lacks_rewrites = !policy.rewrites()
        && matches!(error, PolicyError::BadAnswer { detail } if detail.contains("`rewrite-input`"));
    let hint = if lacks_rewrites {
        "; the manifest has to ask for it: write `rewrites = true` under `[capabilities]` in `policy.toml`"
    } else {
        ""
    };
    format!("the policy {error}{hint}")
}

/// Returns the expected and the actual answer in words.
fn difference(expected: &Expected, answer: &Answer) -> String {
    let refusals = |pointers: &[String]| match pointers {
        [] => "the configuration to be accepted".to_owned(),
        some => format!("these values to be refused: `{}`", some.join("`, `")),
    };
    let expected = match expected {
        Expected::Effect { effect, rule: Some(rule) } => format!("{effect} by `{rule}`"),
        Expected::Effect { effect, rule: None } => effect.clone(),
        Expected::Refused(pointers) => refusals(pointers),
    };
    let actual = match answer {
        Answer::Effect { effect, rule } if rule.is_empty() => (*effect).to_owned(),
        Answer::Effect { effect, rule } => format!("{effect} by `{rule}`"),
        Answer::Configured(pointers) if pointers.is_empty() => "it was accepted".to_owned(),
        Answer::Configured(pointers) => format!("these were refused: `{}`", pointers.join("`, `")),
    };
    format!("expected {expected}, got {actual}")
}

/// Returns the policy's explanation of an unexpected answer.
fn trace(policy: &Result<Tested, LoadError>, case: &Case) -> Vec<TraceStep> {
    let Ok(Tested { policy, .. }) = policy else { return Vec::new() };
    let trace = evaluate(policy, case, true).map(|evaluation| evaluation.trace).unwrap_or_default();
    // The same lines once more.
    policy.take_log();
    trace
}

fn step(step: &TraceStep) -> String {
    let mark = if step.matched { "✓" } else { "·" };
    format!("{mark} {} {}", step.rule, step.detail).trim_end().to_owned()
}

fn output(tested: &Tested, case: &Case) -> Result<(&'static str, String), String> {
    let Question::Output { text, tool } = &case.question else { return Err("there is no output".into()) };
    let is_silent = matches!(&case.expected, Expected::Effect { effect, .. } if effect == "abstain");
    if tested.is_blind && !is_silent {
        return Err("the manifest does not ask to see outputs, so the policy is never shown one; write \
                    `output = true` under `[capabilities]` in `policy.toml`"
            .to_owned());
    }
    let policy = &tested.policy;
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
                OutputVerdict::Replace(new) if !is_like(&new, &output.content) => {
                    return Err("the replacement has other blocks than the output, so the host withholds it"
                        .to_owned());
                }
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
    let rules = rules(&profile);
    let ruling = match &case.question {
        Question::StandingFile { path, right } => {
            let right = match right {
                portcullis_sdk::Right::Read => FileRight::Read,
                portcullis_sdk::Right::Write => FileRight::Write,
                portcullis_sdk::Right::Execute => FileRight::Execute,
            };
            let decoded = portcullis_decision::path_text::decode(path);
            let path = decoded.ok_or_else(|| format!("`{path}` is no path"))?;
            rules.file(&path, right, Caller::Tool)
        }
        Question::StandingConnect(connection) => {
            let access = question::network(connection)?;
            rules.connection(&access.target, access.port, &access.process)
        }
        Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Connect(_)
        | Question::Tool { .. }
        | Question::Output { .. }
        | Question::Configure => return Err("this is no question about standing rules".to_owned()),
    };
    Ok(match ruling_of(ruling) {
        Some(Ruling { effect: Effect::Allow, rule, .. }) => ("allow", rule),
        Some(Ruling { effect: Effect::Ask, rule, .. }) => ("ask", rule),
        Some(Ruling { effect: Effect::Deny, rule, .. }) => ("deny", rule),
        None => ("none", String::new()),
    })
}

/// Compiles the rules of one policy as the enforcer does, without regions of the host.
pub(crate) fn rules(profile: &Profile) -> RuleSet {
    let layer = RuleLayer { name: "policy".to_owned(), profile: profile.clone(), tightens: false };
    RuleSet::compile(vec![layer], Base::default(), &[])
}

/// Returns a ruling if a rule made it; `None` if the host's base did.
pub(crate) fn ruling_of(ruling: Ruling) -> Option<Ruling> {
    Some(ruling).filter(|ruling| ruling.policy != "base")
}

fn effect_of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Abstain => "abstain",
        Verdict::Allow(_) => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}
