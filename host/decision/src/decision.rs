//! The host's answer to a request. Only an allowing one makes a permit.

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
    /// It counts where it is stricter than what the others and the host say without it.
    Tighten,
    /// It is logged and does not count.
    Observe,
}

/// What one policy, or the rule set, said of a request; written to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vote {
    /// Name of the policy; `rules:` and the layer that answered, for the rule set.
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

/// What turned an `ask` into the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Nothing: there was no `ask`, or it is still open.
    #[default]
    Nothing,
    /// A grant that was given before.
    Grant,
    /// The user, now or before in the same session.
    User,
    /// Nobody was there to be asked.
    Nobody,
    /// The user was asked, and said nothing in time.
    Timeout,
    /// Whoever wanted to know has taken the question back.
    Withdrawal,
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
    answered_by: AnsweredBy,
    context: Option<Box<Context>>,
}

impl Decision {
    /// The answer of the policy that counts.
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

    /// Adds what the host must do if the action goes ahead.
    #[must_use]
    pub(crate) fn obliged(mut self, obligations: Vec<Obligation>) -> Self {
        self.obligations = obligations;
        self
    }

    /// The answer of the rule set.
    pub(crate) fn of_rules(ruling: Ruling, votes: Vec<Vote>) -> Self {
        let cause = cause(&ruling);
        Self::plain(ruling.effect, ruling.policy, cause, votes)
    }

    /// The answer of one rule that stands for itself, such as that on a used-up budget.
    #[must_use]
    pub fn by_rule(ruling: Ruling) -> Self {
        Self::of_rules(ruling, Vec::new())
    }

    /// The answer where neither a policy nor the rule set has an opinion.
    pub(crate) fn of_nobody(votes: Vec<Vote>) -> Self {
        Self::by_host(Effect::Ask, "base", "base.no-opinion", "no policy has an opinion on this", votes)
    }

    /// A denial by the host itself, for faults on the way to a decision.
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

    /// Keeps the context that it was taken in: with the request all that an answer depends on.
    #[must_use]
    pub fn taken_in(self, context: Context) -> Self {
        Self { context: Some(Box::new(context)), ..self }
    }

    /// Adds what a rule of the host's own says of the same request: it counts where it is not milder.
    #[must_use]
    pub fn tightened(mut self, ruling: Ruling) -> Self {
        self.votes.push(crate::chain::vote(&ruling));
        if ruling.effect < self.effect {
            return self;
        }
        // What policies want done if it goes ahead still holds when the user lets it.
        Self { obligations: self.obligations, context: self.context, ..Self::of_rules(ruling, self.votes) }
    }

    /// Turns `ask` into `allow` because the user said so; leaves every other decision as it is.
    #[must_use]
    pub fn granted(mut self, by: AnsweredBy, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Allow;
            self.cause.reason = reason.to_owned();
            self.answered_by = by;
        }
        self
    }

    /// Turns `ask` into `deny`, because the user said no or no answer came; leaves every other decision as it is.
    #[must_use]
    pub fn refused(mut self, by: AnsweredBy, reason: &str) -> Self {
        if self.effect == Effect::Ask {
            self.effect = Effect::Deny;
            self.cause.reason = format!("{}; {reason}", self.cause.reason);
            self.answered_by = by;
        }
        self
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

    /// Whose rule it is: a policy's, a layer's of the settings, `base`, `grant` or `host`.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The context that it was taken in; none for what the host decides by itself.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.context.as_deref()
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

    /// Whether this was decided knowing what `ruling` says.
    #[must_use]
    pub fn knows(&self, ruling: &Ruling) -> bool {
        let vote = crate::chain::vote(ruling);
        self.votes.contains(&vote)
    }

    /// What turned an `ask` into this answer.
    #[must_use]
    pub fn answered_by(&self) -> AnsweredBy {
        self.answered_by
    }
}

/// The cause that a ruling stands for.
pub(crate) fn cause(ruling: &Ruling) -> Cause {
    Cause {
        rule: ruling.rule.clone(),
        reason: ruling.reason.clone(),
        setting: ruling.setting.clone(),
        ..Cause::default()
    }
}
