//! The text of a policy in a file of its own, which `policyFile` in its configuration names.

use std::path::Path;

use portcullis_settings_format::ConfigError;
use serde_json::{Map, Value};

use crate::disk::Disk;

/// The key that names the file, and the key of its text in the configuration that the policy gets.
const FILE: &str = "policyFile";
const TEXT: &str = "policyText";

/// The most bytes of such a text: a quarter of the largest configuration, since JSON makes a text longer.
pub const LARGEST_TEXT: usize = 256 * 1024;

/// Returns the file that a configuration names, as written.
#[must_use]
pub fn named(config: &Map<String, Value>) -> Option<&Path> {
    config.get(FILE)?.as_str().map(Path::new)
}

/// Reads the named file, and returns the configuration that the policy gets: with the file's text.
///
/// # Errors
/// If the configuration has a text already, or the file cannot be read, is too large or is no text.
pub(crate) fn with_text(
    mut config: Map<String, Value>,
    file: &Path,
    disk: &dyn Disk,
) -> Result<Map<String, Value>, ConfigError> {
    let wrong = |reason: String| ConfigError::PolicyText { file: file.to_owned(), reason };
    if config.contains_key(TEXT) {
        return Err(wrong("the configuration has either `policyFile` or `policyText`".to_owned()));
    }
    let bytes = disk.read(file).map_err(|error| wrong(error.to_string()))?;
    let text = text_of(bytes).map_err(|reason| wrong(reason.to_owned()))?;
    config.insert(TEXT.to_owned(), text.into());
    Ok(config)
}

fn text_of(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() > LARGEST_TEXT {
        return Err("it is larger than 256 KiB");
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8")
}

/// Reads a text that the command line names, and returns it as the configuration of its policy.
///
/// # Errors
/// As for a text that the settings name.
pub fn configuration_of(file: &Path, disk: &dyn Disk) -> Result<Map<String, Value>, ConfigError> {
    let name = Value::from(file.to_string_lossy());
    with_text(Map::from_iter([(FILE.to_owned(), name)]), file, disk)
}

/// Refuses a name in a configuration that is itself in a file: only names in the settings are protected.
pub(crate) fn refuse_in(config: &Map<String, Value>, file: &Path) -> Result<(), ConfigError> {
    match named(config) {
        None => Ok(()),
        Some(_) => {
            let reason =
                "`policyFile` belongs in `config` in the settings, which protect the file".to_owned();
            Err(ConfigError::PolicyConfig { file: file.to_owned(), reason })
        }
    }
}

/// The language of a policy that is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLanguage {
    /// Cedar, in `.cedar` files.
    Cedar,
    /// Rego, in `.rego` files.
    Rego,
}

impl TextLanguage {
    /// Returns the language by the file's extension.
    #[must_use]
    pub fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "cedar" => Some(Self::Cedar),
            "rego" => Some(Self::Rego),
            _ => None,
        }
    }

    /// Returns the name of the shipped policy that runs it.
    #[must_use]
    pub fn policy(self) -> &'static str {
        match self {
            Self::Cedar => "cedar",
            Self::Rego => "rego",
        }
    }
}
