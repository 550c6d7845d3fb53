//! Schema of a field: its values and how they are treated.

/// One field of the settings.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name, such as `network.allowedDomains`; `[]` stands for each item of a list.
    pub name: &'static str,
    /// The values that it may have.
    pub shape: Shape,
    /// Whether it must be present if its parent is.
    pub presence: Presence,
    /// How the field is treated.
    pub status: Status,
    /// Its meaning, in a phrase.
    pub meaning: &'static str,
}

impl Field {
    /// Returns the default of the field as its meaning words it, if it states one.
    #[must_use]
    pub fn default_in_words(&self) -> Option<&'static str> {
        let (_, words) = self.meaning.split_once("Default")?;
        let words = words.trim_start_matches(':').trim_start();
        Some(words.split([';', '.']).next().unwrap_or(words))
    }
}

/// The values that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
    /// A text that is an absolute path, or one below `~`.
    AbsolutePath,
    /// A whole number in a range, bounds included.
    Integer(u32, u32),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A path: a string, or `{ "path": …, "literal": true }`.
    Path,
    /// A host to allow: `host`, `*.host`, each with an optional `:port`.
    AllowedDomain,
    /// A host to deny: as above, or `*`.
    DeniedDomain,
    /// An IP address or a CIDR block.
    Address,
    /// The name of an environment variable.
    VariableName,
    /// A glob over names of environment variables.
    VariableGlob,
    /// A list with items of one shape.
    List(&'static Self),
    /// An object with free keys and values of one shape.
    Map(&'static Self),
    /// An object with fields of its own.
    Object,
    /// A list of objects with fields of their own.
    Objects,
    /// Any object; another component interprets it.
    AnyObject,
    /// Exactly two ports, the lower first.
    PortRange,
}

/// Whether a field must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must be present.
    Required,
    /// It can be left out.
    Optional,
}

/// How a field is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is in effect.
    Honoured,
    /// It is checked, kept and reported, but has no effect.
    ///
    /// Never used for a field that would weaken the protection if ignored. The text says why it needs no effect.
    NoEffect(&'static str),
    /// It is refused with this reason, unless its value is `false` or an empty list, which request nothing.
    Refused(&'static str),
}

impl Field {
    /// Returns the last part of the name, which is the key in the file.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, key)| key)
    }
}

impl Shape {
    /// Describes the shape in a user's words, for errors and for the reference page.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Text => "text".to_owned(),
            Self::AbsolutePath => "an absolute path".to_owned(),
            Self::Integer(low, high) => format!("a whole number from {low} to {high}"),
            Self::OneOf(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
            }
            Self::Path => "a path".to_owned(),
            Self::AllowedDomain | Self::DeniedDomain => "a domain".to_owned(),
            Self::Address => "an address or block".to_owned(),
            Self::VariableName => "a variable name".to_owned(),
            Self::VariableGlob => "a pattern over variable names".to_owned(),
            Self::List(item) => format!("a list, each item {}", item.describe()),
            Self::Map(value) => format!("an object, each value {}", value.describe()),
            Self::Object | Self::AnyObject => "an object".to_owned(),
            Self::Objects => "a list, each item an object".to_owned(),
            Self::PortRange => "two ports, the lower first, at most 64 apart".to_owned(),
        }
    }
}
