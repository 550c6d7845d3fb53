//! Reservations: exclusive claims on paths by agents.
//!
//! Policies order them by obligations of an `allow` verdict, `host:reserve` and `host:release`, and see those in force
//! in the attribute `host:reservations` of a request. A policy sees them if its standing profile has an attribute of
//! that name; for others they cost nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attribute::Attribute;
pub use crate::claim::{Claim, RESERVATIONS};
use crate::path_text;
use crate::verdict::Obligation;

/// The obligation to claim paths before the action.
pub const RESERVE: &str = "host:reserve";
/// The obligation to release claims.
pub const RELEASE: &str = "host:release";

/// The maximum number of paths of one obligation.
pub const MOST_PATHS: usize = 64;

/// An obligation about claims, for an action that is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// Claim all of these paths, or refuse the action.
    Reserve(Vec<PathBuf>, Until),
    /// Release the session's own claims on these paths and on those below them.
    Release(Vec<PathBuf>),
}

/// How long a claim lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Until the action ends.
    Call,
    /// Until it is released, or the session ends.
    Session,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ReserveValue {
    paths: Vec<String>,
    until: Until,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ReleaseValue {
    paths: Vec<String>,
}

impl Reservation {
    /// Reads an obligation; `None` if it is another one, or malformed.
    #[must_use]
    pub fn read(obligation: &Attribute) -> Option<Self> {
        match obligation.name.as_str() {
            RESERVE => {
                let ReserveValue { paths, until } = serde_json::from_str(&obligation.value).ok()?;
                Some(Self::Reserve(paths_of(&paths)?, until))
            }
            RELEASE => {
                let ReleaseValue { paths } = serde_json::from_str(&obligation.value).ok()?;
                Some(Self::Release(paths_of(&paths)?))
            }
            _ => None,
        }
    }

    /// Returns the reservations among the obligations of a decision.
    pub fn among(obligations: &[Obligation]) -> impl Iterator<Item = Self> {
        obligations.iter().filter_map(|obligation| match obligation {
            Obligation::Other(attribute) => Self::read(attribute),
            Obligation::RewriteScript(_)
            | Obligation::RewriteInput(_)
            | Obligation::Notify(_)
            | Obligation::Advise(_) => None,
        })
    }
}

/// Returns true if two claims conflict: one path equals the other or is below it.
#[must_use]
pub fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn paths_of(texts: &[String]) -> Option<Vec<PathBuf>> {
    let path = |text: &String| path_text::decode(text).filter(|path| path.is_absolute());
    let paths: Option<Vec<PathBuf>> = texts.iter().map(path).collect();
    paths.filter(|paths| !paths.is_empty() && paths.len() <= MOST_PATHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Option<Reservation> {
        Reservation::read(&Attribute { name: name.into(), value: value.into() })
    }

    #[test]
    fn obligations_are_read_or_are_none() {
        let both = vec![PathBuf::from("/a"), PathBuf::from("/b c")];
        assert_eq!(
            read(RESERVE, r#"{"paths":["/a","/b c"],"until":"call"}"#),
            Some(Reservation::Reserve(both, Until::Call))
        );
        assert_eq!(read(RELEASE, r#"{"paths":["/"]}"#), Some(Reservation::Release(vec!["/".into()])));
        for (name, value) in [
            (RESERVE, r#"{"paths":["a"],"until":"call"}"#),
            (RESERVE, r#"{"paths":[],"until":"call"}"#),
            (RESERVE, r#"{"paths":["/a"],"until":"ever"}"#),
            (RESERVE, r#"{"paths":["/a"]}"#),
            (RELEASE, r#"{"paths":["/a"],"until":"call"}"#),
            (RELEASE, "null"),
            ("host:other", r#"{"paths":["/a"]}"#),
        ] {
            assert_eq!(read(name, value), None, "{name} {value}");
        }
        let many = vec!["\"/a\""; MOST_PATHS + 1].join(",");
        assert_eq!(read(RELEASE, &format!("{{\"paths\":[{many}]}}")), None);
    }

    #[test]
    fn claims_overlap_by_components() {
        let overlaps = |one: &str, other: &str| overlap(Path::new(one), Path::new(other));
        assert!(overlaps("/a/b", "/a/b/c") && overlaps("/a/b/c", "/a/b") && overlaps("/a", "/a"));
        assert!(!overlaps("/a/b", "/a/bc") && !overlaps("/a/b", "/a/c"));
    }
}
