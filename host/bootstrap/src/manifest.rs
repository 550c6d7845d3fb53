//! The manifest of a policy that is run, which states its capabilities beyond verdicts.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_packs::{MANIFEST_MAX, Manifest, Pack, StoreError, read_text};

/// Name of a manifest, in the directory of the component.
pub const MANIFEST: &str = "policy.toml";

/// Returns the manifest for the component of the policy `id`: the embedded one, or else the one beside the component.
///
/// `None` if there is none, or the one beside it belongs to another policy.
///
/// # Errors
/// When the embedded manifest is damaged or belongs to another policy, or the one beside the component cannot be read.
pub fn find(component: &[u8], file: &Path, id: &str) -> anyhow::Result<Option<Manifest>> {
    let pack =
        Pack::read(component).with_context(|| format!("reading the metadata of `{}`", file.display()))?;
    if let Some(Pack { manifest, .. }) = pack {
        let named = &manifest.policy.id;
        if named != id {
            bail!(
                "`{}` calls itself `{id}`, and the manifest in it is that of `{named}`; build it again",
                file.display()
            );
        }
        return Ok(Some(manifest));
    }
    Ok(beside(file)?.filter(|manifest| manifest.policy.id == id))
}

fn beside(component: &Path) -> anyhow::Result<Option<Manifest>> {
    let file = component.with_file_name(MANIFEST);
    let context = || format!("reading the manifest `{}`", file.display());
    // Only a regular file: a named pipe would block the host forever.
    let text = match read_text(&file, MANIFEST_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(context)?,
    };
    Manifest::parse(&text).map(Some).with_context(context)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The smallest valid component.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn manifest(id: &str, rewrites: bool) -> String {
        format!(
            "[policy]\nid = \"{id}\"\nversion = \"1.0.0\"\ntitle = \"T\"\n[contract]\nversion = \"0.1\"\n\
             [capabilities]\nrewrites = {rewrites}\n"
        )
    }

    #[test]
    fn only_the_policys_own_manifest_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let component = directory.path().join("x.wasm");
        let rewrites = |text: Option<&str>| {
            if let Some(text) = text {
                fs::write(directory.path().join(MANIFEST), text).expect("written");
            }
            Ok::<_, anyhow::Error>(find(COMPONENT, &component, "a:b")?.map(|own| own.capabilities.rewrites))
        };
        assert_eq!(rewrites(None).expect("read"), None);
        assert_eq!(rewrites(Some(&manifest("a:b", true))).expect("read"), Some(true));
        assert_eq!(rewrites(Some(&manifest("a:b", false))).expect("read"), Some(false));
        assert_eq!(rewrites(Some(&manifest("a:c", true))).expect("read"), None);
        assert!(rewrites(Some("[policy")).is_err());
        assert!(rewrites(Some(&" ".repeat(MANIFEST_MAX + 1))).is_err());

        let pipe = directory.path().join(MANIFEST);
        fs::remove_file(&pipe).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        assert!(rewrites(None).is_err(), "a pipe is waited for");
    }

    #[test]
    fn what_a_component_carries_goes_before_what_lies_beside() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("x.wasm");
        fs::write(directory.path().join(MANIFEST), manifest("a:b", true)).expect("written");
        let carried = |id: &str| {
            let manifest = Manifest::parse(&manifest(id, false)).expect("a manifest");
            let component = Pack { manifest, ..Pack::default() }.embed(COMPONENT).expect("embedded");
            find(&component, &file, "a:b")
        };
        assert!(!carried("a:b").expect("read").expect("its own").capabilities.rewrites);
        let error = carried("a:c").expect_err("another policy's").to_string();
        assert!(error.contains("`a:b`") && error.contains("`a:c`"), "{error}");
    }
}
