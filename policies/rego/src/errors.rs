//! Errors of regorus as errors of the configuration, with line and column.

use portcullis_sdk::ConfigError;
use portcullis_text_policy::{Place, TextConfig};

/// Returns an error of regorus, which draws the line with a mark below it:
///
/// ```text
/// --> team.rego:2:1
///   |
/// 2 | deny if
///   | ^
/// error: expecting ...
/// ```
pub(crate) fn config_error(config: &TextConfig, error: &str) -> ConfigError {
    match placed(error) {
        Some((place, message)) => config.error_at(place, &message, hint(&message)),
        None => config.error(error.trim()),
    }
}

/// Returns an error in one line, for the reason of a denial.
pub(crate) fn one_line(error: &str) -> String {
    match placed(error) {
        Some((place, message)) => format!("line {}: {message}", place.line),
        None => error.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

fn placed(error: &str) -> Option<(Place, String)> {
    let (_, rest) = error.split_once("--> ")?;
    let (at, rest) = rest.split_once('\n')?;
    let mut parts = at.trim().rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let (_, message) = rest.split_once("error: ")?;
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Some((Place { line, column }, message))
}

/// Returns a hint for the usual mistakes.
fn hint(message: &str) -> Option<&'static str> {
    if message.contains("could not find function") {
        return Some("functions for time, files, the network and random numbers do not exist here");
    }
    if message.contains("`if`") || message.contains("`contains`") {
        return Some("write `deny contains reason if { ... }`, as in version 1 of Rego");
    }
    None
}
