//! Reads a component's contract version from its imports and exports, without running it, and checks that
//! this host supports it.

use serde::{Deserialize, Serialize};
use wasmtime::Engine;
use wasmtime::component::types::Component as ComponentType;

use crate::error::LoadError;
use crate::wasi;

/// Name of the export that wizer adds to a component, to read its state.
const STATE_EXPORT: &str = "wasmtime:wizer/access";

/// The oldest and the newest contract version that this host supports.
pub const SUPPORTED: (&str, &str) = ("0.1", "0.2");
/// The WIT package of the contract.
const PACKAGE: &str = "portcullis:policy/";
/// Interfaces of the first track that every policy may import: types and pure functions.
const GIVEN_0_1: [&str; 4] = ["types", "logging", "path-tools", "net-tools"];
/// Those of the second.
const GIVEN_0_2: [&str; 11] = [
    "facts",
    "files",
    "commands",
    "network",
    "tools",
    "grants",
    "requests",
    "verdicts",
    "log",
    "path-tools",
    "net-tools",
];
/// Interfaces of which a policy must export at least one.
const WORK: [&str; 4] = ["evaluator", "confinement", "output-filter", "orientation"];

/// A track of the contract: versions that are compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Track {
    V0_1,
    V0_2,
}

impl Track {
    /// Returns its name, as in messages and manifests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
            Self::V0_2 => "0.2",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::V0_1, Self::V0_2].into_iter().find(|track| track.name() == name)
    }

    fn gives(self, interface: &str) -> bool {
        match self {
            Self::V0_1 => GIVEN_0_1.contains(&interface),
            Self::V0_2 => GIVEN_0_2.contains(&interface),
        }
    }
}

/// The names of a component's imports and exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    /// Names of the imports, with their versions.
    pub imports: Vec<String>,
    /// Names of the exports, with their versions.
    pub exports: Vec<String>,
}

impl Surface {
    /// Reads the names from a component's type.
    pub(crate) fn from_component(component: &ComponentType, engine: &Engine) -> Self {
        let is_its_own = |name: &&str| *name != STATE_EXPORT;
        Self {
            imports: component.imports(engine).map(|(name, _)| name.to_owned()).collect(),
            exports: component
                .exports(engine)
                .map(|(name, _)| name)
                .filter(is_its_own)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Checks that the component is a policy that this host supports, and returns its track.
    ///
    /// It may import only interfaces that this host provides, and must not mix tracks.
    pub(crate) fn check(&self) -> Result<Track, LoadError> {
        let track = self.check_tracks()?;
        self.check_exports()?;
        self.check_imports(track)?;
        Ok(track)
    }

    fn check_tracks(&self) -> Result<Track, LoadError> {
        let (oldest, newest) = SUPPORTED;
        let names = || self.exports.iter().chain(&self.imports).filter(|name| name.starts_with(PACKAGE));
        let mut found: Option<Track> = None;
        for name in names() {
            let wanted = track(name).unwrap_or("of no version");
            let Some(known) = Track::named(wanted) else {
                let hint = if is_newer(wanted, newest) {
                    "update Portcullis"
                } else {
                    "build the policy against a newer contract"
                };
                return Err(LoadError::UnknownTrack { wanted: wanted.to_owned(), oldest, newest, hint });
            };
            if let Some(first) = found.filter(|first| *first != known) {
                return Err(LoadError::MixedTracks { first: first.name(), second: known.name() });
            }
            found = Some(known);
        }
        // A component without any name of the contract is refused for its missing exports.
        Ok(found.unwrap_or(Track::V0_2))
    }

    fn check_exports(&self) -> Result<(), LoadError> {
        let exported =
            |interface: &str| self.exports.iter().any(|name| interface_of(name) == Some(interface));
        let missing = if !exported("lifecycle") {
            "`portcullis:policy/lifecycle`".to_owned()
        } else if !WORK.into_iter().any(exported) {
            format!("any of {}", quoted(WORK.iter().map(|name| format!("{PACKAGE}{name}"))))
        } else {
            return Ok(());
        };
        let found = if self.exports.is_empty() {
            "it exports nothing".to_owned()
        } else {
            format!("it exports {}", quoted(self.exports.iter().take(8).cloned()))
        };
        let hint = format!("{found}; build it for the world `policy` of the `wit` folder");
        Err(LoadError::MissingExports { missing, hint })
    }

    fn check_imports(&self, track: Track) -> Result<(), LoadError> {
        let given = |name: &str| {
            wasi::is_wasi(name) || interface_of(name).is_some_and(|interface| track.gives(interface))
        };
        let refused: Vec<&String> = self.imports.iter().filter(|name| !given(name)).collect();
        let Some(first) = refused.first() else { return Ok(()) };
        let hint = match interface_of(first) {
            Some("workspace-view" | "state") => {
                "`workspace-view` and `state` are given only where the pack's manifest asks for them and \
                 the user's settings grant them, and this version grants neither"
            }
            _ => "build it for the world `policy` of the `wit` folder",
        };
        Err(LoadError::Imports { names: quoted(refused.iter().take(8).map(ToString::to_string)), hint })
    }
}

/// Returns the interface in a name of the contract's package, such as `evaluator`.
fn interface_of(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.split('@').next()
}

/// Returns the compatibility track of a name's version: `0.1` for `0.1.3`, `1` for `1.4.0`.
fn track(name: &str) -> Option<&str> {
    let (_, version) = name.split_once('@')?;
    let places = if version.starts_with("0.") { 2 } else { 1 };
    match version.match_indices('.').nth(places - 1) {
        Some((end, _)) => version.get(..end),
        None => Some(version),
    }
}

fn is_newer(track: &str, than: &str) -> bool {
    let numbers =
        |track: &str| -> Vec<u32> { track.split('.').map_while(|part| part.parse().ok()).collect() };
    numbers(track) > numbers(than)
}

fn quoted(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(imports: &[&str], exports: &[&str]) -> String {
        let own = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let surface = Surface { imports: own(imports), exports: own(exports) };
        surface.check().map_or_else(|error| error.to_string(), |track| format!("fine: {}", track.name()))
    }

    const LIFECYCLE: &str = "portcullis:policy/lifecycle@0.1.0";
    const EVALUATOR: &str = "portcullis:policy/evaluator@0.1.7";

    #[test]
    fn policies_of_the_track_are_taken() {
        assert_eq!(check(&[], &[LIFECYCLE, EVALUATOR]), "fine: 0.1");
        assert_eq!(check(&["wasi:io/streams@0.2.6"], &[LIFECYCLE, EVALUATOR, "other:thing/x"]), "fine: 0.1");
        assert_eq!(check(&["portcullis:policy/net-tools@0.1.0"], &[LIFECYCLE, EVALUATOR]), "fine: 0.1");
    }

    #[test]
    fn the_second_track_is_taken_too_and_never_mixed_with_the_first() {
        let names = |interfaces: &[&str]| -> Vec<String> {
            interfaces.iter().map(|name| format!("portcullis:policy/{name}@0.2.0")).collect()
        };
        let exports = names(&["lifecycle", "confinement"]);
        let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
        let imports = names(&["log", "facts"]);
        let imports: Vec<&str> = imports.iter().map(String::as_str).collect();
        assert_eq!(check(&imports, &exports), "fine: 0.2");
        let mixed = check(&imports, &[LIFECYCLE, EVALUATOR]);
        assert!(mixed.contains("0.1 and of 0.2"), "{mixed}");
        for gone in ["portcullis:policy/state@0.2.0", "portcullis:policy/logging@0.2.0"] {
            assert!(check(&[gone], &exports).contains(gone));
        }
    }

    #[test]
    fn other_tracks_are_named() {
        for (version, said) in [
            ("0.3.0", "contract 0.3; this host speaks 0.1 to 0.2; update"),
            ("1.4.0", "contract 1; this host speaks 0.1 to 0.2; update"),
            ("0.10.0", "contract 0.10; this host speaks 0.1 to 0.2; update"),
            ("0.0.3", "contract 0.0; this host speaks 0.1 to 0.2; build"),
        ] {
            let lifecycle = format!("portcullis:policy/lifecycle@{version}");
            let answer = check(&[], &[&lifecycle, EVALUATOR]);
            assert!(answer.contains(said), "{answer}");
        }
        assert!(check(&[], &["portcullis:policy/lifecycle", EVALUATOR]).contains("of no version"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(check(&[], &[]).contains("`portcullis:policy/lifecycle`; it exports nothing"));
        assert!(check(&[], &["wasi:cli/run@0.2.0"]).contains("exports `wasi:cli/run@0.2.0`"));
        assert!(check(&[], &[LIFECYCLE]).contains("any of `portcullis:policy/evaluator`"));
    }

    #[test]
    fn what_is_not_given_is_named() {
        let state = check(&["portcullis:policy/state@0.1.0"], &[LIFECYCLE, EVALUATOR]);
        assert!(state.contains("`portcullis:policy/state@0.1.0`") && state.contains("manifest"), "{state}");
        let other = check(&["evil:host/run", "acme:x/y@1.0.0"], &[LIFECYCLE, EVALUATOR]);
        assert!(other.contains("`evil:host/run`, `acme:x/y@1.0.0`"), "{other}");
        // A core import at the top level is not an interface of the contract.
        assert!(
            check(&["portcullis:policy/evaluator@0.1.0"], &[LIFECYCLE, EVALUATOR])
                .contains("does not provide")
        );
    }
}
