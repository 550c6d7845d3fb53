//! Paths as people write them.

use std::path::Path;

use portcullis_decision::path_text;

/// Returns a path with the home directory as `~`.
#[must_use]
pub(super) fn tilde(path: &str, home: Option<&Path>) -> String {
    home.map(path_text::encode).map_or_else(|| path.to_owned(), |home| portcullis_text::tilde(path, &home))
}
