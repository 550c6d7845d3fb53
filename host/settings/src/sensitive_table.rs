//! The table of sensitive files on the reference page.

use std::fmt::Write as _;

use crate::sensitive::{SENSITIVE, Sensitive};

/// Writes the table of sensitive files in Markdown, as `docs/configuration.md` holds it.
///
/// ```
/// assert!(portcullis_settings::sensitive_table().contains("| `host.ssh-keys` | `~/.ssh` but"));
/// ```
#[must_use]
pub fn sensitive_table() -> String {
    let mut page = String::from("\n| rule | paths | what they hold |\n|---|---|---|\n");
    let mut ids: Vec<&str> = Vec::new();
    for entry in SENSITIVE {
        if !ids.contains(&entry.id) {
            ids.push(entry.id);
        }
    }
    for id in ids {
        let entries = || SENSITIVE.iter().filter(|entry| entry.id == id);
        let mut holds: Vec<&str> = Vec::new();
        for entry in entries() {
            if !holds.contains(&entry.holds) {
                holds.push(entry.holds);
            }
        }
        let paths: Vec<String> = entries().map(path).collect();
        let _infallible = writeln!(page, "| `{id}` | {} | {} |", paths.join(", "), holds.join(", "));
    }
    page.push('\n');
    page
}

fn path(entry: &Sensitive) -> String {
    let except: Vec<String> = entry.except.iter().map(|name| format!("`{name}`")).collect();
    let but = if except.is_empty() { String::new() } else { format!(" but {}", except.join(", ")) };
    format!("`~/{}`{but}", entry.path)
}
