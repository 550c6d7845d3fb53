//! Parsers of bytes from outside, with the seeds of the fuzz targets and mutations of them.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests, which end where they cannot go on"
)]

mod properties;

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

/// Returns the seeds of a fuzz target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// A mutation.
#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Put(Index, Vec<u8>),
    Cut(Index, Index),
    Again(Index, Index),
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let odd = prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff, b'"', b'\'', b'\n', b'[', b'\\']);
        prop_oneof![
            (any::<Index>(), odd).prop_map(|(at, byte)| Self::Set(at, byte)),
            (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Self::Set(at, byte)),
            (any::<Index>(), prop::collection::vec(any::<u8>(), 1..8))
                .prop_map(|(at, bytes)| Self::Put(at, bytes)),
            (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Self::Cut(from, to)),
            (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Self::Again(from, to)),
        ]
    }

    fn happen(&self, bytes: &mut Vec<u8>) {
        let places = bytes.len() + 1;
        let range = |from: &Index, to: &Index| {
            let (from, to) = (from.index(places), to.index(places));
            from.min(to)..from.max(to)
        };
        match self {
            Self::Set(at, byte) => {
                if let Some(place) = bytes.get_mut(at.index(places)) {
                    *place = *byte;
                }
            }
            Self::Put(at, new) => drop(bytes.splice(at.index(places)..at.index(places), new.iter().copied())),
            Self::Cut(from, to) => drop(bytes.drain(range(from, to))),
            Self::Again(from, to) => {
                let part = bytes.get(range(from, to)).unwrap_or_default().to_owned();
                bytes.extend(part);
            }
        }
    }
}

/// Generates a seed of a target with a few mutations.
fn changed(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    (prop::sample::select(seeds(target)), prop::collection::vec(Change::any(), 0..4)).prop_map(
        |(mut bytes, changes)| {
            changes.iter().for_each(|change| change.happen(&mut bytes));
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn components(bytes in changed("packs")) {
        properties::component(&bytes);
    }

    #[test]
    fn archives(bytes in changed("archives")) {
        properties::archive(&bytes);
        properties::manifest_of_an_archive(&bytes);
    }

    #[test]
    fn texts(bytes in changed("texts")) {
        properties::text(&bytes);
    }
}

/// Checks that the seeds can still be parsed. With useless seeds the fuzz targets would find little.
#[test]
fn the_seeds_are_read() {
    use portcullis_packs::{Key, Lock, Manifest, Pack, Reference, Signatures, Trust, load};
    let packs: Vec<bool> = seeds("packs").iter().map(|bytes| Pack::read(bytes).unwrap().is_some()).collect();
    assert_eq!(packs, [true, false, true], "least, none, whole");
    let archives = seeds("archives");
    assert_eq!(load(archives.last().unwrap().as_slice()).unwrap().len(), 1);
    archives.iter().for_each(|bytes| properties::manifest_of_an_archive(bytes));
    let texts: Vec<String> =
        seeds("texts").into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
    let [lock, manifest, key, minisign, reference, signers, ssh, trust] = texts.as_slice() else {
        unreachable!("a seed that nobody reads here: {texts:?}")
    };
    assert_eq!(Lock::parse(lock).unwrap().policies.len(), 1);
    assert_eq!(Manifest::parse(manifest).unwrap().policy.id, "acme:guard");
    assert!(Key::parse(key).is_ok() && Reference::parse(reference).is_ok());
    assert!(!Signatures::parse(ssh, minisign).unwrap().is_empty());
    assert_eq!(Trust::parse(trust, &|_| Ok(signers.clone())).unwrap().keys().len(), 2);
}
