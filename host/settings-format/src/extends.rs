//! The key that makes an entry of `projects.json` hold differences.

use crate::json::Node;

/// The key that makes an entry hold differences.
pub const EXTENDS: &str = "extends";

/// The settings that an entry extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extends {
    /// `default.json`, or the built-in settings if that file does not exist.
    Default,
    /// The settings that apply without the entry: the entry of the closest directory above, else `default.json`.
    Parent,
}

impl Extends {
    /// Values of `extends` in a settings file.
    pub const WORDS: &[&str] = &["default", "parent"];

    /// Returns the settings that an entry extends, or `None` for a complete entry.
    pub fn from_entry(entry: &Node) -> Option<Self> {
        let node = entry.member(EXTENDS)?;
        Some(if node.text() == Some("parent") { Self::Parent } else { Self::Default })
    }

    /// Returns the text of an entry that is created for an answer.
    pub fn begins_as(self) -> &'static str {
        match self {
            Self::Default => "{ \"extends\": \"default\" }",
            Self::Parent => "{ \"extends\": \"parent\" }",
        }
    }
}
