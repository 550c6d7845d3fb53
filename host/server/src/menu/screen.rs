//! Content and events of a screen.

/// A screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) items: Vec<Item>,
    /// The initially selected item.
    pub(crate) selected: usize,
    /// Keys besides arrows, Enter and Escape.
    pub(crate) keys: Vec<(char, &'static str)>,
    /// A text input: its label and initial text.
    pub(crate) input: Option<(String, String)>,
    pub(crate) need: Option<Need>,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// The tone of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Good,
    Bad,
}

/// An item to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Item {
    /// An id, if the label does not identify it; not shown.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) value: Option<String>,
    pub(crate) problem: Option<String>,
}

/// An action that only the client can perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Enable,
    Disable,
    Close,
}

/// An event on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Open,
    Choose(usize),
    Key(char, usize),
    Text(String),
    Back,
}

impl Screen {
    pub(crate) fn needing(need: Need) -> Self {
        Self { need: Some(need), ..Self::default() }
    }
}

impl Line {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    pub(crate) fn faint(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Faint }
    }

    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Good }
    }

    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Bad }
    }
}

impl Item {
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    pub(crate) fn valued(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..Self::new(label) }
    }

    /// Returns the same item with this id.
    pub(crate) fn standing_for(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }
}

/// The transition after an event in a screen that changes settings.
pub(super) enum SettingsStep {
    Stay,
    Back,
    Said(Line),
}
