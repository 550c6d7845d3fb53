//! OCI artifacts: a manifest that refers to blobs, as `wkg oci push` makes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RegistryError;
use crate::pack::Pack;
use crate::shown::shown;
use crate::signature::Signatures;

/// Media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const COMPONENT: &str = "application/wasm";
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const SIGNATURES: &str = "application/vnd.portcullis.signatures.v1";
const NO_CONFIG: &str = "application/vnd.oci.empty.v1+json";
const SSH: &str = "application/vnd.portcullis.signature.ssh.v1";
const MINISIGN: &str = "application/vnd.portcullis.signature.minisign.v1";
/// The schema version of manifests.
const VERSION: u32 = 2;
/// Largest manifest, in bytes.
pub(crate) const MANIFEST_MAX: u64 = 1 << 20;

/// A manifest with its blobs.
#[derive(Debug, Clone)]
pub(crate) struct Artifact {
    pub(crate) manifest: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

/// An OCI image manifest. Unused fields are ignored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(super) schema_version: u32,
    #[serde(skip_deserializing)]
    pub(super) media_type: String,
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    pub(super) artifact_type: String,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// A reference to a blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    pub(crate) fn for_bytes(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: format!("sha256:{}", crate::digest::digest(bytes)),
            size: bytes.len() as u64,
            annotations: None,
        }
    }
}

impl Manifest {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, RegistryError> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| unreadable(bytes, error))?;
        if manifest.schema_version != VERSION {
            let version = manifest.schema_version;
            return Err(RegistryError::Shape(format!("its manifest is of version {version}, not {VERSION}")));
        }
        let all = std::iter::once(&manifest.config).chain(&manifest.layers);
        match all.into_iter().find(|blob| !crate::lock::is_digest(&blob.digest)) {
            Some(blob) => Err(RegistryError::Shape(format!("`{}` is no digest", shown(&blob.digest)))),
            None => Ok(manifest),
        }
    }

    /// Returns the only layer, the component of the policy.
    pub(crate) fn component(&self) -> Result<&Descriptor, RegistryError> {
        match self.layers.as_slice() {
            [layer] if layer.media_type == COMPONENT => Ok(layer),
            [layer] => {
                let found = shown(&layer.media_type);
                Err(RegistryError::Shape(format!("its layer is `{found}`, not `{COMPONENT}`")))
            }
            layers => Err(RegistryError::Shape(format!("it has {} layers, a policy has one", layers.len()))),
        }
    }

    /// Returns the layers with signatures: first ssh, then minisign.
    pub(crate) fn signatures(&self) -> [Option<&Descriptor>; 2] {
        [SSH, MINISIGN].map(|kind| self.layers.iter().find(|layer| layer.media_type == kind))
    }
}

/// Returns the error for a text that is not a manifest.
fn unreadable(bytes: &[u8], error: serde_json::Error) -> RegistryError {
    #[derive(Deserialize)]
    struct Index {
        #[serde(rename = "manifests")]
        _manifests: Vec<serde::de::IgnoredAny>,
    }
    match serde_json::from_slice::<Index>(bytes) {
        Ok(_) => RegistryError::Shape(
            "it is a list of artifacts, as there are for several machines; a policy is one".to_owned(),
        ),
        Err(_) => RegistryError::Manifest(error),
    }
}

/// Returns the tag of a component's signatures.
///
/// A tag also works in registries without the referrers API.
pub(crate) fn signature_tag(component: &[u8]) -> String {
    format!("sha256-{}.sig", crate::digest::digest(component))
}

/// Returns the artifact of a component. The same component always gives the same artifact.
pub(crate) fn of_component(component: &[u8], imports: &[String], exports: &[String]) -> Artifact {
    let layer = Descriptor::for_bytes(COMPONENT, component);
    let config = serde_json::json!({
        "created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2",
        "layerDigests": [layer.digest],
        "component": { "exports": exports, "imports": imports, "target": null },
    });
    let config = config.to_string().into_bytes();
    let manifest = Manifest {
        schema_version: VERSION,
        media_type: MANIFEST.to_owned(),
        artifact_type: String::new(),
        config: Descriptor::for_bytes(WASM_CONFIG, &config),
        layers: vec![layer],
        annotations: annotations(component),
    };
    Artifact { manifest: bytes(&manifest), blobs: vec![config, component.to_owned()] }
}

/// Returns the artifact of signatures.
pub(crate) fn of_signatures(signatures: &Signatures) -> Artifact {
    let ssh = signatures.ssh_text();
    let parts = [(SSH, ssh.as_bytes()), (MINISIGN, signatures.minisign_text().as_bytes())];
    of_parts(SIGNATURES, parts.into_iter().filter(|(_, text)| !text.is_empty()))
}

/// Returns the artifact of a kind with these parts, each a media type with its content.
pub(super) fn of_parts<'a>(kind: &str, parts: impl Iterator<Item = (&'a str, &'a [u8])>) -> Artifact {
    let config = b"{}".to_vec();
    let (mut layers, mut blobs) = (Vec::new(), vec![config.clone()]);
    for (media_type, content) in parts {
        layers.push(Descriptor::for_bytes(media_type, content));
        blobs.push(content.to_owned());
    }
    let manifest = Manifest {
        schema_version: VERSION,
        media_type: MANIFEST.to_owned(),
        artifact_type: kind.to_owned(),
        config: Descriptor::for_bytes(NO_CONFIG, &config),
        layers,
        annotations: BTreeMap::new(),
    };
    Artifact { manifest: bytes(&manifest), blobs }
}

fn annotations(component: &[u8]) -> BTreeMap<String, String> {
    let Ok(Some(Pack { manifest, .. })) = Pack::read(component) else { return BTreeMap::new() };
    let about = manifest.policy;
    let all = [
        ("title", about.id),
        ("version", about.version),
        ("description", about.description),
        ("licenses", about.license),
        ("source", about.repository),
        ("authors", about.authors.join(", ")),
    ];
    let named = |(name, value)| (format!("org.opencontainers.image.{name}"), value);
    all.into_iter().map(named).filter(|(_, value)| !value.is_empty()).collect()
}

pub(super) fn bytes(manifest: &Manifest) -> Vec<u8> {
    serde_json::to_vec(manifest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest as `wkg oci push` (0.16) makes it, with `null` where other programs omit a field.
    #[test]
    fn a_manifest_of_wkg_is_read() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
            "config":{{"mediaType":"application/vnd.wasm.config.v0+json","digest":"{digest}","size":3}},
            "layers":[{{"mediaType":"application/wasm","digest":"{digest}","size":7,"annotations":null}}],
            "annotations":null,"subject":null,"artifactType":null}}"#
        );
        assert_eq!(Manifest::parse(text.as_bytes()).unwrap().component().unwrap().size, 7);
    }

    #[test]
    fn what_is_no_manifest_is_told_in_one_line() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let layer =
            |kind: &str, digest: &str| serde_json::json!({ "mediaType": kind, "digest": digest, "size": 1 });
        let manifest = |version: u32, layer: serde_json::Value| {
            let config = serde_json::json!({ "mediaType": "x", "digest": digest, "size": 1 });
            serde_json::json!({ "schemaVersion": version, "config": config, "layers": [layer] })
        };
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [layer(MANIFEST, &digest)] });
        for (text, said) in [
            (index, "a list of artifacts"),
            (manifest(1, layer(COMPONENT, &digest)), "of version 1"),
            (manifest(2, layer("x\u{1b}[2J\nportcullis: all is well", &digest)), "`x\\u{1b}[2J\\nportcullis"),
            (manifest(2, layer(COMPONENT, "sha256:\r\n../../x")), "`sha256:\\r\\n../../x` is no digest"),
            (manifest(2, layer(&"x".repeat(900_000), &digest)), "x…`, not"),
        ] {
            let refused = Manifest::parse(text.to_string().as_bytes())
                .and_then(|manifest| manifest.component().cloned())
                .unwrap_err();
            let told = refused.to_string();
            assert!(told.contains(said) && told.len() < 300 && !told.contains(['\n', '\u{1b}']), "{told}");
        }
        let good = manifest(2, layer(COMPONENT, &digest)).to_string();
        assert!(Manifest::parse(good.as_bytes()).unwrap().component().is_ok());
    }

    #[test]
    fn one_component_and_nothing_else() {
        let artifact = of_component(b"x", &[], &[]);
        assert_eq!(artifact.manifest, of_component(b"x", &[], &[]).manifest);
        let manifest = Manifest::parse(&artifact.manifest).unwrap();
        assert_eq!(manifest.component().unwrap().size, 1);
        for change in [r#""application/wasm""#, r#""sha256:"#] {
            let text = String::from_utf8(artifact.manifest.clone()).unwrap().replace(change, "\"other:");
            let text = text.replace("\"other:,", "\"other\",");
            let refused = Manifest::parse(text.as_bytes()).and_then(|manifest| manifest.component().cloned());
            assert!(refused.is_err(), "{text}");
        }
        let mut two = manifest.clone();
        two.layers.push(manifest.component().unwrap().clone());
        assert!(two.component().is_err());
    }
}
