//! A recorded change.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub(crate) enum Made {
    /// A file was written.
    Wrote {
        /// The file.
        file: PathBuf,
        /// The project that it lies in, if it is the project's own.
        project: Option<PathBuf>,
        /// The copy of the earlier text beside it.
        copy: Option<PathBuf>,
        /// The earlier text; `None` if there was no file.
        earlier: Option<String>,
        /// The new text.
        text: String,
        /// The list and the item removed from it, if that is the only change.
        dropped: Option<(String, Value)>,
    },
    /// A file or directory was moved.
    Moved {
        /// The earlier path.
        from: PathBuf,
        /// The new one.
        to: PathBuf,
    },
    /// The extension of this program was installed, where none was.
    Installed {
        /// Its directory.
        place: PathBuf,
    },
}
