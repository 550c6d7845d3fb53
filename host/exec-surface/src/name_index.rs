//! A fast test for names that a rule could apply to. Most paths contain none, and the test runs for every created name.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use crate::change::normal;
use crate::git_directory::{EXAMINED, LAST_NAMES, is_shared_index};
use crate::rules::RULES;
use crate::table::{self, is_like};

/// Names without regard to case, looked up by first letter and length before they are compared.
struct Names {
    /// For each first letter, a bit for every occurring length.
    lengths: [u64; 256],
    names: Vec<&'static str>,
    /// Names that contain `*`.
    patterns: Vec<&'static str>,
}

/// Names that matter anywhere in a path.
static ANYWHERE: LazyLock<Names> = LazyLock::new(|| {
    let patterns = RULES.iter().flat_map(|rule| rule.names().iter().copied());
    let first = |pattern: &'static str| pattern.split('/').next().unwrap_or_default();
    Names::new(patterns.map(first).chain(EXAMINED))
});

/// Names that matter at the end of a path.
static LAST: LazyLock<Names> = LazyLock::new(|| Names::new(LAST_NAMES));

/// Dot names that are harmless with everything below them.
static HARMLESS: LazyLock<Names> = LazyLock::new(|| {
    Names::new(table::harmless().iter().map(|entry| entry.name).filter(|name| !name.contains('/')))
});

/// Returns true if a rule could apply to `path`.
pub(crate) fn has_known_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| LAST.holds(name) || is_shared_index(name))
        || path.components().filter_map(normal).any(|name| ANYWHERE.holds(name))
}

/// Returns true if a pattern of any rule, or a name of git's, begins with this name.
pub(crate) fn is_known(name: &OsStr) -> bool {
    ANYWHERE.holds(name)
}

/// Returns true if a dot name is harmless at the root of a project, with everything below it.
pub(crate) fn is_harmless_name(name: &OsStr) -> bool {
    HARMLESS.holds(name)
}

impl Names {
    fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let (patterns, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains('*'));
        let mut lengths = [0; 256];
        for name in &names {
            if let Some(known) = lengths.get_mut(usize::from(first_of(name.as_bytes()))) {
                *known |= bit(name.len());
            }
        }
        Self { lengths, names, patterns }
    }

    fn holds(&self, name: &OsStr) -> bool {
        let bytes = name.as_encoded_bytes();
        let lengths = self.lengths.get(usize::from(first_of(bytes))).copied().unwrap_or(u64::MAX);
        lengths & bit(bytes.len()) != 0
            && self.names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(bytes))
            || self.patterns.iter().any(|pattern| is_like(name, pattern))
    }
}

fn first_of(name: &[u8]) -> u8 {
    name.first().map_or(0, u8::to_ascii_lowercase)
}

/// One bit stands for all lengths from 63 on.
fn bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_rule_is_known() {
        let known = |path: &str| has_known_name(Path::new(path));
        for rule in RULES {
            for name in rule.names() {
                let name = name.replace('*', "x");
                assert!(
                    known(&format!("/w/{name}")) && known(&format!("/w/{}/x", name.to_uppercase())),
                    "{name}"
                );
            }
        }
        for name in EXAMINED {
            assert!(known(&format!("/w/x/{name}/y")), "{name}");
        }
        for name in LAST_NAMES {
            assert!(known(&format!("/w/{name}")) && !known(&format!("/w/{name}/ab/cd")), "{name}");
        }
        assert!(known("/w/.git/sharedindex.0123"));
        for path in ["/w/src/main.rs", "/w/.env", "/w/.git/indexes", "/w/confi", "/w/configs", "/", ""] {
            assert!(!known(path), "{path}");
        }
        assert!(!known(&format!("/w/{}", "c".repeat(200))));
    }

    #[test]
    fn harmless_names() {
        let holds = |name: &str| is_harmless_name(OsStr::new(name));
        assert!(holds(".gitignore") && holds(".DS_STORE") && holds(".tmpAb1") && holds(".x.swp"));
        // Only a part of it is harmless.
        assert!(!holds(".yarn") && !holds(".env") && !holds(".foorc") && !holds("src"));
    }
}
