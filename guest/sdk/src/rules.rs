//! Builders for standing rules.

use crate::{
    Choice, Effect, FilePattern, FileRights, FileRule, Limits, NetworkPattern, NetworkRule, Profile,
};

impl Profile {
    /// Returns a profile without any opinion.
    pub fn new() -> Self {
        Self {
            files: Vec::new(),
            network: Vec::new(),
            budgets: Vec::new(),
            sockets: Vec::new(),
            ports: Vec::new(),
            environment: Vec::new(),
            variables: Vec::new(),
            limits: Limits::host_defaults(),
            tracing: Choice::NoOpinion,
            attributes: Vec::new(),
        }
    }

    /// Adds a rule on paths. It takes precedence over all earlier ones.
    #[must_use]
    pub fn file(mut self, rule: FileRule) -> Self {
        self.files.push(rule);
        self
    }

    /// Adds a rule on connections. It takes precedence over all earlier ones.
    #[must_use]
    pub fn network(mut self, rule: NetworkRule) -> Self {
        self.network.push(rule);
        self
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::new()
    }
}

impl Limits {
    /// Returns limits that leave everything to the host.
    pub fn host_defaults() -> Self {
        Self {
            wall_ms: None,
            cpu_ms: None,
            memory_mib: None,
            processes: None,
            open_files: None,
            file_mib: None,
            output_kib: None,
        }
    }
}

impl FileRule {
    /// Returns a rule that allows.
    pub fn allow(id: impl Into<String>, pattern: FilePattern, rights: FileRights) -> Self {
        Self::new(id, pattern, rights, Effect::Allow)
    }

    /// Returns a rule that asks the user.
    pub fn ask(id: impl Into<String>, pattern: FilePattern, rights: FileRights) -> Self {
        Self::new(id, pattern, rights, Effect::Ask)
    }

    /// Returns a rule that denies; commands see the path and are refused.
    pub fn deny(id: impl Into<String>, pattern: FilePattern, rights: FileRights) -> Self {
        Self::new(id, pattern, rights, Effect::Deny)
    }

    /// Returns a rule without condition and reason.
    pub fn new(id: impl Into<String>, pattern: FilePattern, rights: FileRights, effect: Effect) -> Self {
        Self {
            id: id.into(),
            pattern,
            rights,
            effect,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        }
    }

    /// Hides the path from commands that may not read it.
    #[must_use]
    pub fn conceal(mut self) -> Self {
        self.conceal = true;
        self
    }

    /// Adds a condition that only the host can check.
    #[must_use]
    pub fn condition(mut self, condition: impl Into<String>) -> Self {
        self.condition = condition.into();
        self
    }

    /// Sets the reason, one sentence for the user.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Sets the value of the configuration that made the rule, as a JSON pointer.
    #[must_use]
    pub fn setting(mut self, pointer: impl Into<String>) -> Self {
        self.setting = pointer.into();
        self
    }
}

impl NetworkRule {
    /// Returns a rule that allows every program to connect.
    pub fn allow(id: impl Into<String>, target: NetworkPattern) -> Self {
        Self::new(id, target, Effect::Allow)
    }

    /// Returns a rule that asks the user, whatever the program.
    pub fn ask(id: impl Into<String>, target: NetworkPattern) -> Self {
        Self::new(id, target, Effect::Ask)
    }

    /// Returns a rule that denies, whatever the program.
    pub fn deny(id: impl Into<String>, target: NetworkPattern) -> Self {
        Self::new(id, target, Effect::Deny)
    }

    /// Returns a rule for every program.
    pub fn new(id: impl Into<String>, target: NetworkPattern, effect: Effect) -> Self {
        Self {
            id: id.into(),
            target,
            program: "*".into(),
            effect,
            reason: String::new(),
            setting: String::new(),
        }
    }

    /// Restricts the rule to one program, by path or last component.
    #[must_use]
    pub fn program(mut self, program: impl Into<String>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the reason, one sentence for the user.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Sets the value of the configuration that made the rule, as a JSON pointer.
    #[must_use]
    pub fn setting(mut self, pointer: impl Into<String>) -> Self {
        self.setting = pointer.into();
        self
    }
}
