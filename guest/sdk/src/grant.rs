//! Builders for the choices of a question.

use crate::{
    FilePattern, FileRights, GrantOption, GrantPattern, GrantScope, NetworkPattern, PathPattern, ToolPattern,
};

impl GrantOption {
    /// Returns a "yes" to exactly this request.
    pub fn exact(label: impl Into<String>, scope: GrantScope) -> Self {
        Self::new(label, scope, GrantPattern::Exact)
    }

    /// Returns a "yes" for paths.
    pub fn path(
        label: impl Into<String>,
        scope: GrantScope,
        pattern: FilePattern,
        rights: FileRights,
    ) -> Self {
        Self::new(label, scope, GrantPattern::Path(PathPattern { pattern, rights }))
    }

    /// Returns a "yes" for connections.
    pub fn network(label: impl Into<String>, scope: GrantScope, pattern: NetworkPattern) -> Self {
        Self::new(label, scope, GrantPattern::Network(pattern))
    }

    /// Returns a "yes" for every call of one tool of one provider.
    pub fn tool(
        label: impl Into<String>,
        scope: GrantScope,
        name: impl Into<String>,
        provider: impl Into<String>,
    ) -> Self {
        let pattern = ToolPattern { name: name.into(), provider: provider.into(), input_equals: Vec::new() };
        Self::new(label, scope, GrantPattern::Tool(pattern))
    }

    /// Returns a "yes" that lasts as long as its scope.
    pub fn new(label: impl Into<String>, scope: GrantScope, pattern: GrantPattern) -> Self {
        Self { label: label.into(), scope, pattern, lifetime: 0 }
    }

    /// Limits the "yes" to this many seconds.
    #[must_use]
    pub fn lifetime(mut self, seconds: u32) -> Self {
        self.lifetime = seconds;
        self
    }
}
