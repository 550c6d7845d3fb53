//! Builders for the description of a policy.

use crate::{ActionKinds, Context, Descriptor, RuleInfo};

impl Descriptor {
    /// Returns a description without rules, subscriptions and configuration.
    pub fn new(id: impl Into<String>, version: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            version: version.into(),
            title: title.into(),
            handles: ActionKinds::empty(),
            rules: Vec::new(),
            config_schema: String::new(),
        }
    }

    /// Adds kinds of action for which `evaluate` is to be called.
    #[must_use]
    pub fn handles(mut self, kinds: ActionKinds) -> Self {
        self.handles |= kinds;
        self
    }

    /// Adds a rule that verdicts and profiles may name.
    #[must_use]
    pub fn rule(mut self, id: impl Into<String>, title: impl Into<String>) -> Self {
        self.rules.push(RuleInfo { id: id.into(), title: title.into(), help: String::new() });
        self
    }

    /// Sets the JSON Schema of the configuration.
    #[must_use]
    pub fn config_schema(mut self, schema: impl Into<String>) -> Self {
        self.config_schema = schema.into();
        self
    }
}

impl Context {
    /// Returns the directory where the agent was started; empty if the host gave none, which no rule about paths
    /// matches.
    pub fn cwd(&self) -> &str {
        self.workspace.roots.first().map_or("", String::as_str)
    }
}
