//! Requests of pi's read, write and edit tools. A file is opened once, and later requests use that open file.

use serde_json::{Map, Number, Value};

use crate::{AbsolutePath, Text, wire_structs, wire_words};

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
        /// The purpose of opening the file.
        pub intent: FileIntent,
    }

    /// One replacement of an edit.
    pub struct Edit {
        /// The text to replace.
        pub old_text: String,
        /// The replacement.
        pub new_text: String,
    }

    /// An open file.
    pub struct FileOpenResponse {
        /// The handle of the open file for later requests; valid until `file/close` or the end of the session.
        pub handle: u32,
        /// The canonical path of the file; only for display, never to be opened.
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
        /// The maximum number of bytes; the host may return fewer.
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

    /// The result of a write.
    pub struct FileWriteResponse {
        /// The canonical path of the file; only for display, never to be opened.
        pub canonical: String,
        /// The new size in bytes.
        pub size: u64,
    }

    /// Lists a directory.
    pub struct FileListParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The absolute path that pi resolved.
        pub path: AbsolutePath,
        /// The path as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub given: Option<Text>,
    }

    /// The names in a directory that may be seen, in the order of their bytes.
    pub struct FileListResponse {
        /// The names.
        pub entries: Vec<ListedName>,
    }

    /// One name in a directory.
    pub struct ListedName {
        /// The name.
        pub name: String,
        /// The type of the entry.
        pub kind: ListedKind,
    }

    /// Finds names below a directory; the host carries it out and words the result.
    pub struct FileFindParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The directory that relative paths start at.
        pub cwd: AbsolutePath,
        /// The directory to search, as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
        /// The glob.
        pub pattern: String,
        /// The maximum number of names.
        #[cfg_attr(feature = "typescript", ts(optional, type = "number"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub limit: Option<Number>,
    }

    /// Finds lines in files; the host carries it out and words the result.
    pub struct FileGrepParams {
        /// pi's id of the call.
        pub call_id: Text,
        /// The directory that relative paths start at.
        pub cwd: AbsolutePath,
        /// The directory to search, as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
        /// A regular expression, or a text.
        pub pattern: String,
        /// Only files whose path fits this glob.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub glob: Option<String>,
        /// True to ignore case.
        #[serde(default)]
        pub ignore_case: bool,
        /// True if the pattern is literal text.
        #[serde(default)]
        pub literal: bool,
        /// The number of lines of context around each match.
        #[cfg_attr(feature = "typescript", ts(optional, type = "number"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub context: Option<Number>,
        /// The maximum number of matches.
        #[cfg_attr(feature = "typescript", ts(optional, type = "number"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub limit: Option<Number>,
    }

    /// The result of a search, formatted as pi's own tool formats it.
    pub struct FileSearchResponse {
        /// The text for the model; with `failed`, the reason.
        pub text: String,
        /// True if the tool fails with `text`.
        pub failed: bool,
        /// The details that pi's own tool adds to the text.
        #[cfg_attr(feature = "typescript", ts(optional, type = "Record<string, unknown>"))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub details: Option<Map<String, Value>>,
    }

    /// Makes a file readable into which pi wrote the whole output of a command.
    pub struct FileOutputParams {
        /// The file; its name is one that pi gives to such files.
        pub path: AbsolutePath,
    }

    /// Closes an open file.
    pub struct FileCloseParams {
        /// The open file.
        pub handle: u32,
    }
}

wire_words! {
    /// The type of a directory entry, links followed.
    pub enum ListedKind {
        /// A directory.
        Directory,
        /// Another type.
        Other,
        /// A name that does not exist or is hidden.
        Nothing,
    }
}

/// The purpose of opening a file.
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
