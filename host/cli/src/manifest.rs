//! The manifest beside a policy's component: what the policy may do beyond saying yes and no.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

/// Name of a manifest, in the directory of the component.
const MANIFEST: &str = "policy.toml";

/// What is read of a manifest here; it holds more.
#[derive(Deserialize)]
struct Manifest {
    policy: Identity,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Deserialize)]
struct Identity {
    id: String,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    #[serde(default)]
    rewrites: bool,
}

/// Whether the manifest beside `component` is that of the policy `id` and declares that it rewrites inputs.
///
/// # Errors
/// When there is a manifest that cannot be read.
pub(crate) fn declares_rewrites(component: &Path, id: &str) -> anyhow::Result<bool> {
    let file = component.with_file_name(MANIFEST);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        text => text.with_context(|| format!("reading the manifest `{}`", file.display()))?,
    };
    let manifest: Manifest =
        toml::from_str(&text).with_context(|| format!("reading the manifest `{}`", file.display()))?;
    Ok(manifest.policy.id == id && manifest.capabilities.rewrites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_policys_own_manifest_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let component = directory.path().join("x.wasm");
        let declares = |text: Option<&str>| {
            if let Some(text) = text {
                fs::write(directory.path().join(MANIFEST), text).expect("written");
            }
            declares_rewrites(&component, "a:b")
        };
        assert!(!declares(None).expect("read"));
        let manifest = |id: &str, rewrites| {
            format!(
                "[policy]\nid = \"{id}\"\nversion = \"1\"\n[capabilities]\nimports = []\nrewrites = {rewrites}\n"
            )
        };
        assert!(declares(Some(&manifest("a:b", true))).expect("read"));
        assert!(!declares(Some(&manifest("a:b", false))).expect("read"));
        assert!(!declares(Some(&manifest("a:c", true))).expect("read"));
        assert!(!declares(Some("[policy]\nid = \"a:b\"\n")).expect("read"));
        assert!(declares(Some("[policy")).is_err());
    }
}
