//! Grants in settings files, with their links resolved.

use std::path::Path;

use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::{Grant, GrantPattern, GrantScope};
use portcullis_settings_format::{ConfigError, Entry, GrantEntry, GrantResource, PathEntry};

use crate::pattern::PathContext;

/// Returns the paths of the entries.
pub(crate) fn paths(entries: &[GrantEntry]) -> impl Iterator<Item = &Entry<PathEntry>> {
    entries.iter().filter_map(|entry| match &entry.what {
        GrantResource::Path { entry, .. } => Some(&**entry),
        GrantResource::Connect(_) | GrantResource::Tool(_) | GrantResource::Commands(_) => None,
    })
}

/// Returns the paths of the entries that allow writing.
pub(crate) fn written(entries: &[GrantEntry]) -> impl Iterator<Item = &Entry<PathEntry>> {
    entries.iter().filter_map(|entry| match &entry.what {
        GrantResource::Path { entry, rights, .. } if rights.write => Some(&**entry),
        GrantResource::Path { .. }
        | GrantResource::Connect(_)
        | GrantResource::Tool(_)
        | GrantResource::Commands(_) => None,
    })
}

/// Converts entries to grants. Links are resolved as for all other paths in settings.
pub(crate) fn resolve(
    entries: &[GrantEntry],
    scope: impl Fn(&Path) -> GrantScope,
    around: &PathContext<'_>,
) -> Result<Vec<Grant>, ConfigError> {
    let grant = |entry: &GrantEntry| {
        let pattern = match &entry.what {
            GrantResource::Path { entry, exact, rights } => {
                let path = around.resolve_to_open(entry)?.base;
                let pattern = if *exact { FilePattern::Exact(path) } else { FilePattern::Tree(path) };
                GrantPattern::Path(PathPattern { pattern, rights: *rights })
            }
            GrantResource::Connect(pattern) => GrantPattern::Network(pattern.clone()),
            GrantResource::Tool(pattern) => GrantPattern::Tool(pattern.clone()),
            GrantResource::Commands(patterns) => GrantPattern::Command(patterns.clone()),
        };
        let scope = scope(&entry.file);
        Ok(Grant { scope, pattern, granted_at: entry.granted_at, expires_at: entry.expires_at })
    };
    entries.iter().map(grant).collect()
}
