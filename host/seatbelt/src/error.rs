//! Reasons why there is no profile.

use std::path::PathBuf;

use portcullis_decision::RuleLayer;
use portcullis_decision::profile::FileRule;

/// The reason why rules cannot be written as a profile; no command may run then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CompileError {
    /// A restricting pattern with characters that the language cannot say.
    #[error(
        "macOS' sandbox cannot check the pattern `{pattern}` of the rule `{rule}` ({layer}); write it without such characters or classes"
    )]
    Pattern { pattern: String, rule: String, layer: String },
    /// A path that is not UTF-8.
    #[error("macOS' sandbox cannot name `{}`, which is not UTF-8", path.display())]
    Path { path: PathBuf },
}

impl CompileError {
    pub(crate) fn of_rule(layer: &RuleLayer, rule: &FileRule) -> Self {
        Self::Pattern { pattern: rule.pattern.to_string(), rule: rule.id.clone(), layer: layer.name.clone() }
    }
}
