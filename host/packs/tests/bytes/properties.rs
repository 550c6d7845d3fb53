//! Properties that hold for any bytes from outside. `main.rs` checks each of them on some hundreds of inputs,
//! and `fuzz/` on as many as time allows.

use portcullis_packs::{
    Key, Lock, Manifest, Pack, Reference, SignatureState, Signatures, Signed, Trust, digest, load, save,
    tag_of, version_of,
};
use serde_json::json;

/// The smallest component.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

/// The data of a component is read or refused, and data that was read can be embedded again.
pub(crate) fn component(bytes: &[u8]) {
    let Ok(Some(pack)) = Pack::read(bytes) else { return };
    // Serialized again, the texts may exceed the limits of a pack.
    let Ok(again) = pack.embed(bytes) else { return };
    assert_eq!(Pack::read(&again).ok().flatten(), Some(pack));
}

/// An archive is read as a whole or refused, and can be written and read again.
pub(crate) fn archive(bytes: &[u8]) {
    let Ok(packs) = load(bytes) else { return };
    let named: Vec<(String, Signed)> = packs.iter().map(|pack| (digest(&pack.bytes), pack.clone())).collect();
    let mut written = Vec::new();
    save(&named, &mut written).expect("memory takes everything");
    let told = |packs: &[Signed]| -> Vec<_> {
        packs.iter().map(|pack| (pack.bytes.clone(), pack.signatures.fingerprints())).collect()
    };
    let again = load(written.as_slice()).expect("what was read can be read again");
    assert_eq!(told(&packs), told(&again));
}

/// A manifest in an archive refers only to the archive's blobs with its digests.
pub(crate) fn manifest_of_an_archive(manifest: &[u8]) {
    let blobs = [b"x".as_slice(), b"{}", manifest];
    let descriptor = json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": manifest.len(),
        "digest": format!("sha256:{}", digest(manifest)),
    });
    let index = json!({ "schemaVersion": 2, "manifests": [descriptor] }).to_string();
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).expect("memory takes everything");
    };
    add("index.json", index.as_bytes());
    for blob in blobs {
        add(&format!("blobs/sha256/{}", digest(blob)), blob);
    }
    let archive = archive.into_inner().expect("memory takes everything");
    for pack in load(archive.as_slice()).unwrap_or_default() {
        assert!(blobs.contains(&pack.bytes.as_slice()));
    }
}

/// Text files are parsed or refused, and parse to the same value after they were written again.
pub(crate) fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(trust) = Trust::parse(text, &|_| Ok(text.to_owned())) {
        assert!(
            trust.publishers.iter().all(|publisher| publisher.threshold > 0),
            "nothing would need a signature"
        );
    }
    if let Ok(lock) = Lock::parse(text) {
        let written = lock.text().expect("what was read can be written");
        assert_eq!(Lock::parse(&written).ok(), Some(lock));
    }
    if let Ok(manifest) = Manifest::parse(text) {
        let pack = Pack { manifest, ..Pack::default() };
        let read = pack.embed(EMPTY).ok().map(|bytes| Pack::read(&bytes));
        assert!(read.is_none_or(|read| read.ok().flatten() == Some(pack)));
    }
    if let Ok(key) = Key::parse(text) {
        assert!(!key.fingerprint().is_empty());
    }
    for (ssh, minisign) in [(text, ""), ("", text)] {
        let Ok(signatures) = Signatures::parse(ssh, minisign) else { continue };
        let again = Signatures::parse(&signatures.ssh_text(), signatures.minisign_text())
            .map(|all| all.fingerprints());
        assert_eq!(again.ok(), Some(signatures.fingerprints()));
        // Without known keys no signature is good.
        assert!(signatures.check(bytes, &[]).iter().all(|one| one.state == SignatureState::Unknown));
    }
    if let Ok(reference) = Reference::parse(text) {
        assert_eq!(Reference::parse(&reference.to_string()).ok(), Some(reference));
    }
    if let Some(version) = version_of(text) {
        assert_eq!(version_of(&tag_of(&version)), Some(version));
    }
}
