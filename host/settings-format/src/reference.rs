//! The tables of the reference page, generated from the tables of fields and of sensitive files.

use std::fmt::Write as _;

use crate::fields::FIELDS;
use crate::schema::{Field, Presence, Status};

/// Writes the table of fields in Markdown, as `docs/configuration.md` holds it.
///
/// ```
/// assert!(portcullis_settings_format::reference_tables().contains("| `network.deniedDomains` |"));
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
