//! Policy configuration in a file of its own, TOML or JSON.

use std::path::Path;

use serde_json::{Map, Value};

use crate::disk::Disk;
use crate::error::ConfigError;

/// The format of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Toml,
    Json,
}

impl Form {
    /// Returns the format by the file's extension.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Reads a configuration in full. Unknown keys are kept, since the policy itself refuses them.
pub(crate) fn read(file: &Path, disk: &dyn Disk) -> Result<Map<String, Value>, ConfigError> {
    let bytes = disk.read(file).map_err(|source| ConfigError::Read { file: file.to_owned(), source })?;
    let wrong = |reason: String| ConfigError::PolicyConfig { file: file.to_owned(), reason };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text".to_owned()))?;
    let read = match Form::of(file) {
        Some(Form::Toml) => toml::from_str(&text).map_err(|error| error.to_string()),
        Some(Form::Json) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        None => Err("its name ends in neither `.toml` nor `.json`".to_owned()),
    };
    read.map_err(wrong)
}
