//! Names that a rule could speak of. Nearly all paths have none, and are told apart at once: the question is put for
//! every name that is made.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use crate::class::normal;
use crate::repository::{EXAMINED, LAST_NAMES, is_shared_index};
use crate::rules::RULES;

/// Names without regard to case, found by their first letter and length before they are compared.
struct Names {
    /// For each first letter, a bit for every length that there is.
    lengths: [u64; 256],
    names: Vec<&'static str>,
}

/// Names that mean something wherever they stand in a path.
static ANYWHERE: LazyLock<Names> = LazyLock::new(|| {
    let patterns = RULES.iter().flat_map(|rule| rule.names);
    let first = |pattern: &&'static str| pattern.split('/').next().unwrap_or_default();
    Names::new(patterns.map(first).chain(EXAMINED))
});

/// Names that mean something at the end of a path.
static LAST: LazyLock<Names> = LazyLock::new(|| Names::new(LAST_NAMES));

/// Whether a rule could speak of `path`.
pub(crate) fn has_known_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| LAST.holds(name) || is_shared_index(name))
        || path.components().filter_map(normal).any(|name| ANYWHERE.holds(name))
}

/// Whether a pattern of any rule, or a name of git's, begins with this name.
pub(crate) fn is_known(name: &OsStr) -> bool {
    ANYWHERE.holds(name)
}

impl Names {
    fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let names: Vec<&'static str> = names.into_iter().collect();
        let mut lengths = [0; 256];
        for name in &names {
            if let Some(known) = lengths.get_mut(usize::from(first_of(name.as_bytes()))) {
                *known |= bit(name.len());
            }
        }
        Self { lengths, names }
    }

    fn holds(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        let lengths = self.lengths.get(usize::from(first_of(name))).copied().unwrap_or(u64::MAX);
        lengths & bit(name.len()) != 0
            && self.names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
    }
}

fn first_of(name: &[u8]) -> u8 {
    name.first().map_or(0, u8::to_ascii_lowercase)
}

/// One bit stands for all great lengths.
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
            for name in rule.names {
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
}
