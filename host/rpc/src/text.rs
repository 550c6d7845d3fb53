//! Strings that are validated once, when they are created.

use serde::{Deserialize, Deserializer, Serialize};

/// A string without NUL: it means the same to the kernel as it does here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
#[serde(transparent)]
pub struct Text(String);

/// A path that starts at the root and has no NUL. It may still hold `..`, links and repeated slashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
#[serde(transparent)]
pub struct AbsolutePath(String);

impl Text {
    /// Returns the text, or `None` if it contains a NUL.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.contains('\0')).then_some(Self(text))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts the text into a `String`.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl AbsolutePath {
    /// Returns the path, or `None` if it is not absolute or contains a NUL.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Option<Self> {
        let path = path.into();
        (path.starts_with('/') && !path.contains('\0')).then_some(Self(path))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path.
    #[must_use]
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("a text holds a NUL character"))
    }
}

impl<'de> Deserialize<'de> for AbsolutePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        let shown = path.escape_debug().to_string();
        Self::new(path).ok_or_else(|| serde::de::Error::custom(format!("`{shown}` is no absolute path")))
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::fmt::Display for AbsolutePath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}
