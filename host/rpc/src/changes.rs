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

    /// Asks for the review of the session's branch.
    pub struct BranchParams {
        /// True to include the differences of texts.
        pub diff: bool,
    }

    /// The review of the session's branch.
    pub struct BranchResponse {
        /// The branch; absent if the session works in the project itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// The id of the review.
        pub review: String,
        /// The changes.
        pub lines: Vec<BranchLine>,
        /// The number of further changes.
        pub more: u32,
        /// The hosts that commands in it were allowed to reach.
        pub hosts: Vec<String>,
        /// What the policies say about all of it together; empty if they allow it.
        pub together: String,
        /// The differences of texts, if they were asked for.
        pub diff: String,
    }

    /// One change of a branch.
    pub struct BranchLine {
        /// Whether it was made, changed or removed.
        pub what: String,
        /// The name, relative to the project.
        pub name: String,
        /// Why it needs attention; may be empty.
        pub note: String,
        /// True if it is committed only if it is named, or protected names are wanted.
        pub protected: bool,
        /// True if it cannot be committed.
        pub blocked: bool,
    }

    /// Commits changes of the session's branch.
    pub struct BranchCommitParams {
        /// The id of the review that the user has seen.
        pub review: Text,
        /// The names, relative to the project; all if there are none.
        pub paths: Vec<Text>,
        /// True to commit protected names as well, and what a policy asks about.
        pub protected: bool,
        /// Whether the user answered yes to the question of a policy about the whole commit.
        pub approved: bool,
    }

    /// What was committed.
    pub struct BranchCommitResponse {
        /// The number of names.
        pub committed: u32,
        /// What was left or went wrong.
        pub lines: Vec<UndoLine>,
        /// The question of a policy about the whole commit; nothing is committed before the answer. Empty if none asks.
        pub question: String,
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
