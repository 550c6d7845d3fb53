//! Pushes and pulls packs, as the OCI distribution specification says.
//!
//! Answers of a registry are not trusted: every answer has a size limit, and content requested by digest is
//! checked against it.

use std::collections::BTreeSet;

use serde::Deserialize;
use ureq::http::Method;

use super::artifact::{self, Artifact, Descriptor, MANIFEST, MANIFEST_MAX, Manifest};
use super::client::{Registry, Transfer};
use super::error::RegistryError;
use super::exchange::{Sent, absolute, body, body_watched, get, is_same_host, next_page, root, same};
use super::reference::Reference;
use crate::signature::{Signatures, TEXT_MAX};
use crate::store::{COMPONENT_MAX, Signed};

/// Largest list of tags, in bytes over all pages. In memory each tag takes many times its size in the list.
const TAGS_MAX: u64 = 4 << 20;
/// Largest number of pages of tags.
const PAGES_MAX: usize = 500;

impl Registry {
    /// Pushes a component with its signatures. Returns the digest of its manifest.
    ///
    /// # Errors
    /// Fails when the registry refuses it.
    pub fn push(
        &mut self,
        to: &Reference,
        signed: &Signed,
        imports: &[String],
        exports: &[String],
    ) -> Result<String, RegistryError> {
        let component = artifact::of_component(&signed.bytes, imports, exports);
        self.refuse_other_bytes(to, &signed.bytes)?;
        if !signed.signatures.is_empty() {
            // Signatures go first, so that the component is never visible without them.
            let tag = artifact::signature_tag(&signed.bytes);
            self.put(&to.tagged(&tag), &artifact::of_signatures(&signed.signatures))?;
        }
        self.put(to, &component)?;
        Ok(format!("sha256:{}", crate::digest::digest(&component.manifest)))
    }

    /// Refuses to replace a published version with other bytes.
    fn refuse_other_bytes(&mut self, to: &Reference, component: &[u8]) -> Result<(), RegistryError> {
        let there = match self.manifest(to) {
            Err(RegistryError::Missing(_)) => return Ok(()),
            there => Manifest::parse(&there?)?,
        };
        let digest = format!("sha256:{}", crate::digest::digest(component));
        match there.component() {
            Ok(layer) if layer.digest == digest => Ok(()),
            Ok(_) | Err(_) => Err(RegistryError::Taken(to.to_string())),
        }
    }

    /// Pulls a component with its signatures.
    ///
    /// # Errors
    /// Fails when it does not exist, is not a policy, or differs from the request.
    pub fn pull(&mut self, from: &Reference) -> Result<Signed, RegistryError> {
        let manifest = Manifest::parse(&self.manifest(from)?)?;
        let component = self.blob(from, manifest.component()?, COMPONENT_MAX)?;
        let signatures = self.signatures(from, &component)?;
        Ok(Signed { bytes: component, signatures })
    }

    /// Returns the tags of a repository.
    ///
    /// # Errors
    /// Fails when the repository does not exist or the answer is invalid.
    pub fn tags(&mut self, of: &Reference) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            tags: Option<Vec<String>>,
        }
        let what = format!("the list of versions of `{}`", of.place());
        let unreadable = |source| RegistryError::Answer { host: of.host.clone(), what: what.clone(), source };
        let broken = |reason| RegistryError::Pages { host: of.host.clone(), what: what.clone(), reason };
        let (mut tags, mut left) = (Vec::new(), TAGS_MAX);
        let mut pages = BTreeSet::new();
        let mut url = format!("{}/tags/list?n=1000", root(of));
        loop {
            let response = self.send(of, &get(url.clone(), &what, "application/json"))?;
            let next = next_page(of, response.headers());
            let bytes = body(of, response, &what, left)?;
            left = left.saturating_sub(bytes.len() as u64);
            let page: Page = serde_json::from_slice(&bytes).map_err(unreadable)?;
            tags.extend(page.tags.unwrap_or_default());
            let Some(next) = next else { return Ok(tags) };
            // A silently truncated list would hide the newest versions.
            if !is_same_host(of, &next) {
                return Err(broken("is somewhere else"));
            }
            if !pages.insert(std::mem::replace(&mut url, next)) || pages.contains(&url) {
                return Err(broken("is one that came before"));
            }
            if pages.len() == PAGES_MAX {
                return Err(broken("is one too many"));
            }
        }
    }

    /// Returns the signatures of a component, or none if the registry has none.
    fn signatures(&mut self, from: &Reference, component: &[u8]) -> Result<Signatures, RegistryError> {
        let bytes = match self.manifest(&from.tagged(&artifact::signature_tag(component))) {
            Err(RegistryError::Missing(_)) => return Ok(Signatures::default()),
            bytes => bytes?,
        };
        let manifest = Manifest::parse(&bytes)?;
        let mut texts = [String::new(), String::new()];
        for (text, layer) in texts.iter_mut().zip(manifest.signatures()) {
            if let Some(layer) = layer {
                let bytes = self.blob(from, layer, TEXT_MAX as u64)?;
                *text = String::from_utf8(bytes)
                    .map_err(|_| RegistryError::Shape("a signature is no text".to_owned()))?;
            }
        }
        let [ssh, minisign] = &texts;
        Signatures::parse(ssh, minisign).map_err(RegistryError::Signatures)
    }

    pub(super) fn manifest(&mut self, of: &Reference) -> Result<Vec<u8>, RegistryError> {
        let name = of.digest.as_deref().or(of.tag.as_deref()).unwrap_or("latest");
        let what = format!("the artifact `{of}`");
        let response = self.send(of, &get(format!("{}/manifests/{name}", root(of)), &what, MANIFEST))?;
        let bytes = body(of, response, &what, MANIFEST_MAX)?;
        match &of.digest {
            Some(digest) => same(digest, bytes),
            None => Ok(bytes),
        }
    }

    pub(super) fn blob(
        &mut self,
        of: &Reference,
        blob: &Descriptor,
        max: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let what = format!("the blob `{}` of `{}`", blob.digest, of.place());
        if blob.size > max {
            return Err(RegistryError::TooLarge { host: of.host.clone(), what, max });
        }
        let url = format!("{}/blobs/{}", root(of), blob.digest);
        let response = self.send(of, &get(url, &what, "application/octet-stream"))?;
        let tell = |done| (self.tell)(Transfer::Getting { done, all: blob.size });
        let bytes = body_watched(of, response, &what, blob.size, tell);
        (self.tell)(Transfer::Over);
        same(&blob.digest, bytes?)
    }

    pub(super) fn put(&mut self, to: &Reference, artifact: &Artifact) -> Result<(), RegistryError> {
        for blob in &artifact.blobs {
            self.put_blob(to, blob)?;
        }
        let name = to.tag.as_deref().unwrap_or("latest");
        let sent = Sent {
            method: Method::PUT,
            url: format!("{}/manifests/{name}", root(to)),
            headers: vec![("content-type", MANIFEST)],
            body: &artifact.manifest,
            what: format!("taking `{to}`"),
        };
        self.send(to, &sent).map(drop)
    }

    fn put_blob(&mut self, to: &Reference, blob: &[u8]) -> Result<(), RegistryError> {
        let digest = format!("sha256:{}", crate::digest::digest(blob));
        let what = format!("the blob `{digest}`");
        let there = Sent {
            method: Method::HEAD,
            url: format!("{}/blobs/{digest}", root(to)),
            headers: Vec::new(),
            body: &[],
            what: what.clone(),
        };
        match self.send(to, &there) {
            Err(RegistryError::Missing(_)) => {}
            known => return known.map(drop),
        }
        let begin = Sent {
            method: Method::POST,
            url: format!("{}/blobs/uploads/", root(to)),
            headers: Vec::new(),
            body: &[],
            what: format!("the upload of {what}"),
        };
        let begun = self.send(to, &begin)?;
        let place = begun.headers().get("location").and_then(|place| place.to_str().ok());
        let place = place.ok_or_else(|| RegistryError::Missing(format!("the place for {what}")))?;
        let mut url = absolute(to, place);
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!("digest={digest}"));
        let upload = Sent {
            method: Method::PUT,
            url,
            headers: vec![("content-type", "application/octet-stream")],
            body: blob,
            what: format!("the upload of {what}"),
        };
        (self.tell)(Transfer::Sending { all: blob.len() as u64 });
        let sent = self.send(to, &upload).map(drop);
        (self.tell)(Transfer::Over);
        sent
    }
}
