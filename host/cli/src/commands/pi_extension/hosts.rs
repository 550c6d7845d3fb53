//! Which program installed an extension on this machine, for the extension to start by default.
//!
//! It is recorded in the state directory: `~/.pi` may be the same on several machines, and names none of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value};

/// The file, which `pi/src/lookup.ts` reads.
const FILE: &str = "extension-hosts.json";

/// Records that `program` installed the extension in `place`.
pub(super) fn record(state: &Path, place: &Path, program: &str) -> anyhow::Result<()> {
    let file = state.join(FILE);
    let writing = || format!("writing `{}`", file.display());
    let mut hosts = read(&file);
    hosts.insert(key(place), program.into());
    fs::create_dir_all(state).with_context(writing)?;
    // An unfinished file would send the extension to another program.
    let fresh = file.with_extension("new");
    fs::write(&fresh, format!("{}\n", Value::Object(hosts))).with_context(writing)?;
    fs::rename(&fresh, &file).with_context(writing)
}

/// Returns the program that installed the extension in `place`.
pub(super) fn recorded(state: &Path, place: &Path) -> Option<PathBuf> {
    read(&state.join(FILE)).get(&key(place))?.as_str().map(PathBuf::from)
}

fn key(place: &Path) -> String {
    place.canonicalize().unwrap_or_else(|_| place.to_owned()).to_string_lossy().into_owned()
}

/// Returns the records; none if there are none that can be read.
fn read(file: &Path) -> Map<String, Value> {
    fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_extension_has_its_own_program() {
        let state = tempfile::tempdir().unwrap();
        let (one, other) = (state.path().join("one"), state.path().join("other"));
        record(state.path(), &one, "/opt/one").unwrap();
        record(state.path(), &other, "/opt/other").unwrap();
        record(state.path(), &one, "/opt/newer").unwrap();
        assert_eq!(recorded(state.path(), &one), Some(PathBuf::from("/opt/newer")));
        assert_eq!(recorded(state.path(), &other), Some(PathBuf::from("/opt/other")));
        fs::write(state.path().join(FILE), "{ broken").unwrap();
        assert_eq!(recorded(state.path(), &one), None);
        record(state.path(), &one, "/opt/one").unwrap();
        assert_eq!(recorded(state.path(), &one), Some(PathBuf::from("/opt/one")));
    }
}
