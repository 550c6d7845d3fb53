//! A definition as it was read.

use std::path::PathBuf;

/// The user's text for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The file.
    pub file: PathBuf,
    /// The agent's name; empty without one.
    pub agent: String,
    /// The text, in parts.
    pub parts: Vec<TemplatePart>,
    /// The skills.
    pub skills: Vec<Skill>,
}

/// A part of a definition's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text as it is.
    Text(String),
    /// A value to be filled in.
    Value(TemplateValue),
}

/// A value that a definition can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateValue {
    /// The agent's name.
    Agent,
    /// The programs that commands can run.
    Programs,
    /// The project's directory.
    Project,
    /// The computed statement of the rules in force.
    Rules,
    /// The skills with their descriptions.
    Skills,
    /// The operating system.
    System,
}

impl TemplateValue {
    /// All values, with their names.
    pub const NAMES: [(&str, Self); 6] = [
        ("agent", Self::Agent),
        ("programs", Self::Programs),
        ("project", Self::Project),
        ("rules", Self::Rules),
        ("skills", Self::Skills),
        ("system", Self::System),
    ];
}

/// A skill of pi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its file.
    pub file: PathBuf,
}

impl AgentDefinition {
    /// Returns true if the text names a value.
    #[must_use]
    pub fn names(&self, value: TemplateValue) -> bool {
        self.parts.contains(&TemplatePart::Value(value))
    }
}
