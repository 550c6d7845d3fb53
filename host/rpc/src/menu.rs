//! `/sandbox`: the host builds the screens; the client draws them and reports key presses.

use serde::{Deserialize, Serialize};

use crate::{wire_structs, wire_words};

wire_structs! {
    /// An event on a screen of `/sandbox`.
    pub struct MenuParams {
        /// The event.
        pub event: MenuEvent,
    }

    /// A screen.
    pub struct MenuScreen {
        /// One line above everything.
        pub title: String,
        /// Lines to read.
        pub lines: Vec<MenuLine>,
        /// The items to choose from with the arrow keys and Enter.
        pub items: Vec<MenuItem>,
        /// The item that is marked when the screen appears.
        pub selected: u32,
        /// Further keys.
        pub keys: Vec<MenuKey>,
        /// A text field that replaces the items.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub input: Option<MenuInput>,
        /// An action of the client that replaces the screen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub effect: Option<MenuEffect>,
    }

    /// A line to read.
    pub struct MenuLine {
        /// Its text; safe to show.
        pub text: String,
        /// The tone.
        pub tone: Tone,
    }

    /// An item to choose.
    pub struct MenuItem {
        /// Its text; safe to show.
        pub label: String,
        /// Its value, shown beside it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub value: Option<String>,
        /// The mistake in it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// A key to press.
    pub struct MenuKey {
        /// The key: one character.
        pub key: String,
        /// The effect of the key, in a word or two.
        pub label: String,
    }

    /// A line of text that is asked for.
    pub struct MenuInput {
        /// The label of the field.
        pub label: String,
        /// The initial text.
        pub value: String,
    }
}

wire_words! {
    /// The tone of a line.
    pub enum Tone {
        /// Plain.
        Plain,
        /// A heading.
        Heading,
        /// Less important.
        Faint,
        /// All is well.
        Good,
        /// A problem.
        Bad,
    }

    /// An action of the client.
    pub enum MenuEffect {
        /// End this host and start another one with the sandbox on.
        Enable,
        /// End this host and start another one with the sandbox off.
        Disable,
        /// Leave `/sandbox`.
        Close,
    }
}

/// An event on a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub enum MenuEvent {
    /// `/sandbox` was opened; whatever was open before is forgotten.
    Open {},
    /// An item was chosen.
    Choose {
        /// Its place, counted from zero.
        index: u32,
    },
    /// A key was pressed.
    Key {
        /// The key.
        key: String,
        /// The item that was marked.
        index: u32,
    },
    /// A line was typed.
    Text {
        /// The text.
        text: String,
    },
    /// One step back.
    Back {},
}
