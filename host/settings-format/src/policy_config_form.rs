//! The format of a policy's configuration file.

use std::path::Path;

/// The format of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyConfigForm {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl PolicyConfigForm {
    /// Returns the format by the file's extension.
    pub fn from_extension(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}
