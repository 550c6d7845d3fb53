//! What a screen holds, and what can happen on it.

/// A screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) items: Vec<Item>,
    /// The item that is marked at first.
    pub(crate) selected: usize,
    /// Keys beside the arrows, Enter and Escape.
    pub(crate) keys: Vec<(char, &'static str)>,
    /// A line of text that is asked for: its label and what stands there at first.
    pub(crate) input: Option<(String, String)>,
    pub(crate) need: Option<Need>,
}

/// A line to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Good,
    Bad,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Item {
    /// What it stands for, where the label does not say it all; not shown.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) value: Option<String>,
    pub(crate) problem: Option<String>,
}

/// What only the client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Enable,
    Disable,
    Close,
}

/// What happened on a screen.
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

    /// The same item, standing for `id`.
    pub(crate) fn standing_for(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }
}
