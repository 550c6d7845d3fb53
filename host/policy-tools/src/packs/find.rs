//! Finds the pack that the user names: a file, a name, or an artifact.

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::streams::say;
use portcullis_packs::{
    COMPONENT_MAX, FROM_FILE, Locked, Reference, Signed, read, signatures_beside, tag_of, version_of,
};
use semver::{Version, VersionReq};

use super::confirm::confirmed;
use super::lock_editor::LockEditor;
use super::offer::Offer;

/// The kinds of names for packs.
#[derive(Debug, PartialEq, Eq)]
enum Named<'a> {
    File(&'a Path),
    Artifact(&'a str),
    Id(&'a str, Option<&'a str>),
}

impl<'a> Named<'a> {
    fn parse(text: &'a str) -> Self {
        if text.starts_with("oci://") {
            return Self::Artifact(text);
        }
        let (id, requirement) = match text.split_once('@') {
            Some((id, requirement)) => (id, Some(requirement)),
            None => (text, None),
        };
        let is_word = |word: &str| !word.is_empty() && !word.contains(['/', '.', ':']);
        match id.split_once(':') {
            Some((namespace, name)) if is_word(namespace) && is_word(name) => Self::Id(id, requirement),
            Some(_) | None => Self::File(Path::new(text)),
        }
    }
}

impl LockEditor {
    /// Fetches the pack that the user names.
    ///
    /// # Errors
    /// If it cannot be found or read.
    pub fn find(&mut self, what: &str) -> anyhow::Result<Offer> {
        match Named::parse(what) {
            Named::File(file) => self.offer_of(file),
            Named::Artifact(text) => {
                let reference = Reference::parse(text)?;
                match &reference.tag {
                    Some(tag) => {
                        let version = version_of(tag);
                        self.pull(&reference, None, version, None)
                    }
                    None if reference.digest.is_some() => self.pull(&reference, None, None, None),
                    None => self.newest(&reference, None, None),
                }
            }
            Named::Id(id, requirement) => {
                let requirement = requirement.map(requirement_of).transpose()?;
                let place = self.place_of(id)?;
                self.newest(&place, Some(id), requirement)
            }
        }
    }

    /// Reads the pack in a file, with the signatures beside it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn offer_of(&self, file: &Path) -> anyhow::Result<Offer> {
        let file = self.here(file);
        let signed = Signed { bytes: read(&file, COMPONENT_MAX)?, signatures: signatures_beside(&file)? };
        Ok(Offer::of_file(signed))
    }

    /// Returns the registry path of a pack, from the settings of its publisher.
    ///
    /// # Errors
    /// If the publisher is unknown or has no registry.
    pub fn place_of(&self, id: &str) -> anyhow::Result<Reference> {
        let (namespace, name) = id.split_once(':').context("a name is `namespace:name`")?;
        let owner = self.trust.owner(namespace).with_context(|| {
            format!(
                "no publisher of `{namespace}:` is known; add one with `portcullis policy trust publisher`"
            )
        })?;
        if owner.registry.is_empty() {
            bail!("`{}` has no registry in the trust file; name the artifact itself, or a file", owner.name);
        }
        Ok(Reference::parse(&format!("{}/{namespace}/{name}", owner.registry))?)
    }

    /// Returns the newest version that fits.
    pub(super) fn newest(
        &mut self,
        place: &Reference,
        wanted: Option<&str>,
        requirement: Option<VersionReq>,
    ) -> anyhow::Result<Offer> {
        let version = self.newest_version(place, requirement.as_ref())?;
        let version = version.with_context(|| match &requirement {
            Some(requirement) => format!("`{}` has no version that fits `{requirement}`", place.place()),
            None => format!("`{}` has no version", place.place()),
        })?;
        self.pull(&place.tagged(&tag_of(&version)), wanted, Some(version), requirement)
    }

    pub(super) fn newest_version(
        &mut self,
        place: &Reference,
        requirement: Option<&VersionReq>,
    ) -> anyhow::Result<Option<Version>> {
        let tags = self.registry()?.tags(place)?;
        let versions = tags.iter().filter_map(|tag| version_of(tag));
        let fits = |version: &Version| match requirement {
            Some(requirement) => requirement.matches(version),
            // Prereleases are only used on request.
            None => version.pre.is_empty(),
        };
        Ok(versions.filter(fits).max())
    }

    pub(super) fn pull(
        &mut self,
        reference: &Reference,
        wanted: Option<&str>,
        version: Option<Version>,
        requirement: Option<VersionReq>,
    ) -> anyhow::Result<Offer> {
        let signed = self.registry()?.pull(reference).with_context(|| format!("getting `{reference}`"))?;
        let wanted = wanted.map(str::to_owned);
        Ok(Offer { signed, source: reference.place(), wanted, version, pinned: None, requirement })
    }

    /// Fetches a pack of another lock file: from beside that file, or from its source.
    pub(super) fn of_lock(
        &mut self,
        store: &portcullis_packs::Store,
        locked: &Locked,
    ) -> anyhow::Result<Offer> {
        self.agree_to_source(locked)?;
        let signed = match store.signed(locked) {
            Ok(signed) => signed,
            Err(missing) if locked.source == FROM_FILE => return Err(missing.into()),
            Err(_) => {
                let place = Reference::parse(&locked.source)?;
                self.pull(&place.tagged(&tag_of(&locked.version)), None, None, None)?.signed
            }
        };
        Ok(Offer::of_locked(signed, locked))
    }
}

impl LockEditor {
    /// Shows the source of updates in another lock file.
    ///
    /// Asks if the user's own settings do not have the same source, since `update` would use it from then on.
    fn agree_to_source(&self, locked: &Locked) -> anyhow::Result<()> {
        let escape = portcullis_text::escape;
        let (id, source) = (escape(&locked.id), escape(&locked.source));
        let versions = locked.requirement.as_ref().map(|wanted| format!(" that fit `{wanted}`"));
        let versions = versions.unwrap_or_default();
        say(&format!("portcullis: `{id}` comes from `{source}`, as do newer versions{versions}"));
        let is_named = self.place_of(&locked.id).is_ok_and(|place| place.place() == locked.source);
        let is_used = self.store.lock()?.find(&locked.id).is_some_and(|own| own.source == locked.source);
        if locked.source == FROM_FILE || is_named || is_used {
            return Ok(());
        }
        if confirmed("Only that lock says so. Take it over? [y/N]") {
            return Ok(());
        }
        bail!(
            "only that lock says that `{id}` comes from `{source}`, and nothing was changed; name it yourself with \
             `portcullis policy add`, or its publisher with `portcullis policy trust publisher`"
        )
    }
}

fn requirement_of(text: &str) -> anyhow::Result<VersionReq> {
    // A complete version means exactly this version.
    let exact = Version::parse(text).ok().map(|version| format!("={version}"));
    VersionReq::parse(exact.as_deref().unwrap_or(text))
        .with_context(|| format!("`{text}` is no requirement like `^1.2` or `1.2.0`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named() {
        for (text, expected) in [
            ("acme:guard", Named::Id("acme:guard", None)),
            ("acme:guard@^1.2", Named::Id("acme:guard", Some("^1.2"))),
            ("oci://a/b:1", Named::Artifact("oci://a/b:1")),
            ("./a:b", Named::File(Path::new("./a:b"))),
            ("guard.wasm", Named::File(Path::new("guard.wasm"))),
            ("a:b.wasm", Named::File(Path::new("a:b.wasm"))),
        ] {
            assert_eq!(Named::parse(text), expected);
        }
    }

    #[test]
    fn a_whole_version_is_this_one() {
        let exact = requirement_of("1.2.0").unwrap();
        assert!(exact.matches(&Version::new(1, 2, 0)) && !exact.matches(&Version::new(1, 3, 0)));
        assert!(requirement_of("^1.2").unwrap().matches(&Version::new(1, 3, 0)));
        assert!(requirement_of("newest").is_err());
    }
}
