//! Paths as people write them.

use std::path::Path;

use portcullis_decision::path_text;

/// Returns a path with the home directory as `~`.
#[must_use]
pub(super) fn tilde(path: &str, home: Option<&Path>) -> String {
    let Some(home) = home.map(path_text::encode).filter(|home| home != "/") else { return path.to_owned() };
    match path.strip_prefix(&home) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}
