//! The only path from a request to a decision: standing rules, the policy chain, live grants.

use std::sync::Arc;

use crate::combine::{Combine, Outcome, PolicyVote};
use crate::context::{Context, VcsParts};
use crate::decision::{AnsweredBy, Decision, Mode, Vote, vote};
use crate::grant::{Grant, GrantPattern};
use crate::path_text;
use crate::policy::{Policy, PolicyError};
use crate::profile::FileRight;
use crate::request::{Action, ActionKinds, Content, FileAccess, FileOperation, Request, Stage};
use crate::reservation::Reservation;
use crate::rules::{Caller, RuleSet, Ruling};
use crate::verdict::{Cause, Denial, Effect, Evaluation, Obligation, Severity, Verdict};

/// Policies in order, and how their answers are combined.
#[derive(Clone)]
pub struct Chain {
    /// The policies.
    pub members: Vec<Member>,
    /// How the answers are combined.
    pub combine: Combine,
    /// Returns microseconds since some fixed moment, to measure each policy; this crate has no clock.
    pub stopwatch: fn() -> u64,
}

/// A policy of a chain.
#[derive(Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<dyn Policy>,
    /// Whether the policy's answer counts.
    pub mode: Mode,
}

impl Default for Chain {
    fn default() -> Self {
        Self { members: Vec::new(), combine: Combine::default(), stopwatch: || 0 }
    }
}

impl Chain {
    /// Returns the parts of the project's version control that some policy depends on.
    #[must_use]
    pub fn vcs_parts(&self) -> VcsParts {
        let parts = self.members.iter().map(|member| member.policy.vcs_parts());
        parts.fold(VcsParts::default(), VcsParts::union)
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.members.iter().map(|member| member.policy.name()).collect();
        formatter
            .debug_struct("Chain")
            .field("members", &names)
            .field("combine", &self.combine)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Member")
            .field("policy", &self.policy.name())
            .field("mode", &self.mode)
            .finish()
    }
}

impl Chain {
    /// Decides `request`: the strictest of the standing rules and the chain, where `ask` becomes `allow` if one of
    /// `grants` covers it.
    #[must_use]
    pub fn decide(
        &self,
        request: &Request,
        context: &Context,
        rules: &RuleSet,
        grants: &[Grant],
    ) -> Decision {
        let Combined { evaluation, obligations, mut votes } = self.evaluate(request, context);
        let ruling = ruling_on(request, rules);
        votes.extend(ruling.as_ref().map(vote));
        let decision = match (evaluation, ruling) {
            (Some((_, evaluation)), Some(ruling)) if ruling.effect > strength(&evaluation) => {
                Decision::of_rules(ruling, votes)
            }
            (Some((policy, evaluation)), _) => Decision::of_policy(&policy, evaluation, votes),
            (None, Some(ruling)) => Decision::of_rules(ruling, votes),
            (None, None) => Decision::of_nobody(votes),
        };
        let decision = decision.obliged(obligations);
        if decision.effect() == Effect::Ask && self.is_granted(request, context, grants, decision.votes()) {
            return decision.granted(AnsweredBy::Grant, "you allowed it before");
        }
        decision
    }

    /// Returns true if some policy handles actions of a kind.
    #[must_use]
    pub fn hears_of(&self, kind: impl Fn(ActionKinds) -> bool) -> bool {
        self.members.iter().any(|member| kind(member.policy.handles()))
    }

    /// Returns true if a live grant answers the request. A grant on a path was given regardless of the text to be
    /// written, so it does not answer a question that the text has raised.
    fn is_granted(&self, request: &Request, context: &Context, grants: &[Grant], votes: &[Vote]) -> bool {
        let live = || grants.iter().filter(|grant| grant.is_live(context.now) && grant.covers(request));
        if live().any(|grant| matches!(grant.pattern, GrantPattern::Exact(_))) {
            return true;
        }
        live().next().is_some()
            && without_text(request).is_none_or(|blind| self.asks_alike(&blind, context, votes))
    }

    /// Returns true if the policies that ask in `votes` ask about `blind` by the same rules.
    fn asks_alike(&self, blind: &Request, context: &Context, votes: &[Vote]) -> bool {
        let asking = |vote: &&Vote| vote.effect == Some(Effect::Ask) && vote.mode != Mode::Observe;
        let blind = self.evaluate(blind, context).votes;
        // The votes of policies come first; the rules do not depend on the text.
        votes.iter().take(blind.len()).filter(asking).all(|vote| {
            let is_same = |other: &&Vote| other.policy == vote.policy && other.cause.rule == vote.cause.rule;
            blind.iter().filter(asking).any(|other| is_same(&other))
        })
    }

    /// Evaluates every policy.
    fn evaluate(&self, request: &Request, context: &Context) -> Combined {
        let mut votes = Vec::with_capacity(self.members.len() + 1);
        let (mut heard, mut tightening) = (Vec::new(), Vec::new());
        for member in &self.members {
            let policy = member.policy.as_ref();
            let started = (self.stopwatch)();
            let (evaluation, failed) = match hear(policy, request, context) {
                Ok(evaluation) => (evaluation, false),
                Err(error) => (fail_closed(policy.name(), &error), true),
            };
            votes.push(Vote {
                policy: policy.name().to_owned(),
                digest: policy.digest().to_owned(),
                mode: member.mode,
                effect: evaluation.verdict.effect(),
                cause: evaluation.cause.clone(),
                failed,
                cost_us: (self.stopwatch)().saturating_sub(started),
            });
            match member.mode {
                Mode::Enforce => heard.push(Opinion { policy: policy.name(), evaluation, failed }),
                Mode::Tighten => tightening.push(Opinion { policy: policy.name(), evaluation, failed }),
                Mode::Observe => {}
            }
        }
        self.combined(heard, tightening, votes)
    }

    /// Combines the opinions: first those of policies that count in full, as configured; then those of policies that
    /// can only tighten, each in any configuration.
    fn combined(
        &self,
        mut heard: Vec<Opinion<'_>>,
        tightening: Vec<Opinion<'_>>,
        votes: Vec<Vote>,
    ) -> Combined {
        // An expression may name them; there they abstain.
        let silent = tightening.iter().map(|opinion| (opinion.policy, PolicyVote::Abstain));
        let answers: Vec<(&str, PolicyVote)> =
            heard.iter().map(|opinion| (opinion.policy, opinion.answer())).chain(silent).collect();
        let obligations = obligations(&heard, &self.combine.supporters(&answers));
        let counts = match self.combine.combine(&answers) {
            Outcome::NoOpinion => None,
            Outcome::Winner(index) | Outcome::Failed(index) if index < heard.len() => {
                Some(heard.swap_remove(index))
            }
            Outcome::Winner(_) | Outcome::Failed(_) => None,
        };
        let restricts = |opinion: &Opinion<'_>| {
            opinion.evaluation.verdict.effect().is_some_and(|effect| effect != Effect::Allow)
        };
        let counts = tightening.into_iter().filter(restricts).fold(counts, |counts, opinion| match counts {
            Some(counts) if counts.strength() >= opinion.strength() => Some(counts),
            _ => Some(opinion.without_offers()),
        });
        let evaluation = counts.map(|opinion| (opinion.policy.to_owned(), opinion.evaluation));
        Combined { evaluation, obligations, votes }
    }
}

/// The opinion of one policy.
struct Opinion<'a> {
    policy: &'a str,
    evaluation: Evaluation,
    failed: bool,
}

impl Opinion<'_> {
    fn answer(&self) -> PolicyVote {
        answer(&self.evaluation, self.failed)
    }

    fn strength(&self) -> Effect {
        strength(&self.evaluation)
    }

    /// Removes the offered grants: a policy that can only tighten must not offer to allow more than the one action.
    fn without_offers(mut self) -> Self {
        if let Verdict::Ask(question) = &mut self.evaluation.verdict {
            question.options.clear();
        }
        self
    }
}

/// Returns the request without the text to be written; `None` if there is no text.
fn without_text(request: &Request) -> Option<Request> {
    let Action::File(access) = &request.action else { return None };
    if !matches!(access.operation, FileOperation::Write(_) | FileOperation::Edit(_)) {
        return None;
    }
    let access = FileAccess { operation: FileOperation::Write(Content::Unknown), ..access.clone() };
    Some(Request { action: Action::File(access), ..request.clone() })
}

/// The combined result of the policies.
struct Combined {
    /// The answer that counts, with the name of its policy; `None` if no counting policy has an opinion.
    evaluation: Option<(String, Evaluation)>,
    /// The host's duties if the action is carried out.
    obligations: Vec<Obligation>,
    votes: Vec<Vote>,
}

/// Returns the obligations of the supporters of an answer, each once.
fn obligations(heard: &[Opinion<'_>], supporters: &[usize]) -> Vec<Obligation> {
    let mut all = Vec::new();
    for opinion in supporters.iter().filter_map(|index| heard.get(*index)) {
        if let Verdict::Allow(obligations) = &opinion.evaluation.verdict {
            all.extend(obligations.iter().cloned());
        }
    }
    let mut seen: Vec<Obligation> = Vec::with_capacity(all.len());
    all.retain(|obligation| {
        let new = !seen.contains(obligation);
        seen.extend(new.then(|| obligation.clone()));
        new
    });
    all
}

/// Makes the denial that results from every failure in deciding; there is no other source of it.
#[must_use]
pub fn fail_closed(policy: &str, error: &PolicyError) -> Evaluation {
    Evaluation {
        verdict: Verdict::Deny(Denial {
            hint: Some("the policy itself failed; the user has to repair or replace it".to_owned()),
            overridable: false,
        }),
        cause: Cause {
            rule: "host.policy-failed".to_owned(),
            reason: format!("policy `{policy}` {error}"),
            setting: String::new(),
            severity: Severity::High,
        },
        trace: Vec::new(),
    }
}

/// Evaluates one policy, and checks that this host can meet the obligations of its verdict. A policy that does not
/// handle such requests abstains.
///
/// # Errors
/// If the policy fails, or demands what this host cannot do.
pub fn hear(policy: &dyn Policy, request: &Request, context: &Context) -> Result<Evaluation, PolicyError> {
    if !policy.handles().includes(&request.action) {
        return Ok(Evaluation { verdict: Verdict::Abstain, cause: Cause::default(), trace: Vec::new() });
    }
    let evaluation = policy.evaluate(request, context)?;
    match unmet(&evaluation, &request.action, policy.rewrites()) {
        Some(name) => {
            Err(PolicyError::BadAnswer { detail: format!("obligation `{name}` cannot be met by this host") })
        }
        None => Ok(evaluation),
    }
}

/// Returns the name of an obligation that this host cannot meet for `action`.
fn unmet(evaluation: &Evaluation, action: &Action, may_rewrite: bool) -> Option<String> {
    let Verdict::Allow(obligations) = &evaluation.verdict else { return None };
    obligations.iter().find_map(|obligation| match obligation {
        Obligation::Other(attribute) => {
            let is_met = Reservation::read(attribute).is_some() && has_an_end(action);
            (!is_met).then(|| attribute.name.clone())
        }
        Obligation::RewriteScript(_) => Some("rewrite-script".to_owned()),
        // Only a manifest that the user trusts entitles a policy to change the action.
        Obligation::RewriteInput(input) => {
            let is_met = may_rewrite && matches!(action, Action::Tool(_)) && is_object(input);
            (!is_met).then(|| "rewrite-input".to_owned())
        }
        // The content of a file goes to the model unchanged, without additions.
        Obligation::Advise(_) if matches!(action, Action::File(_)) => Some("advise".to_owned()),
        Obligation::Notify(_) | Obligation::Advise(_) => None,
    })
}

/// Returns true if the host knows when an action ends; claims can last until then.
fn has_an_end(action: &Action) -> bool {
    matches!(action, Action::File(_) | Action::Command(_) | Action::Tool(_))
}

/// Returns true if a text is a JSON object, as the input of every tool is.
fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

fn answer(evaluation: &Evaluation, failed: bool) -> PolicyVote {
    if failed {
        return PolicyVote::Failed;
    }
    evaluation.verdict.effect().map_or(PolicyVote::Abstain, PolicyVote::Effect)
}

fn strength(evaluation: &Evaluation) -> Effect {
    evaluation.verdict.effect().unwrap_or(Effect::Ask)
}

/// Returns the ruling of the rule set on `request`; `None` for actions without rules.
#[must_use]
pub fn ruling_on(request: &Request, rules: &RuleSet) -> Option<Ruling> {
    match &request.action {
        Action::File(access) => {
            let canonical = &access.path.canonical;
            let first = on_path(canonical, |path| rules.file(path, access.operation.right(), Caller::Tool));
            let (FileOperation::Move(other) | FileOperation::Link(other)) = &access.operation else {
                return Some(first);
            };
            let second = on_path(&other.canonical, |path| rules.file(path, FileRight::Write, Caller::Tool));
            Some(if second.effect > first.effect { second } else { first })
        }
        Action::Network(access) => {
            let ruling = rules.connection(&access.target, access.port, &access.process);
            let is_later = access.stage != Stage::Connect && ruling.effect != Effect::Deny;
            Some(if is_later { connected() } else { ruling })
        }
        Action::Command(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Escalation(_)
        | Action::Other(_) => None,
    }
}

/// Returns the ruling for later stages of a connection: rules are about targets, and the target was allowed.
fn connected() -> Ruling {
    Ruling {
        effect: Effect::Allow,
        policy: "base".to_owned(),
        rule: "base.connected".to_owned(),
        reason: "the connection itself is allowed".to_owned(),
        setting: String::new(),
        conceal: false,
    }
}

fn on_path(canonical: &str, ask: impl FnOnce(&std::path::Path) -> Ruling) -> Ruling {
    match path_text::decode(canonical) {
        Some(path) => ask(&path),
        None => Ruling {
            effect: Effect::Deny,
            policy: "base".to_owned(),
            rule: "base.malformed-path".to_owned(),
            reason: "the path is malformed".to_owned(),
            setting: String::new(),
            conceal: true,
        },
    }
}

#[cfg(test)]
mod tests;
