//! Puts requests to one policy as the enforcer does: its verdict, its standing rules, and the host's checks of both.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_decision::chain::{fail_closed, hear, ruling_on};
use portcullis_decision::verdict::Evaluation;
use portcullis_decision::{
    Context, Effect, Policy, PolicyError, Profile, Request, RuleLayer, RuleSet, Ruling,
};

use crate::contribution::Contribution;
use crate::corpus::{Item, PolicyAnswer};
use crate::loosening::base_of;

/// A policy to which requests are put.
pub struct Simulator {
    policy: Arc<dyn Policy>,
    /// The rules in the latest contexts, the newest last.
    rules: Mutex<Vec<(Context, Arc<Rules>)>>,
}

/// The standing rules in one context.
struct Rules {
    profile: Result<Profile, PolicyError>,
    compiled: RuleSet,
    base: RuleSet,
}

/// The answers of a policy to a request.
#[derive(Debug)]
pub struct Simulated {
    /// The verdict; a failed policy denies, as in a session.
    pub evaluation: Evaluation,
    /// Whether the policy failed.
    pub failed: bool,
    /// The standing rule that matches.
    pub rule: Option<Ruling>,
    pub(crate) part: Contribution,
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Simulator").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl Simulator {
    /// Returns a simulator of a configured policy.
    #[must_use]
    pub fn new(policy: Arc<dyn Policy>) -> Self {
        Self { policy, rules: Mutex::default() }
    }

    pub(crate) fn policy(&self) -> &dyn Policy {
        self.policy.as_ref()
    }

    /// Returns the answers to a request of a corpus.
    #[must_use]
    pub fn judge(&self, item: &Item) -> Simulated {
        self.evaluate(&item.request, &item.context)
    }

    /// Returns true if the policy judges a request, by a verdict or by a rule.
    #[must_use]
    pub fn decides(&self, item: &Item) -> bool {
        self.policy.handles().includes(&item.request.action) || self.judge(item).rule.is_some()
    }

    /// Returns the answers to a request.
    #[must_use]
    pub fn evaluate(&self, request: &Request, context: &Context) -> Simulated {
        let rules = self.rules(context);
        let policy = self.policy.as_ref();
        let evaluated = match &rules.profile {
            // Without its rules no session begins.
            Err(error) => Err(error.clone()),
            Ok(_) => hear(policy, request, context),
        };
        let failed = evaluated.is_err();
        let evaluation = evaluated.unwrap_or_else(|error| fail_closed(policy.name(), &error));
        let rule = ruling_on(request, &rules.compiled).filter(|ruling| ruling.policy != BASE);
        let part = Contribution {
            verdict: evaluation.verdict.effect(),
            rule: rule.as_ref().map(|ruling| ruling.effect),
            base: ruling_on(request, &rules.base).map(|ruling| ruling.effect),
        };
        Simulated { evaluation, failed, rule, part }
    }

    /// Returns the standing rules in a context.
    ///
    /// # Errors
    /// If the policy fails.
    pub fn standing(&self, context: &Context) -> Result<Profile, PolicyError> {
        self.rules(context).profile.clone()
    }

    fn rules(&self, context: &Context) -> Arc<Rules> {
        let facts = Context { now: 0, grants: Vec::new(), explain: false, ..context.clone() };
        let mut known = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rules)) = known.iter().find(|(of, _)| *of == facts) {
            return Arc::clone(rules);
        }
        let profile = self.policy.standing(&facts).map(Option::unwrap_or_default);
        let layer = RuleLayer {
            name: self.policy.name().to_owned(),
            profile: profile.clone().unwrap_or_default(),
            tightens: false,
        };
        let compiled = RuleSet::compile(vec![layer], base_of(&facts), &[]);
        // Rules on paths in the temporary directory change the base.
        let base = RuleSet::compile(Vec::new(), compiled.base().clone(), &[]);
        let rules = Arc::new(Rules { profile, compiled, base });
        if known.len() == KEPT_CONTEXTS {
            known.remove(0);
        }
        known.push((facts, Arc::clone(&rules)));
        rules
    }
}

/// Number of contexts whose rules are kept: cases and logs have few.
const KEPT_CONTEXTS: usize = 16;

/// The source of rulings that no policy makes.
const BASE: &str = "base";

impl Simulated {
    /// Returns the policy's own answer, the stricter of verdict and rule; `None` if it has no opinion.
    #[must_use]
    pub fn effect(&self) -> Option<Effect> {
        self.part.own()
    }

    /// Returns the rule that decides, if it is stricter than the verdict.
    #[must_use]
    pub fn deciding_rule(&self) -> Option<&Ruling> {
        self.rule.as_ref().filter(|ruling| Some(ruling.effect) > self.part.verdict)
    }

    /// Returns the answer in words.
    #[must_use]
    pub fn answer(&self) -> PolicyAnswer {
        if self.failed {
            return PolicyAnswer::new("failed", "", &self.evaluation.cause.reason);
        }
        let word = self.effect().map_or_else(|| "abstain".to_owned(), |effect| effect.to_string());
        match self.deciding_rule() {
            Some(ruling) => PolicyAnswer::new(&word, &ruling.rule, &ruling.reason),
            None => {
                let cause = &self.evaluation.cause;
                PolicyAnswer::new(&word, &cause.rule, &cause.reason)
            }
        }
    }
}
