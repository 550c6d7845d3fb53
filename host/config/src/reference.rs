//! The tables of the reference page, generated from the tables of fields and of sensitive files.

use std::fmt::Write as _;

use crate::fields::FIELDS;
use crate::schema::{Field, Presence, Status};
use crate::sensitive::{SENSITIVE, Sensitive};

/// Writes the table of fields in Markdown, as `docs/configuration.md` holds it.
///
/// ```
/// assert!(portcullis_config::reference_tables().contains("| `network.deniedDomains` |"));
/// ```
#[must_use]
pub fn reference_tables() -> String {
    let mut page = String::from("\n| field | value | status | meaning |\n|---|---|---|---|\n");
    for field in FIELDS {
        // Writing to a `String` cannot fail.
        let _infallible = writeln!(page, "{}", row(field));
    }
    page.push('\n');
    page
}

/// Writes the table of sensitive files in Markdown, as `docs/configuration.md` holds it.
///
/// ```
/// assert!(portcullis_config::sensitive_table().contains("| `host.ssh-keys` | `~/.ssh` but"));
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

fn row(field: &Field) -> String {
    let required = if field.presence == Presence::Required { " (required)" } else { "" };
    let status = match field.status {
        Status::Honoured => "honoured".to_owned(),
        Status::NoEffect(reason) => format!("no effect: {reason}"),
        Status::Refused(reason) => format!("refused: {reason}"),
    };
    format!(
        "| `{}` | {}{required} | {status} | {} |",
        field.name,
        field.shape.describe(),
        field.meaning.replace("`|`", "`\\|`")
    )
}
