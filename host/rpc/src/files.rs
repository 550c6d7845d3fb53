//! What pi's read, write and edit tools need: a file is opened once, and what was opened is used.

use crate::{AbsolutePath, Text, wire_structs};

wire_structs! {
    /// Opens a file: the one place where the decision is made and the user is asked.
    pub struct FileOpenParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The absolute path that pi resolved.
        pub path: AbsolutePath,
        /// The path as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub given: Option<Text>,
        /// What the file is wanted for.
        pub intent: FileIntent,
    }

    /// One replacement of an edit.
    pub struct Edit {
        /// The text to replace.
        pub old_text: String,
        /// What to put there.
        pub new_text: String,
    }

    /// An open file.
    pub struct FileOpenResponse {
        /// Names the open file in the requests that follow; ends with `file/close` or the session.
        pub handle: u32,
        /// Where the file really is; for people, never to be opened by.
        pub canonical: String,
        /// Its size in bytes.
        pub size: u64,
    }

    /// Reads from an open file.
    pub struct FileReadParams {
        /// The open file.
        pub handle: u32,
        /// The first byte wanted.
        #[serde(default)]
        pub offset: u64,
        /// How many bytes at most; the host may give fewer.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub length: Option<u32>,
    }

    /// A part of a file.
    pub struct FileReadResponse {
        /// The bytes, in base64 with padding.
        pub content_base64: String,
        /// True when the file ends with these bytes; otherwise they are at least one.
        pub eof: bool,
        /// The type of an image that pi can show to the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mime_type: Option<String>,
    }

    /// Writes a whole file, creating it and its parent directories.
    pub struct FileWriteParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The absolute path that pi resolved.
        pub path: AbsolutePath,
        /// The path as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub given: Option<Text>,
        /// The new content.
        pub content: String,
    }

    /// Replaces the content of a file opened for editing, if it is still what was read.
    pub struct FileWriteHandleParams {
        /// The open file.
        pub handle: u32,
        /// The new content.
        pub content: String,
    }

    /// What was written.
    pub struct FileWriteResponse {
        /// Where the file really is; for people, never to be opened by.
        pub canonical: String,
        /// How many bytes it has now.
        pub size: u64,
    }

    /// Closes an open file.
    pub struct FileCloseParams {
        /// The open file.
        pub handle: u32,
    }
}

/// What a file is opened for.
///
/// The variants have braces, because serde lets unknown fields of a plain word pass.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub enum FileIntent {
    /// To be read.
    Read {},
    /// To be read and then replaced by what the edits make of it.
    Edit {
        /// The replacements.
        edits: Vec<Edit>,
    },
}
