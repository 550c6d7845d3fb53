//! Packs in one file, for machines without a network: a tar archive of a standard OCI image layout.
//!
//! An archive is read into memory and checked as a whole. Its names never become paths: names outside of the
//! layout are refused.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::lock::is_digest;
use crate::registry::RegistryError;
use crate::registry::artifact::{self, Artifact, Descriptor, MANIFEST, Manifest};
use crate::shown::shown;
use crate::signature::{Signatures, TEXT_MAX};
use crate::store::{COMPONENT_MAX, Signed};

/// Largest number of entries in an archive.
const ENTRIES_MAX: usize = 1000;
/// Largest size of all entries together, in bytes.
const ALL_MAX: u64 = 512 << 20;
const NAME: &str = "org.opencontainers.image.ref.name";
const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

const INDEX: &str = "index.json";

/// The files of an archive, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// The reason why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ArchiveError {
    /// Reading or writing failed.
    #[error("reading or writing it")]
    Io(#[from] std::io::Error),
    /// An entry does not belong into the archive.
    #[error("the entry `{name}` {reason}")]
    Entry { name: String, reason: &'static str },
    /// The file is not a tar archive.
    #[error("it is not a tar archive; decompress a compressed one first")]
    NotATar,
    /// The archive is too large.
    #[error("it holds more than {ENTRIES_MAX} entries, or more than 512 MiB")]
    TooLarge,
    /// An entry that the index or a manifest refers to is missing.
    #[error("`{0}` is not in it")]
    Missing(String),
    /// The index cannot be read.
    #[error("its index cannot be read")]
    Index(#[source] serde_json::Error),
    /// A pack in the archive cannot be used.
    #[error("a pack in it")]
    Pack(#[source] RegistryError),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    manifests: Vec<Descriptor>,
}

/// Writes packs, each under a name.
///
/// # Errors
/// Fails when writing fails.
pub fn save(packs: &[(String, Signed)], to: impl Write) -> Result<(), ArchiveError> {
    let mut archive = tar::Builder::new(to);
    let mut blobs = BTreeMap::new();
    let mut manifests = Vec::new();
    let mut keep = |artifact: Artifact, name: String| {
        let mut descriptor = Descriptor::for_bytes(MANIFEST, &artifact.manifest);
        descriptor.annotations = Some(BTreeMap::from([(NAME.to_owned(), name)]));
        manifests.push(descriptor);
        for bytes in artifact.blobs.into_iter().chain([artifact.manifest]) {
            blobs.insert(crate::digest::digest(&bytes), bytes);
        }
    };
    for (name, signed) in packs {
        keep(artifact::of_component(&signed.bytes, &[], &[]), name.clone());
        if !signed.signatures.is_empty() {
            keep(artifact::of_signatures(&signed.signatures), artifact::signature_tag(&signed.bytes));
        }
    }
    let index = serde_json::to_vec(&Index { schema_version: 2, manifests }).map_err(ArchiveError::Index)?;
    append(&mut archive, "oci-layout", LAYOUT)?;
    append(&mut archive, INDEX, &index)?;
    for (digest, bytes) in &blobs {
        append(&mut archive, &format!("blobs/sha256/{digest}"), bytes)?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

/// Reads all packs of an archive.
///
/// # Errors
/// Fails when any part of the archive is invalid.
pub fn load(from: impl Read) -> Result<Vec<Signed>, ArchiveError> {
    let mut files = entries(from)?;
    let index = files.get(INDEX).ok_or_else(|| ArchiveError::Missing(INDEX.to_owned()))?;
    let index: Index = serde_json::from_slice(index).map_err(ArchiveError::Index)?;
    if index.manifests.len() > ENTRIES_MAX {
        return Err(ArchiveError::TooLarge);
    }
    let mut manifests = BTreeMap::new();
    for descriptor in &index.manifests {
        let bytes = blob(&files, descriptor, artifact::MANIFEST_MAX)?;
        let manifest = Manifest::parse(bytes).map_err(ArchiveError::Pack)?;
        let named = descriptor.annotations.as_ref().and_then(|all| all.get(NAME)).cloned();
        let name = named.unwrap_or_else(|| descriptor.digest.clone());
        manifests.insert(name, manifest);
    }
    let mut packs: BTreeMap<&str, Signatures> = BTreeMap::new();
    for manifest in manifests.iter().filter(|(name, _)| !is_signature(name)).map(|(_, manifest)| manifest) {
        let component = manifest.component().map_err(ArchiveError::Pack)?;
        // One pack may have several names.
        if !packs.contains_key(component.digest.as_str()) {
            let bytes = blob(&files, component, COMPONENT_MAX)?;
            let signing = manifests.get(&artifact::signature_tag(bytes));
            packs.insert(&component.digest, signatures(&files, signing)?);
        }
    }
    // Moved, not copied, so that each blob is in memory only once.
    let mut take = |(digest, signatures): (&str, Signatures)| {
        let bytes =
            files.remove(&blob_name(digest)).ok_or_else(|| ArchiveError::Missing(digest.to_owned()))?;
        Ok(Signed { bytes, signatures })
    };
    packs.into_iter().map(&mut take).collect()
}

/// Returns the signatures that a manifest refers to.
fn signatures(files: &Files, signing: Option<&Manifest>) -> Result<Signatures, ArchiveError> {
    let mut texts = [String::new(), String::new()];
    for (text, layer) in texts.iter_mut().zip(signing.map(Manifest::signatures).unwrap_or_default()) {
        if let Some(layer) = layer {
            let signature = blob(files, layer, TEXT_MAX as u64)?.to_owned();
            *text = String::from_utf8(signature)
                .map_err(|_| ArchiveError::Pack(RegistryError::Shape("a signature is no text".to_owned())))?;
        }
    }
    let [ssh, minisign] = &texts;
    Signatures::parse(ssh, minisign).map_err(|error| ArchiveError::Pack(RegistryError::Signatures(error)))
}

/// Returns the blob of a descriptor after checking its digest and size.
fn blob<'a>(files: &'a Files, descriptor: &Descriptor, max: u64) -> Result<&'a [u8], ArchiveError> {
    if !is_digest(&descriptor.digest) {
        return Err(ArchiveError::Missing(shown(&descriptor.digest)));
    }
    let name = blob_name(&descriptor.digest);
    let bytes = files.get(&name).ok_or_else(|| ArchiveError::Missing(name.clone()))?;
    let reason = match format!("sha256:{}", crate::digest::digest(bytes)) == descriptor.digest {
        true if bytes.len() as u64 <= max => return Ok(bytes),
        true => "is too large",
        false => "has other bytes than its name says",
    };
    Err(ArchiveError::Entry { name, reason })
}

fn blob_name(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn is_signature(name: &str) -> bool {
    name.strip_prefix("sha256-").is_some_and(|rest| rest.ends_with(".sig"))
}

/// Reads all files of an archive and refuses entries that do not belong there.
fn entries(from: impl Read) -> Result<Files, ArchiveError> {
    let mut files = BTreeMap::new();
    let (mut count, mut all) = (0, 0);
    // In raw mode, headers for long names and the like are ordinary entries, and are refused as unknown
    // kinds.
    for entry in tar::Archive::new(from).entries()?.raw(true) {
        // Errors of the system have a number; format errors of the tar reader have none.
        let is_none = |error: &std::io::Error| count == 0 && error.raw_os_error().is_none();
        let entry =
            entry.map_err(|error| if is_none(&error) { ArchiveError::NotATar } else { error.into() })?;
        count += 1;
        if count > ENTRIES_MAX {
            return Err(ArchiveError::TooLarge);
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let refused = |reason| ArchiveError::Entry { name: shown(&name), reason };
        let kind = entry.header().entry_type();
        let plain = name.strip_prefix("./").unwrap_or(&name);
        if kind.is_dir() && ["", "blobs", "blobs/sha256"].contains(&plain.trim_end_matches('/')) {
            continue;
        }
        if kind != tar::EntryType::Regular {
            return Err(refused("is no plain file"));
        }
        let is_blob =
            plain.strip_prefix("blobs/sha256/").is_some_and(|hex| is_digest(&format!("sha256:{hex}")));
        if !is_blob && plain != "oci-layout" && plain != INDEX {
            return Err(refused("has no place in an archive of policies"));
        }
        let size = entry.header().entry_size()?;
        all += size.min(ALL_MAX + 1);
        if all > ALL_MAX {
            return Err(ArchiveError::TooLarge);
        }
        let mut bytes = Vec::new();
        entry.take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(refused("is cut off"));
        }
        if files.insert(plain.to_owned(), bytes).is_some() {
            return Err(refused("is there twice"));
        }
    }
    Ok(files)
}

fn append(archive: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    Ok(archive.append_data(&mut header, name, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs() -> Vec<(String, Signed)> {
        let signed = |bytes: &[u8]| Signed { bytes: bytes.to_owned(), signatures: Signatures::default() };
        vec![("a:a@1.0.0".to_owned(), signed(b"one")), ("b:b@1.0.0".to_owned(), signed(b"two"))]
    }

    fn archive() -> Vec<u8> {
        let mut bytes = Vec::new();
        save(&packs(), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let loaded = load(archive().as_slice()).unwrap();
        let mut bytes: Vec<&[u8]> = loaded.iter().map(|signed| signed.bytes.as_slice()).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, [b"one", b"two"]);
        assert_eq!(archive(), archive());
    }

    /// Returns an archive with one more, arbitrary entry.
    fn with(name: &[u8], kind: tar::EntryType, size: u64, link: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        let raw = header.as_old_mut();
        raw.name[..name.len()].copy_from_slice(name);
        raw.linkname[..link.len()].copy_from_slice(link);
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(archive());
        bytes
    }

    #[test]
    fn tricks_are_refused() {
        use tar::EntryType;
        let zeros = "0".repeat(64);
        for (name, kind, link) in [
            ("../../etc/passwd", EntryType::Regular, ""),
            ("/etc/passwd", EntryType::Regular, ""),
            ("blobs/sha256/../../x", EntryType::Regular, ""),
            ("policy.lock", EntryType::Regular, ""),
            ("index.json", EntryType::Symlink, "/etc/passwd"),
            ("blobs/sha256", EntryType::Symlink, "/tmp"),
            (&format!("blobs/sha256/{zeros}"), EntryType::Link, "index.json"),
            ("pipe", EntryType::Fifo, ""),
            ("tty", EntryType::Char, ""),
            ("index.json", EntryType::GNUSparse, ""),
            ("index.json", EntryType::XHeader, ""),
            ("index.json", EntryType::GNULongName, ""),
            ("../", EntryType::Directory, ""),
            ("index.json", EntryType::Regular, ""),
        ] {
            let refused = load(with(name.as_bytes(), kind, 0, link.as_bytes()).as_slice());
            assert!(matches!(refused, Err(ArchiveError::Entry { .. })), "{name} {kind:?}: {refused:?}");
        }
        // The control: without the entry the archive is accepted.
        assert!(load(archive().as_slice()).is_ok());
    }

    #[test]
    fn directories_are_counted_and_names_stay_in_their_line() {
        let directory = with(b"blobs/", tar::EntryType::Directory, 0, b"");
        let head = directory.get(..512).unwrap();
        assert!(load([head, &archive()].concat().as_slice()).is_ok());
        let many = [head.repeat(ENTRIES_MAX), archive()].concat();
        assert!(matches!(load(many.as_slice()), Err(ArchiveError::TooLarge)));
        let odd = with(b"x\x1b[2J\nportcullis: all is well", tar::EntryType::Regular, 0, b"");
        let told = load(odd.as_slice()).unwrap_err().to_string();
        assert!(told.contains("`x\\u{1b}[2J\\nportcullis: all is well`"), "{told}");
    }

    /// Returns an archive of one component under many names.
    fn named(times: usize) -> Vec<u8> {
        let artifact = artifact::of_component(b"one", &[], &[]);
        let descriptor = |number: usize| {
            let mut descriptor = Descriptor::for_bytes(MANIFEST, &artifact.manifest);
            descriptor.annotations = Some(BTreeMap::from([(NAME.to_owned(), format!("a:a@{number}"))]));
            descriptor
        };
        let index = Index { schema_version: 2, manifests: (0..times).map(descriptor).collect() };
        let mut archive = tar::Builder::new(Vec::new());
        append(&mut archive, INDEX, &serde_json::to_vec(&index).unwrap()).unwrap();
        for bytes in artifact.blobs.iter().chain([&artifact.manifest]) {
            append(&mut archive, &format!("blobs/sha256/{}", crate::digest::digest(bytes)), bytes).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn many_names_are_one_pack() {
        assert_eq!(load(named(60).as_slice()).unwrap().len(), 1);
        assert!(matches!(load(named(ENTRIES_MAX + 1).as_slice()), Err(ArchiveError::TooLarge)));
    }

    #[test]
    fn bombs_and_cuts_are_refused() {
        let huge = with(b"index.json", tar::EntryType::Regular, 8 << 30, b"");
        assert!(matches!(load(huge.as_slice()), Err(ArchiveError::TooLarge)));
        let whole = archive();
        for end in [600, 1500, 2000] {
            assert!(load(whole.get(..end).unwrap()).is_err(), "{end}");
        }
        assert!(load(&b""[..]).is_err());
        for other in [&b"\x1f\x8b\x08\0 gzip, or anything else"[..], &[0xa5; 2000]] {
            assert!(matches!(load(other), Err(ArchiveError::NotATar)));
        }
        let mut flipped = archive();
        let place = flipped.windows(3).position(|bytes| bytes == b"two").unwrap();
        flipped[place] ^= 1;
        assert!(matches!(load(flipped.as_slice()), Err(ArchiveError::Entry { .. })));
    }
}
