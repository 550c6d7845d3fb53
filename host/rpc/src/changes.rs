//! Requests about what the session has changed, and taking it back.

use crate::{Text, wire_structs, wire_words};

wire_structs! {
    /// A turn of the user begins: the calls that follow belong to it.
    pub struct TurnParams {
        /// The client's id of the turn.
        pub id: Text,
        /// The beginning of what the user said.
        pub label: Text,
    }

    /// What the session has changed in the user's files.
    pub struct ChangesResponse {
        /// Turns and calls, the oldest first; calls belong to the turn before them.
        pub points: Vec<ChangedPoint>,
        /// True if an undo can be taken back.
        pub redoable: bool,
    }

    /// A turn or a call, to which the files can be taken back.
    pub struct ChangedPoint {
        /// Its name, such as `t3` or `c5`.
        pub name: String,
        /// Whether it is a turn.
        pub kind: PointKind,
        /// The client's id of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub id: Option<String>,
        /// What the user said, or what the call did.
        pub label: String,
        /// True if its changes have been taken back.
        pub undone: bool,
        /// The number of names that the call changed; 0 for a turn.
        pub changed: u32,
        /// Some of these names, relative to the project.
        pub names: Vec<String>,
    }

    /// Takes changes back.
    pub struct UndoParams {
        /// The turn or call to go back to before, by its name or the client's id; absent means the newest turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub point: Option<Text>,
        /// True to take back the last undo instead.
        pub redo: bool,
        /// True to only say what would be done.
        pub dry_run: bool,
    }

    /// What was done, or would be.
    pub struct UndoResponse {
        /// The number of names that have, or would have, their former state.
        pub done: u32,
        /// The number of names that were left as they are, or failed.
        pub left: u32,
        /// The steps; in a report only those that need attention.
        pub lines: Vec<UndoLine>,
        /// The number of further lines.
        pub more: u32,
    }

    /// One step.
    pub struct UndoLine {
        /// What is done, in a word or two.
        pub what: String,
        /// The name, relative to the project.
        pub name: String,
        /// The reason, or where something is; may be empty.
        pub note: String,
    }
}

wire_words! {
    /// The kind of a point.
    pub enum PointKind {
        /// A turn of the user.
        Turn,
        /// A command or a tool's call.
        Call,
    }
}
