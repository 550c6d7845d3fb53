//! A policy that is a text: the shipped component of its language, and the text as its configuration.

use std::path::Path;

use anyhow::Context as _;
use portcullis_bootstrap::policy_source;
use serde_json::{Map, Value};

/// The text of a policy, as a part of its configuration.
#[derive(Debug, Clone, Default)]
pub struct PolicyText(Map<String, Value>);

impl PolicyText {
    /// Reads a text, with the component that runs it. Returns `None` if the file is no text, by its name.
    ///
    /// # Errors
    /// If the text cannot be read.
    pub(crate) fn open(file: &Path) -> anyhow::Result<Option<(Self, Vec<u8>)>> {
        let text = policy_source::text(file)?;
        Ok(text.map(|(component, config)| (Self(config), component.bytes.into_owned())))
    }

    /// Returns a configuration with the text in it.
    ///
    /// # Errors
    /// If the configuration is no JSON object.
    pub(crate) fn in_config(&self, config: &str) -> anyhow::Result<String> {
        let mut config: Map<String, Value> =
            serde_json::from_str(config).context("reading the configuration, which is a JSON object")?;
        config.extend(self.0.clone());
        Ok(Value::Object(config).to_string())
    }
}
