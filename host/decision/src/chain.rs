//! The one path from a request to a decision: standing rules, the policy chain, live grants.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::combine::{Answer, Combine, Outcome};
use crate::context::Context;
use crate::grant::Grant;
use crate::path_text;
use crate::permit::Permit;
use crate::policy::{Policy, PolicyError};
use crate::request::{Action, FileOperation, Request};
use crate::rules::{Caller, RuleSet, Ruling};
use crate::verdict::{Cause, Denial, Effect, Evaluation, Obligation, Question, Verdict};

/// Policies in order, and how their answers are combined.
#[derive(Clone)]
pub struct Chain {
    /// The policies.
    pub members: Vec<Member>,
    /// How their answers become one.
    pub combine: Combine,
    /// Microseconds since some moment, for the cost of each policy; this crate has no clock.
    pub stopwatch: fn() -> u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { members: Vec::new(), combine: Combine::default(), stopwatch: || 0 }
    }
}

/// One policy of a chain.
#[derive(Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<dyn Policy>,
    /// Whether its answer counts.
    pub mode: Mode,
}

/// Whether the answer of a policy counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It counts.
    #[default]
    Enforce,
    /// It is logged and does not count.
    Observe,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.members.iter().map(|member| member.policy.name()).collect();
        formatter.debug_struct("Chain").field("members", &names).field("combine", &self.combine).finish()
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

/// What one policy, or the rule set, said of a request; written to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vote {
    /// Name of the policy; `rules` for the rule set.
    pub policy: String,
    /// Digest of its component; empty for the rule set.
    pub digest: String,
    /// Whether it counts.
    pub mode: Mode,
    /// What it said; none for `abstain`.
    pub effect: Option<Effect>,
    /// Which rule, and why.
    pub cause: Cause,
    /// Whether it failed, and `effect` is the denial made of that.
    pub failed: bool,
    /// How long it took, in microseconds.
    pub cost_us: u64,
}

/// The host's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    effect: Effect,
    policy: String,
    cause: Cause,
    denial: Denial,
    question: Option<Question>,
    obligations: Vec<Obligation>,
    votes: Vec<Vote>,
}

impl Chain {
    /// Decides `request`: the strictest of the standing rules and the chain, where `ask` becomes
    /// `allow` if one of `grants` covers it.
    #[must_use]
    pub fn decide(
        &self,
        request: &Request,
        context: &Context,
        rules: &RuleSet,
        grants: &[Grant],
    ) -> Decision {
        let mut decision = self.evaluate(request, context);
        if let Some(ruling) = ruling_on(request, rules) {
            decision = decision.tightened_by(ruling);
        }
        let covered = |grant: &&Grant| grant.is_live(context.now) && grant.covers(request);
        if decision.effect == Effect::Ask && grants.iter().any(|grant| covered(&grant)) {
            decision = decision.granted("you allowed it before");
        }
        decision
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Decision {
        let mut votes = Vec::with_capacity(self.members.len() + 1);
        let mut evaluations = Vec::new();
        for member in &self.members {
            let policy = member.policy.as_ref();
            let started = (self.stopwatch)();
            let abstains = !policy.handles().includes(&request.action);
            let (evaluation, failed) = if abstains {
                (abstention(), false)
            } else {
                match policy.evaluate(request, context).and_then(checked) {
                    Ok(evaluation) => (evaluation, false),
                    Err(error) => (fail_closed(policy.name(), &error), true),
                }
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
            if member.mode == Mode::Enforce {
                evaluations.push((policy.name(), evaluation, failed));
            }
        }
        let answers: Vec<(&str, Answer)> = evaluations
            .iter()
            .map(|(name, evaluation, failed)| (*name, answer(evaluation, *failed)))
            .collect();
        let counts = match self.combine.combine(&answers) {
            Outcome::NoOpinion => None,
            Outcome::Winner(index) | Outcome::Failed(index) => Some(index),
        };
        match counts.and_then(|index| evaluations.into_iter().nth(index)) {
            Some((name, evaluation, _)) => Decision::from_evaluation(name, evaluation, votes),
            None => Decision::nobody_has_an_opinion(votes),
        }
    }
}

/// Makes the denial that every failure in deciding becomes; nothing else makes one.
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
            severity: crate::verdict::Severity::High,
        },
        trace: Vec::new(),
    }
}

/// Refuses answers with obligations that this host cannot meet.
fn checked(evaluation: Evaluation) -> Result<Evaluation, PolicyError> {
    let unknown = match &evaluation.verdict {
        Verdict::Allow(obligations) => obligations.iter().find_map(|obligation| match obligation {
            Obligation::Other(attribute) => Some(attribute.name.clone()),
            // A rewrite needs a pack that declares it; packs do not exist without a manifest.
            Obligation::RewriteScript(_) => Some("rewrite-script".to_owned()),
            Obligation::RewriteInput(_) => Some("rewrite-input".to_owned()),
            Obligation::Notify(_) | Obligation::Advise(_) => None,
        }),
        Verdict::Abstain | Verdict::Ask(_) | Verdict::Deny(_) => None,
    };
    match unknown {
        Some(name) => {
            Err(PolicyError::BadAnswer { detail: format!("obligation `{name}` cannot be met by this host") })
        }
        None => Ok(evaluation),
    }
}

fn abstention() -> Evaluation {
    Evaluation { verdict: Verdict::Abstain, cause: Cause::default(), trace: Vec::new() }
}

fn answer(evaluation: &Evaluation, failed: bool) -> Answer {
    if failed {
        return Answer::Failed;
    }
    evaluation.verdict.effect().map_or(Answer::Abstain, Answer::Effect)
}

/// What the rule set says of `request`; none for actions that have no rules.
fn ruling_on(request: &Request, rules: &RuleSet) -> Option<Ruling> {
    match &request.action {
        Action::File(access) => {
            let mut strictest = on_path(rules, &access.path.canonical, access.operation.right());
            if let FileOperation::Move(other) | FileOperation::Link(other) = &access.operation {
                let second = on_path(rules, &other.canonical, crate::profile::FileRight::Write);
                if second.effect > strictest.effect {
                    strictest = second;
                }
            }
            Some(strictest)
        }
        Action::Network(access) => Some(rules.connection(&access.target, access.port, &access.process)),
        Action::Command(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Escalation(_)
        | Action::Other(_) => None,
    }
}

fn on_path(rules: &RuleSet, canonical: &str, right: crate::profile::FileRight) -> Ruling {
    match path_text::decode(canonical) {
        Some(path) => rules.file(&path, right, Caller::Tool),
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

fn ruling_cause(ruling: &Ruling) -> Cause {
    Cause {
        rule: ruling.rule.clone(),
        reason: ruling.reason.clone(),
        setting: ruling.setting.clone(),
        ..Cause::default()
    }
}

impl Decision {
    fn from_evaluation(policy: &str, evaluation: Evaluation, votes: Vec<Vote>) -> Self {
        let effect = evaluation.verdict.effect().unwrap_or(Effect::Ask);
        let mut decision = Self {
            effect,
            policy: policy.to_owned(),
            cause: evaluation.cause,
            denial: Denial::default(),
            question: None,
            obligations: Vec::new(),
            votes,
        };
        match evaluation.verdict {
            Verdict::Abstain => {}
            Verdict::Allow(obligations) => decision.obligations = obligations,
            Verdict::Ask(question) => decision.question = Some(question),
            Verdict::Deny(denial) => decision.denial = denial,
        }
        decision
    }

    fn nobody_has_an_opinion(votes: Vec<Vote>) -> Self {
        Self {
            effect: Effect::Ask,
            policy: "base".to_owned(),
            cause: Cause {
                rule: "base.no-opinion".to_owned(),
                reason: "no policy has an opinion on this".to_owned(),
                setting: String::new(),
                severity: crate::verdict::Severity::Info,
            },
            denial: Denial::default(),
            question: None,
            obligations: Vec::new(),
            votes,
        }
    }

    /// The stricter of the chain's answer and the rule set's. Where the chain had no opinion, the
    /// rule set's answer stands alone.
    fn tightened_by(mut self, ruling: Ruling) -> Self {
        self.votes.push(Vote {
            policy: format!("rules:{}", ruling.policy),
            digest: String::new(),
            mode: Mode::Enforce,
            effect: Some(ruling.effect),
            cause: ruling_cause(&ruling),
            failed: false,
            cost_us: 0,
        });
        let unopposed = self.cause.rule == "base.no-opinion" && self.policy == "base";
        if unopposed || ruling.effect > self.effect {
            self.effect = ruling.effect;
            self.cause = ruling_cause(&ruling);
            self.policy = ruling.policy;
            self.denial = Denial::default();
            if self.effect != Effect::Allow {
                self.obligations.clear();
            }
        }
        self
    }

    /// Turns `ask` into `allow` because the user said so; leaves every other decision as it is.
    #[must_use]
    pub fn granted(mut self, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Allow;
            self.cause.reason = reason.to_owned();
            self.policy = "user".to_owned();
        }
        self
    }

    /// Turns `ask` into `deny`, because the user said no or nobody is there.
    #[must_use]
    pub fn refused(mut self, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Deny;
            self.cause.reason = format!("{}; {reason}", self.cause.reason);
        }
        self
    }

    /// A denial by the host itself, for faults on the way to a decision.
    #[must_use]
    pub fn host_denial(rule: &str, reason: &str) -> Self {
        let mut decision = Self::nobody_has_an_opinion(Vec::new());
        decision.effect = Effect::Deny;
        decision.policy = "host".to_owned();
        decision.cause = Cause { rule: rule.to_owned(), reason: reason.to_owned(), ..Cause::default() };
        decision
    }

    /// The proof that `request` may be carried out; none unless this decision allows it.
    pub fn permit(&self, request: &Request) -> Option<Permit> {
        (self.effect == Effect::Allow).then(|| Permit::new(request))
    }

    /// The answer.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Who gave it: a policy, `settings`, `base`, `user` or `host`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Which rule, and why.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// What the model may do instead, where a policy says so.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.denial.hint.as_deref()
    }

    /// The question of the policy that asks, where it has one of its own.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    /// What the host must do if it lets the action through.
    #[must_use]
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// What everybody said.
    #[must_use]
    pub fn votes(&self) -> &[Vote] {
        &self.votes
    }
}

#[cfg(test)]
mod tests;
