//! The rules of an entry that denies.

use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{ConfigError, Entry, Layer, PathEntry};

use crate::pattern::PathContext;
use crate::rule::Rule;

/// Returns the rules for an entry that denies.
pub(crate) fn deny(
    layer: Layer,
    id: &str,
    entry: &Entry<PathEntry>,
    rights: FileRights,
    around: &PathContext<'_>,
) -> Result<Vec<Rule>, ConfigError> {
    let rule = |pattern| Rule {
        layer,
        id: id.to_owned(),
        pattern,
        rights,
        effect: Effect::Deny,
        reason: format!("`{}` is denied in the settings", shown(&entry.text)),
        origin: Some(entry.origin.clone()),
    };
    Ok(around.resolve(entry)?.denying()?.into_iter().map(rule).collect())
}

/// Returns the rules that protect the links on the path of an entry that denies.
pub(crate) fn keep_links(
    layer: Layer,
    id: &str,
    entry: &Entry<PathEntry>,
    around: &PathContext<'_>,
) -> Result<Vec<Rule>, ConfigError> {
    let rule = |pattern| Rule {
        layer,
        id: id.to_owned(),
        pattern,
        rights: FileRights::WRITE,
        effect: Effect::Deny,
        reason: format!("it is a link on the way to `{}`, which the settings deny", shown(&entry.text)),
        origin: Some(entry.origin.clone()),
    };
    Ok(around.resolve(entry)?.movable_links(around.writable).into_iter().map(rule).collect())
}
