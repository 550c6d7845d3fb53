//! Builders for verdicts.

use crate::{
    Allowance, Cause, ContentBlock, Denial, Evaluation, GrantOption, Obligation, OutputEvaluation,
    OutputVerdict, Question, Severity, TraceStep, Verdict,
};

impl Evaluation {
    /// Returns the answer of a policy that has no opinion.
    pub fn abstain() -> Self {
        Self::new(Verdict::Abstain, "", "")
    }

    /// Returns an `allow`.
    pub fn allow(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Verdict::Allow(Allowance { obligations: Vec::new() }), rule, reason)
    }

    /// Returns a question to the user, without choices of its own.
    pub fn ask(rule: impl Into<String>, reason: impl Into<String>, title: impl Into<String>) -> Self {
        let question = Question { title: title.into(), details: None, options: Vec::new(), timeout_ms: None };
        Self::new(Verdict::Ask(question), rule, reason).severity(Severity::Medium)
    }

    /// Returns a `deny` that the user cannot override.
    pub fn deny(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Verdict::Deny(Denial { hint: None, overridable: false }), rule, reason)
            .severity(Severity::High)
    }

    /// Returns an answer of any kind.
    pub fn new(verdict: Verdict, rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { verdict, cause: Cause::new(rule, reason), trace: Vec::new() }
    }

    /// Sets the value of the configuration that made the rule, as a JSON pointer.
    #[must_use]
    pub fn setting(mut self, pointer: impl Into<String>) -> Self {
        self.cause.setting = pointer.into();
        self
    }

    /// Sets the severity that is shown to the user.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.cause.severity = severity;
        self
    }

    /// Adds a hint to the model about alternatives. Only a `deny` has a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Verdict::Deny(denial) = &mut self.verdict {
            denial.hint = Some(hint.into());
        }
        self
    }

    /// Lets the user override a `deny` once. Only a `deny` can be overridden.
    #[must_use]
    pub fn overridable(mut self) -> Self {
        if let Verdict::Deny(denial) = &mut self.verdict {
            denial.overridable = true;
        }
        self
    }

    /// Adds a choice to a question, after the existing ones. Only a question has choices.
    #[must_use]
    pub fn offer(mut self, option: GrantOption) -> Self {
        if let Verdict::Ask(question) = &mut self.verdict {
            question.options.push(option);
        }
        self
    }

    /// Adds a longer text to a question. Only a question has one.
    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        if let Verdict::Ask(question) = &mut self.verdict {
            question.details = Some(details.into());
        }
        self
    }

    /// Adds an obligation for the host if it lets the action through. Only an `allow` has obligations.
    #[must_use]
    pub fn oblige(mut self, obligation: Obligation) -> Self {
        if let Verdict::Allow(allowance) = &mut self.verdict {
            allowance.obligations.push(obligation);
        }
        self
    }

    /// Adds a step to the trace; for `context.explain`.
    #[must_use]
    pub fn step(mut self, step: TraceStep) -> Self {
        self.trace.push(step);
        self
    }
}

impl Cause {
    /// Returns a cause with neutral severity and no setting.
    pub fn new(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { rule: rule.into(), reason: reason.into(), setting: String::new(), severity: Severity::Info }
    }
}

impl OutputEvaluation {
    /// Returns the answer of a policy that has no opinion on an output.
    pub fn abstain() -> Self {
        Self { verdict: OutputVerdict::Abstain, cause: Cause::new("", "") }
    }

    /// Returns the answer that an output is harmless.
    pub fn pass(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { verdict: OutputVerdict::Pass, cause: Cause::new(rule, reason) }
    }

    /// Replaces the blocks of an output: by the same number, of the same kinds.
    pub fn replace(rule: impl Into<String>, reason: impl Into<String>, blocks: Vec<ContentBlock>) -> Self {
        Self { verdict: OutputVerdict::Replace(blocks), cause: Cause::new(rule, reason) }
    }

    /// Withholds an output from the model.
    pub fn withhold(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { verdict: OutputVerdict::Withhold, cause: Cause::new(rule, reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GrantScope;

    #[test]
    fn builders_touch_only_the_verdict_they_belong_to() {
        let deny = Evaluation::deny("a.b", "no").hint("ask the user").overridable();
        assert_eq!(
            deny.verdict,
            Verdict::Deny(Denial { hint: Some("ask the user".into()), overridable: true })
        );

        let ask =
            Evaluation::ask("a.b", "why", "May it?").offer(GrantOption::exact("Once", GrantScope::Once));
        let Verdict::Ask(question) = &ask.verdict else { panic!("{ask:?}") };
        assert_eq!(question.options.len(), 1);

        let allow = Evaluation::allow("a.b", "yes");
        assert_eq!(allow.clone().hint("x").overridable().details("y"), allow);
    }
}
