//! The open screen, and where an event leads from it.

use super::editor::Editor;
use super::policies::PolicyList;
use super::presets::PresetList;
use super::screen::{Line, Need, SettingsStep};

/// An open screen.
#[derive(Debug)]
pub(super) enum View {
    Overview,
    Editor(Box<Editor>),
    InForce,
    Presets(PresetList),
    Policies(PolicyList),
    Grants,
    Decisions,
    Explained { id: String },
}

/// The transition after an event.
pub(super) enum Transition {
    Stay,
    Deeper(View),
    Back,
    Said(Line),
    Needs(Need),
}

impl From<SettingsStep> for Transition {
    fn from(step: SettingsStep) -> Self {
        match step {
            SettingsStep::Stay => Self::Stay,
            SettingsStep::Back => Self::Back,
            SettingsStep::Said(line) => Self::Said(line),
        }
    }
}
