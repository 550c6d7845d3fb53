//! The host's decision on a request. Only an allowing decision yields a permit.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::permit::Permit;
use crate::request::Request;
use crate::rules::Ruling;
use crate::verdict::{Cause, Denial, Effect, Evaluation, Obligation, Question, Verdict};

/// Whether the answer of a policy counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It counts.
    #[default]
    Enforce,
    /// It counts if it is stricter than the result without it.
    Tighten,
    /// It is logged and does not count.
    Observe,
}

/// The answer of one policy, or of the rule set, to a request; written to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vote {
    /// Name of the policy; for the rule set, `rules:` and the layer that answered.
    pub policy: String,
    /// Digest of the policy's component; empty for the rule set.
    pub digest: String,
    /// Whether the answer counts.
    pub mode: Mode,
    /// The answer; `None` for `abstain`.
    pub effect: Option<Effect>,
    /// The rule and the reason.
    pub cause: Cause,
    /// Whether the policy failed, so that `effect` is the resulting denial.
    pub failed: bool,
    /// The duration of the evaluation, in microseconds.
    pub cost_us: u64,
}

/// How an `ask` became the final answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Not at all: there was no `ask`, or it is still open.
    #[default]
    Nothing,
    /// By an earlier grant.
    Grant,
    /// By the user, now or earlier in the same session.
    User,
    /// There was no user to ask.
    NoUser,
    /// The user was asked and did not answer in time.
    Timeout,
    /// The question was withdrawn by its asker.
    Withdrawal,
}

/// The host's decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    effect: Effect,
    policy: String,
    cause: Cause,
    denial: Denial,
    question: Option<Question>,
    obligations: Vec<Obligation>,
    votes: Vec<Vote>,
    answered_by: AnsweredBy,
    context: Option<Box<Context>>,
}

impl Decision {
    /// Makes a decision of the answer of the policy that counts.
    pub(crate) fn of_policy(policy: &str, evaluation: Evaluation, votes: Vec<Vote>) -> Self {
        let effect = evaluation.verdict.effect().unwrap_or(Effect::Ask);
        let mut decision = Self::plain(effect, policy.to_owned(), evaluation.cause, votes);
        match evaluation.verdict {
            Verdict::Abstain | Verdict::Allow(_) => {}
            Verdict::Ask(question) => decision.question = Some(question),
            Verdict::Deny(denial) => decision.denial = denial,
        }
        decision
    }

    /// Adds the host's duties if the action is carried out.
    #[must_use]
    pub(crate) fn obliged(mut self, obligations: Vec<Obligation>) -> Self {
        self.obligations = obligations;
        self
    }

    /// Makes a decision of the answer of the rule set.
    pub(crate) fn of_rules(ruling: Ruling, votes: Vec<Vote>) -> Self {
        let cause = cause(&ruling);
        Self::plain(ruling.effect, ruling.policy, cause, votes)
    }

    /// Makes a decision of one rule outside the rule set, such as that on a used-up budget.
    #[must_use]
    pub fn by_rule(ruling: Ruling) -> Self {
        Self::of_rules(ruling, Vec::new())
    }

    /// Makes the decision for a request on which neither a policy nor the rule set has an opinion.
    pub(crate) fn of_nobody(votes: Vec<Vote>) -> Self {
        Self::by_host(Effect::Ask, "base", "base.no-opinion", "no policy has an opinion on this", votes)
    }

    /// Makes a denial by the host itself, for faults on the way to a decision.
    #[must_use]
    pub fn host_denial(rule: &str, reason: &str) -> Self {
        Self::by_host(Effect::Deny, "host", rule, reason, Vec::new())
    }

    fn by_host(effect: Effect, policy: &str, rule: &str, reason: &str, votes: Vec<Vote>) -> Self {
        let cause = Cause { rule: rule.to_owned(), reason: reason.to_owned(), ..Cause::default() };
        Self::plain(effect, policy.to_owned(), cause, votes)
    }

    fn plain(effect: Effect, policy: String, cause: Cause, votes: Vec<Vote>) -> Self {
        Self {
            effect,
            policy,
            cause,
            denial: Denial::default(),
            question: None,
            obligations: Vec::new(),
            votes,
            answered_by: AnsweredBy::default(),
            context: None,
        }
    }

    /// Stores the context of the decision. Together with the request it determines the answer.
    #[must_use]
    pub fn taken_in(self, context: Context) -> Self {
        Self { context: Some(Box::new(context)), ..self }
    }

    /// Adds the ruling of one of the host's own rules, unless it is milder.
    #[must_use]
    pub fn tightened(mut self, ruling: Ruling) -> Self {
        self.votes.push(vote(&ruling));
        if ruling.effect < self.effect {
            return self;
        }
        // The obligations of the policies still apply if the user allows the action.
        Self { obligations: self.obligations, context: self.context, ..Self::of_rules(ruling, self.votes) }
    }

    /// Turns `ask` into `allow` by the user's approval; leaves every other decision unchanged.
    #[must_use]
    pub fn granted(mut self, by: AnsweredBy, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Allow;
            self.cause.reason = reason.to_owned();
            self.answered_by = by;
        }
        self
    }

    /// Turns `ask` into `deny`, because the user said no or no answer came; leaves every other decision unchanged.
    #[must_use]
    pub fn denied(mut self, by: AnsweredBy, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Deny;
            self.cause.reason = format!("{}; {reason}", self.cause.reason);
            self.answered_by = by;
        }
        self
    }

    /// Returns the permit to carry out `request`, if this decision allows it.
    pub fn permit(&self, request: &Request) -> Option<Permit> {
        (self.effect == Effect::Allow).then(|| Permit::new(request))
    }

    /// Returns the effect.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Returns the source of the rule: a policy, a layer of the settings, `base`, `grant` or `host`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Returns the context of the decision; `None` for decisions of the host alone.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_deref()
    }

    /// Returns the rule and the reason.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns the alternative for the model, if a policy gives one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.denial.hint.as_deref()
    }

    /// Returns the question of the policy that asks, if it has one of its own.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    /// Returns the host's duties if it allows the action.
    #[must_use]
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// Returns all votes.
    #[must_use]
    pub fn votes(&self) -> &[Vote] {
        &self.votes
    }

    /// Returns true if `ruling` is among the votes of this decision.
    #[must_use]
    pub fn knows(&self, ruling: &Ruling) -> bool {
        let vote = vote(ruling);
        self.votes.contains(&vote)
    }

    /// Returns how an `ask` became this answer.
    #[must_use]
    pub fn answered_by(&self) -> AnsweredBy {
        self.answered_by
    }
}

/// Returns the vote of the rules for a ruling.
pub(crate) fn vote(ruling: &Ruling) -> Vote {
    Vote {
        policy: format!("rules:{}", ruling.policy),
        digest: String::new(),
        mode: Mode::Enforce,
        effect: Some(ruling.effect),
        cause: cause(ruling),
        failed: false,
        cost_us: 0,
    }
}

/// Returns the cause of a ruling.
fn cause(ruling: &Ruling) -> Cause {
    Cause {
        rule: ruling.rule.clone(),
        reason: ruling.reason.clone(),
        setting: ruling.setting.clone(),
        ..Cause::default()
    }
}
