//! The policies that come with the program.

use std::borrow::Cow;
use std::io::Read as _;

use anyhow::Context as _;
use flate2::read::DeflateDecoder;
use portcullis_policy_runtime::{Embedded, limits};

/// The shipped policies: name, description and component. CI checks that the components are built from their sources.
const SHIPPED: [(&str, &str, &[u8]); 5] = [
    (
        "workspace",
        "the project is free, the rest is asked about",
        include_bytes!("../../../policies/workspace/policy.wasm"),
    ),
    (
        "guard",
        "secrets are denied, the rest can be read",
        include_bytes!("../../../policies/guard/policy.wasm"),
    ),
    (
        "git-guard",
        "git history cannot be rewritten",
        include_bytes!("../../../policies/git-guard/policy.wasm"),
    ),
    ("secrets", "credentials are asked about", include_bytes!("../../../policies/secrets/policy.wasm")),
    (
        "bosun",
        "lists of places, and reservations among agents",
        include_bytes!("../../../policies/bosun/policy.wasm"),
    ),
];

/// The policies that run a text, compressed: name and component. They do nothing without a text.
const TEXT_POLICIES: [(&str, &[u8]); 2] = [
    ("cedar", include_bytes!(concat!(env!("OUT_DIR"), "/cedar.deflate"))),
    ("rego", include_bytes!(concat!(env!("OUT_DIR"), "/rego.deflate"))),
];

include!(concat!(env!("OUT_DIR"), "/machine_code.rs"));

/// Returns true if a shipped policy passes facts about version control on to its text. Contract 0.1, for which all are
/// built, has no place to say so.
pub(crate) fn uses_vcs(id: &str) -> bool {
    TEXT_POLICIES.iter().any(|(name, _)| id.strip_prefix("portcullis:") == Some(*name))
}

/// Returns name and description of each shipped policy that works without a text.
pub(crate) fn policies() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.into_iter().map(|(name, title, _)| (name, title))
}

/// Returns the embedded machine code of shipped policies.
pub(crate) fn machine_code() -> &'static [Embedded] {
    MACHINE_CODE
}

/// Returns the component of a shipped policy.
///
/// # Errors
/// If there is none of this name.
pub(crate) fn component(name: &str) -> anyhow::Result<Cow<'static, [u8]>> {
    if let Some((_, _, component)) = SHIPPED.iter().find(|(shipped, ..)| *shipped == name) {
        return Ok(Cow::Borrowed(component));
    }
    let compressed = TEXT_POLICIES.iter().find(|(shipped, _)| *shipped == name);
    let (_, compressed) =
        compressed.with_context(|| format!("there is no policy `{name}`; {}", all_names()))?;
    let mut component = Vec::new();
    let mut inflated = DeflateDecoder::new(*compressed).take(limits::COMPONENT);
    inflated.read_to_end(&mut component).with_context(|| format!("unpacking the policy `{name}`"))?;
    Ok(Cow::Owned(component))
}

fn all_names() -> String {
    let names = SHIPPED.iter().map(|(name, ..)| *name).chain(TEXT_POLICIES.iter().map(|(name, _)| *name));
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("{} come with Portcullis", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_policy_is_a_component() {
        for name in policies().map(|(name, _)| name).chain(["cedar", "rego"]) {
            let component = component(name).expect("it is shipped");
            let file = format!("{}/../../policies/{name}/policy.wasm", env!("CARGO_MANIFEST_DIR"));
            assert!(component == std::fs::read(&file).expect("it is in the tree"), "{file}");
        }
        let error = component("cedra").expect_err("no policy").to_string();
        assert!(error.contains("there is no policy `cedra`") && error.contains("`rego`"), "{error}");
    }
}
