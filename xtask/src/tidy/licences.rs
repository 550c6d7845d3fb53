//! Checks the licences of all crates against the list in `deny.toml`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::workspace::text;

pub(super) fn problems(packages: &[Value], deny: &toml::Table) -> Result<Vec<String>> {
    let allowed = deny.get("licenses").and_then(|table| table.get("allow")).and_then(toml::Value::as_array);
    let allowed = allowed.context("`deny.toml` has no licenses.allow")?;
    let allowed: Vec<&str> = allowed.iter().filter_map(toml::Value::as_str).collect();
    let mut problems = Vec::new();
    for package in packages {
        let licence = package.get("license").and_then(Value::as_str).unwrap_or_default();
        if !is_allowed(licence, &allowed) {
            problems.push(format!(
                "{} has the licence `{licence}`, which deny.toml does not allow",
                text(package, "name")?
            ));
        }
    }
    Ok(problems)
}

/// Returns true if one choice in an SPDX expression needs only allowed licences.
///
/// Parentheses are ignored: each part between two `AND`s needs an allowed choice. This can reject an
/// acceptable expression, but never accepts an unacceptable one.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|choice| allowed.contains(&choice.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: bool) {
        assert_eq!(is_allowed(expression, &["MIT", "Zlib"]), expected, "{expression}");
    }

    #[test]
    fn expressions_are_read() {
        check("MIT", true);
        check("MIT OR GPL-3.0", true);
        check("GPL-3.0/MIT", true);
        check("(MIT OR GPL-3.0) AND Zlib", true);
        check("MIT AND GPL-3.0", false);
        check("GPL-3.0", false);
        check("MIT WITH some-exception", false);
        check("", false);
    }
}
