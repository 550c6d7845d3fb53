//! Checks a policy with probes and sample paths.
//!
//! Every policy must survive the probes. On the sample paths, its rules and its verdicts should agree.

mod probes;

use std::collections::BTreeSet;

use portcullis_decision::chain::hear;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, Profile};
use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, Origin, Request, Text,
};
use portcullis_decision::verdict::{Effect, OutputVerdict, Verdict};
use portcullis_decision::{Caller, Context, Policy, path_text};
use portcullis_policy_runtime::{ComponentPolicy, Description};
use portcullis_sdk::cases::Given;
use serde::Serialize;

use crate::declared::{Declared, RULES_OF_TEXT};
use crate::question;
use crate::run::{rules, ruling_of};

/// The most sample paths.
const SAMPLES_MAX: usize = 400;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A hint.
    Note,
    /// Probably a mistake.
    Warning,
    /// A violation of the contract.
    Error,
}

/// A finding of lint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub gravity: Severity,
    /// The check, for example `probe.failed`.
    pub check: &'static str,
    /// The description.
    pub message: String,
}

fn finding(gravity: Severity, check: &'static str, message: String) -> Finding {
    Finding { gravity, check, message }
}

/// Runs every check on a configured policy. The most severe findings come first.
#[must_use]
pub fn lint(policy: &ComponentPolicy) -> Vec<Finding> {
    let context = question::context(&Given::plain());
    let mut found = describing(policy.description());
    found.extend(probing(policy, &context));
    found.extend(comparing(policy, &context));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.gravity));
    found.dedup();
    found
}

/// Returns true if a policy changes or withholds some output of the probes, so that it needs the capability for outputs.
pub(crate) fn uses_output(policy: &ComponentPolicy) -> bool {
    let context = question::context(&Given::plain());
    probes::outputs(&context).iter().any(|output| {
        let verdict = policy.inspect(output, &context).ok().flatten().map(|answer| answer.verdict);
        verdict.is_some_and(|verdict| matches!(verdict, OutputVerdict::Replace(_) | OutputVerdict::Withhold))
    })
}

/// Checks the description of a policy.
fn describing(description: &Description) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |gravity, check, message: String| found.push(finding(gravity, check, message));
    if description.id.split_once(':').is_none_or(|(one, two)| one.is_empty() || two.is_empty()) {
        add(Severity::Error, "describe.id", format!("`{}` is not `namespace:name`", description.id));
    }
    if description.version.split('.').count() < 3 {
        add(
            Severity::Warning,
            "describe.version",
            format!("`{}` is no semantic version", description.version),
        );
    }
    if description.title.trim().is_empty() {
        add(Severity::Warning, "describe.title", "there is no title".to_owned());
    }
    let mut ids = BTreeSet::new();
    for rule in &description.rules {
        let plain = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || ".-_".contains(character)
        };
        if rule.id != RULES_OF_TEXT && (rule.id.is_empty() || !rule.id.chars().all(plain)) {
            add(
                Severity::Warning,
                "describe.rule",
                format!("the rule id `{}` is not dotted and lower case", rule.id),
            );
        }
        if !ids.insert(&rule.id) {
            add(Severity::Warning, "describe.rule", format!("the rule `{}` is declared twice", rule.id));
        }
    }
    found
}

/// Puts odd questions to a policy. Any verdict is accepted, except `allow` for some of them; a failure is not.
fn probing(policy: &ComponentPolicy, context: &Context) -> Vec<Finding> {
    let declared = Declared::of(policy.description());
    let mut found = Vec::new();
    let mut add = |gravity, check, message: String| found.push(finding(gravity, check, message));
    for probe in probes::all(context) {
        for context in [context, &probes::empty(context)] {
            // Requests of other kinds are put as well: the contract forbids failures.
            let answer = match policy.handles().includes(&probe.request.action) {
                true => hear(policy, &probe.request, context),
                false => policy.evaluate(&probe.request, context),
            };
            match answer {
                Err(error) => {
                    add(Severity::Error, "probe.failed", format!("{}: the policy {error}", probe.name))
                }
                Ok(answer) => {
                    if probe.no_allow && matches!(answer.verdict, Verdict::Allow(_)) {
                        add(
                            Severity::Error,
                            "probe.allowed",
                            format!("{}: it allows a request that it cannot know", probe.name),
                        );
                    }
                    let rule = answer.cause.rule.as_str();
                    if !rule.is_empty() && !declared.has(rule) {
                        add(
                            Severity::Warning,
                            "probe.undeclared",
                            format!("the rule `{rule}` is not declared in `describe`"),
                        );
                    }
                    if rule.is_empty() && answer.verdict != Verdict::Abstain {
                        add(
                            Severity::Warning,
                            "probe.no-rule",
                            format!("{}: a verdict names no rule", probe.name),
                        );
                    }
                }
            }
        }
    }
    for context in [context, &probes::empty(context)] {
        if let Err(error) = policy.standing(context) {
            add(Severity::Error, "probe.failed", format!("`standing`: the policy {error}"));
        }
        if let Err(error) = policy.brief(context) {
            add(Severity::Error, "probe.failed", format!("`brief`: the policy {error}"));
        }
        for output in probes::outputs(context) {
            if let Err(error) = policy.inspect(&output, context) {
                add(Severity::Error, "probe.failed", format!("`inspect`: the policy {error}"));
            }
        }
    }
    found
}

/// Finds files on which the verdicts and the rules disagree.
///
/// For tools the host takes the stricter answer, but for commands only the rules apply.
fn comparing(policy: &ComponentPolicy, context: &Context) -> Vec<Finding> {
    let Ok(Some(profile)) = policy.standing(context) else { return Vec::new() };
    if !policy.handles().file {
        return Vec::new();
    }
    let mut found = Vec::new();
    let compiled = rules(&profile);
    for path in samples(&profile, context) {
        for (right, operation) in [
            (FileRight::Read, FileOperation::Read),
            (FileRight::Write, FileOperation::Write(Content::Text(Text::cut("x")))),
        ] {
            let Some(decoded) = path_text::decode(&path) else { continue };
            let ruled = ruling_of(compiled.file(&decoded, right, Caller::Tool));
            let ruled = ruled.map(|ruling| (ruling.effect, ruling.rule));
            let request = file(&path, operation, context);
            let Ok(answer) = policy.evaluate(&request, context) else { continue };
            let Some(said) = answer.verdict.effect() else { continue };
            let verb = if right == FileRight::Read { "reading" } else { "writing" };
            match ruled {
                Some((effect, rule)) if said < effect => found.push(finding(
                    Severity::Note,
                    "rules.stricter",
                    format!("{verb} `{path}`: `evaluate` says {said} (`{}`), the rule `{rule}` says {effect}; the rule holds", answer.cause.rule),
                )),
                Some((Effect::Allow, rule)) if said == Effect::Deny => found.push(finding(
                    Severity::Warning,
                    "rules.milder",
                    format!("{verb} `{path}`: `evaluate` denies (`{}`) and the rule `{rule}` allows, so commands may; make it a rule", answer.cause.rule),
                )),
                Some(_) | None => {}
            }
        }
    }
    found
}

fn file(path: &str, operation: FileOperation, context: &Context) -> Request {
    let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
    let path = question::path_ref(context, path);
    let action = Action::File(FileAccess { path, operation, facts });
    Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts: Vec::new() }
}

/// Returns typical paths, and paths at, below and beside those in the rules.
fn samples(profile: &Profile, context: &Context) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let places = context.workspace.roots.iter().chain([&context.machine.home, &context.machine.temp]);
    for place in places {
        paths.extend(
            [".env", "key.pem", "src/main.rs", ".git/config", ".bashrc"]
                .map(|name| format!("{place}/{name}")),
        );
    }
    paths.extend(["/etc/passwd", "/usr/bin/env"].map(str::to_owned));
    for rule in &profile.files {
        match &rule.pattern {
            FilePattern::Exact(path) | FilePattern::Tree(path) => {
                let path = path_text::encode(path);
                paths.extend([path.clone(), format!("{path}/inside"), format!("{path}-beside")]);
            }
            FilePattern::Name { .. } | FilePattern::Glob(_) => {}
        }
    }
    paths.retain(|path| path.starts_with('/') && path.len() > 1);
    paths.into_iter().take(SAMPLES_MAX).collect()
}
