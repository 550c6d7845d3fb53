//! `/sandbox`: the host builds the screens; the client draws them and reports key presses.

use serde::{Deserialize, Serialize};

use crate::{wire_structs, wire_words};

wire_structs! {
    /// Something happened on a screen of `/sandbox`.
    pub struct MenuParams {
        /// What.
        pub event: MenuEvent,
    }

    /// A screen.
    pub struct MenuScreen {
        /// One line above everything.
        pub title: String,
        /// Lines to read.
        pub lines: Vec<MenuLine>,
        /// What can be chosen, with the arrow keys and Enter.
        pub items: Vec<MenuItem>,
        /// The item that is marked when the screen appears.
        pub selected: u32,
        /// What can be pressed beside that.
        pub keys: Vec<MenuKey>,
        /// Present when the user is asked for a line of text in place of a choice.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub input: Option<MenuInput>,
        /// What the client has to do; it is told by the host's answer and not shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub effect: Option<MenuEffect>,
    }

    /// A line to read.
    pub struct MenuLine {
        /// Its text; safe to show.
        pub text: String,
        /// How it is meant.
        pub tone: Tone,
    }

    /// Something to choose.
    pub struct MenuItem {
        /// Its text; safe to show.
        pub label: String,
        /// Its value, shown beside it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub value: Option<String>,
        /// What is wrong with it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
    }

    /// Something to press.
    pub struct MenuKey {
        /// The key: one character.
        pub key: String,
        /// What it does.
        pub label: String,
    }

    /// A line of text that is asked for.
    pub struct MenuInput {
        /// What for.
        pub label: String,
        /// What stands there at first.
        pub value: String,
    }
}

wire_words! {
    /// How a line is meant.
    pub enum Tone {
        /// Plain.
        Plain,
        /// A heading.
        Heading,
        /// Less important.
        Faint,
        /// All is well.
        Good,
        /// Something is not as it should be.
        Bad,
    }

    /// What a client has to do.
    pub enum MenuEffect {
        /// End this host and start another one with the sandbox on.
        Enable,
        /// End this host and start another one with the sandbox off.
        Disable,
        /// Leave `/sandbox`.
        Close,
    }
}

/// What happened on a screen.
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
        /// It.
        key: String,
        /// The item that was marked.
        index: u32,
    },
    /// A line was typed.
    Text {
        /// It.
        text: String,
    },
    /// One step back.
    Back {},
}
