//! The configuration of a text policy.

use portcullis_sdk::ConfigError;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::place::Place;

/// The configuration: the text of the policy and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TextConfig {
    /// The file that the host read the text from; for messages.
    pub policy_file: Option<String>,
    /// The text.
    pub policy_text: String,
    /// Data for the text, in languages that have a place for it.
    #[serde(default)]
    pub data: Map<String, Value>,
}

/// The pointer of the text in the configuration.
const TEXT: &str = "/policyText";

impl TextConfig {
    /// Returns the name of the file without its directories, or the name of the key.
    pub fn file_name(&self) -> &str {
        let name = self.policy_file.as_deref().and_then(|path| path.rsplit('/').next());
        name.filter(|name| !name.is_empty()).unwrap_or("policyText")
    }

    /// Returns an error at a position of the text: `team.cedar:3:7: message; hint`.
    pub fn error_at(&self, place: Place, message: &str, hint: Option<&str>) -> ConfigError {
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        ConfigError::new(TEXT, format!("{}:{place}: {message}{hint}", self.file_name()))
    }

    /// Returns an error about the whole text.
    pub fn error(&self, message: &str) -> ConfigError {
        ConfigError::new(TEXT, format!("{}: {message}", self.file_name()))
    }
}
