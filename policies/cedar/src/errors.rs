//! Errors of Cedar as errors of the configuration, with line, column and hint.

use cedar_policy::{ParseErrors, ValidationResult};
use miette::Diagnostic;
use portcullis_sdk::ConfigError;
use portcullis_text_policy::{Place, TextConfig};

/// The most errors that are reported at once.
const MOST: usize = 20;

/// Returns the syntax errors of a text.
pub(crate) fn syntax(config: &TextConfig, errors: &ParseErrors) -> Vec<ConfigError> {
    errors.iter().take(MOST).map(|error| one(config, error, None)).collect()
}

/// Returns what the validator found. Without errors, its warnings are errors: a policy that can never match, and texts
/// that look like other ones, do not do what their author wants.
pub(crate) fn validation(config: &TextConfig, result: &ValidationResult) -> Vec<ConfigError> {
    let errors = result.validation_errors().map(|error| one(config, error, policy_id(error.policy_id())));
    let errors: Vec<ConfigError> = errors.take(MOST).collect();
    if !errors.is_empty() {
        return errors;
    }
    let warnings = result.validation_warnings();
    warnings.take(MOST).map(|warning| one(config, warning, policy_id(warning.policy_id()))).collect()
}

fn policy_id(id: &cedar_policy::PolicyId) -> Option<String> {
    Some(format!("for policy `{id}`, "))
}

/// Returns one error; the number that Cedar gives a policy is left out, since the position says more.
fn one(config: &TextConfig, error: &dyn Diagnostic, prefix: Option<String>) -> ConfigError {
    let text = error.to_string();
    let message = prefix.as_deref().and_then(|prefix| text.strip_prefix(prefix)).unwrap_or(&text);
    let hint = error.help().map(|help| help.to_string());
    let label = error.labels().and_then(|mut labels| labels.next());
    match label {
        Some(label) => {
            let place = Place::of_offset(&config.policy_text, label.offset());
            let expected = label.label().filter(|label| !message.contains(label));
            let message = match expected {
                Some(label) => format!("{message}: {label}"),
                None => message.to_owned(),
            };
            config.error_at(place, &message, hint.as_deref())
        }
        None => config.error(message),
    }
}
