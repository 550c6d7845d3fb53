//! Policy configuration in a file of its own, TOML or JSON.

use std::path::Path;

use portcullis_settings_format::{ConfigError, PolicyConfigForm};
use serde_json::{Map, Value};

use crate::disk::Disk;

/// Reads a configuration in full. Unknown keys are kept, since the policy itself refuses them.
pub(crate) fn read(file: &Path, disk: &dyn Disk) -> Result<Map<String, Value>, ConfigError> {
    let bytes = disk.read(file).map_err(|source| ConfigError::Read { file: file.to_owned(), source })?;
    let wrong = |reason: String| ConfigError::PolicyConfig { file: file.to_owned(), reason };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text".to_owned()))?;
    let read = match PolicyConfigForm::of(file) {
        Some(PolicyConfigForm::Toml) => toml::from_str(&text).map_err(|error| error.to_string()),
        Some(PolicyConfigForm::Json) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        None => Err("its name ends in neither `.toml` nor `.json`".to_owned()),
    };
    read.map_err(wrong)
}
