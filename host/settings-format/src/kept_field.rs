//! Fields that are set and have no effect.

/// A field that is set and has no effect.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeptField {
    /// Field name, as in the table of fields.
    pub name: &'static str,
    /// JSON pointer to the value.
    pub pointer: String,
    /// The value.
    pub value: serde_json::Value,
    /// Why it has no effect.
    pub reason: &'static str,
}
