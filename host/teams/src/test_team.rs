//! A team for tests: keys, documents, and a source in memory that a test can make lie.

use std::collections::BTreeMap;

use portcullis_packs::Seconds;
use semver::Version;
use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, PrivateKey};
use ssh_key::{HashAlg, LineEnding};

use crate::document::{SignedText, TEAM_PURPOSE};
use crate::held::Trusted;
use crate::source::{DocumentName, Source, SourceError};
use crate::update::{Checks, Update, update};

pub(crate) const NOW: Seconds = 1_800_000_000;
pub(crate) const DAY: Seconds = 24 * 60 * 60;

pub(crate) fn private(seed: u8) -> PrivateKey {
    PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
}

pub(crate) fn public(seed: u8) -> String {
    private(seed).public_key().to_openssh().unwrap()
}

pub(crate) fn fingerprint(seed: u8) -> String {
    private(seed).public_key().fingerprint(HashAlg::Sha256).to_string()
}

pub(crate) fn signature(seed: u8, purpose: &str, text: &str) -> String {
    private(seed).sign(purpose, HashAlg::Sha512, text.as_bytes()).unwrap().to_pem(LineEnding::LF).unwrap()
}

pub(crate) fn signed(document: &Value, seeds: &[u8]) -> SignedText {
    let text = document.to_string();
    let signatures = seeds.iter().map(|seed| signature(*seed, TEAM_PURPOSE, &text)).collect();
    SignedText { text, signatures }
}

fn role(seeds: &[u8], threshold: usize) -> Value {
    json!({ "threshold": threshold, "keys": seeds.iter().map(|seed| fingerprint(*seed)).collect::<Vec<_>>() })
}

/// A root: two of `owners` sign roots and bundles, one of `online` signs timestamps.
pub(crate) fn root(version: u64, owners: &[u8], online: &[u8]) -> Value {
    let keys: Vec<String> = owners.iter().chain(online).map(|seed| public(*seed)).collect();
    json!({
        "type": "root", "team": "acme", "version": version, "expiresAt": NOW + 365 * DAY, "keys": keys,
        "roles": { "root": role(owners, 2), "bundle": role(owners, 2), "timestamp": role(online, 1) },
    })
}

pub(crate) fn bundle(version: u64) -> Value {
    json!({ "type": "bundle", "team": "acme", "version": version, "expiresAt": NOW + 90 * DAY })
}

pub(crate) fn at(version: u64, signed: &SignedText) -> Value {
    json!({ "version": version, "digest": signed.digest(), "size": signed.text.len() })
}

pub(crate) fn timestamp(version: u64, newest: &Value, earlier: &[Value]) -> Value {
    json!({
        "type": "timestamp", "team": "acme", "version": version, "expiresAt": NOW + 14 * DAY,
        "bundle": newest, "earlier": earlier,
    })
}

/// A registry in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) documents: BTreeMap<DocumentName, SignedText>,
    pub(crate) packs: BTreeMap<String, Vec<u8>>,
    pub(crate) is_down: bool,
}

impl Memory {
    /// Publishes a bundle with a timestamp of the same version, signed as they must be.
    pub(crate) fn publish(&mut self, document: &Value) {
        let version = document["version"].as_u64().unwrap();
        let bundle = signed(document, &[1, 2]);
        let stamp = timestamp(version, &at(version, &bundle), &[]);
        self.documents.insert(DocumentName::Bundle(version), bundle);
        self.documents.insert(DocumentName::Timestamp, signed(&stamp, &[9]));
    }
}

impl Source for Memory {
    fn document(&mut self, name: &DocumentName) -> Result<Option<SignedText>, SourceError> {
        if self.is_down {
            Err("no route to the registry".into())
        } else {
            Ok(self.documents.get(name).cloned())
        }
    }

    fn pack(&mut self, digest: &str, _size: u64) -> Result<Vec<u8>, SourceError> {
        self.packs.get(digest).cloned().ok_or_else(|| "not there".into())
    }
}

/// The first root: keys 1, 2 and 3 own it, key 9 signs timestamps.
pub(crate) fn first_root() -> SignedText {
    signed(&root(1, &[1, 2, 3], &[9]), &[1, 2])
}

/// A member that holds bundle 1, and the registry that has it.
pub(crate) fn member() -> (Trusted, Memory) {
    let first = first_root();
    let mut trusted = Trusted::begin(first.clone(), "acme", &first.digest()).unwrap();
    let mut registry = Memory::default();
    registry.publish(&bundle(1));
    run(&mut trusted, &mut registry).unwrap();
    assert_eq!(held(&trusted), Some(1), "control: the first bundle is accepted");
    (trusted, registry)
}

pub(crate) fn held(trusted: &Trusted) -> Option<u64> {
    trusted.bundle.as_ref().map(|bundle| bundle.content.version)
}

/// Updates a member.
pub(crate) fn run(trusted: &mut Trusted, source: &mut dyn Source) -> Result<Update, String> {
    run_at(trusted, source, NOW)
}

pub(crate) fn run_at(trusted: &mut Trusted, source: &mut dyn Source, now: Seconds) -> Result<Update, String> {
    let program = Version::new(0, 1, 0);
    let checks = Checks {
        program: &program,
        now,
        required: &[],
        minimum_version: 0,
        has_pack: &|_| false,
        usable: &|_, _| Ok(()),
    };
    update(trusted, source, &checks).map_err(|error| error.to_string())
}
