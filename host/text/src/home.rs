//! Paths as people write them.

/// Returns a path with `~` for the home directory.
///
/// ```
/// use portcullis_text::tilde;
/// assert_eq!(tilde("/home/ann/notes", "/home/ann"), "~/notes");
/// assert_eq!(tilde("/home/annie", "/home/ann"), "/home/annie");
/// assert_eq!(tilde("/etc", "/"), "/etc");
/// ```
#[must_use]
pub fn tilde(path: &str, home: &str) -> String {
    match path.strip_prefix(home) {
        Some("") if home.len() > 1 => "~".to_owned(),
        Some(rest) if home.len() > 1 && rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => path.to_owned(),
    }
}
