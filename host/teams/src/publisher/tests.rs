//! A publisher's folder from its first root to a rotation of keys.

use std::path::Path;

use super::{Folder, NewTeam, Rotation};
use crate::document::TEAM_PURPOSE;
use crate::held::Trusted;
use crate::source::DocumentName;
use crate::test_team::{DAY, Memory, NOW, fingerprint, held, public, run, signature};

fn sign(folder: &mut Folder, seeds: &[u8]) -> usize {
    let mut sign = |seed: &u8| {
        let made = folder.sign(&fingerprint(*seed), |text| Ok::<_, ()>(signature(*seed, TEAM_PURPOSE, text)));
        made.unwrap().unwrap().len()
    };
    seeds.iter().map(&mut sign).sum()
}

fn new_team(path: &Path) -> Folder {
    let keys = [1, 2, 3].map(public).to_vec();
    let new = NewTeam { team: "acme".to_owned(), keys, threshold: 2, timestamp_keys: vec![public(9)] };
    Folder::create(path, &new, NOW).unwrap()
}

fn published(folder: &Folder) -> Memory {
    assert_eq!(folder.pending().unwrap(), []);
    Memory { documents: folder.complete().unwrap().into_iter().collect(), ..Memory::default() }
}

#[test]
fn from_the_first_root_to_other_keys() {
    let directory = tempfile::tempdir().unwrap();
    let mut folder = new_team(directory.path());
    let pin = folder.pin();
    assert_eq!(folder.pending().unwrap().len(), 1, "the root waits");
    let draft = folder.draft().unwrap();
    folder.next(&draft, false, NOW).unwrap();
    assert_eq!(sign(&mut folder, &[1]), 2, "the root and the bundle, and not the timestamp");
    assert_eq!(sign(&mut folder, &[1]), 0, "nothing waits for this key any more");
    let missing = folder.pending().unwrap();
    assert_eq!(missing.len(), 3);
    assert!(missing.iter().all(|one| one.missing == 1 && !one.keys.contains(&fingerprint(1))), "{missing:?}");
    assert_eq!(sign(&mut folder, &[2, 9]), 3);
    let mut registry = published(&folder);
    let root = registry.documents[&DocumentName::PinnedRoot(pin.clone())].clone();
    let mut member = Trusted::begin(root, "acme", &pin).unwrap();
    run(&mut member, &mut registry).unwrap();
    assert_eq!(held(&member), Some(1));

    // No change makes no version; a change makes one; a yank goes forward.
    let mut folder = Folder::open(directory.path()).unwrap();
    assert_eq!(folder.next(&draft, false, NOW).unwrap().bundle, None);
    std::fs::write(directory.path().join("settings.json"), "{ \"requiredTier\": \"full\" }").unwrap();
    let bad = folder.draft().unwrap();
    assert_eq!(folder.next(&bad, false, NOW).unwrap().bundle, Some(2));
    sign(&mut folder, &[1, 2, 9]);
    assert_eq!(folder.yank(2, "bad", NOW).unwrap().bundle, Some(3));
    assert_eq!(folder.next(&bad, false, NOW).unwrap().bundle, None, "the files still have the bad content");
    assert!(folder.yank(7, "x", NOW).is_err() && folder.yank(1, "x", NOW).is_err());
    sign(&mut folder, &[1, 2, 9]);
    run(&mut member, &mut published(&folder)).unwrap();
    let bundle = &member.bundle.as_ref().unwrap().content;
    assert!(bundle.settings.is_empty() && bundle.yanked[0].version == 2 && bundle.version == 3);

    // Key 4 comes in place of key 2, for roots and bundles.
    let rotation = Rotation { add: vec![public(4)], remove: vec![fingerprint(2)], ..Rotation::default() };
    assert_eq!(folder.rotate(&rotation, NOW + DAY).unwrap(), 2);
    sign(&mut folder, &[1, 4]);
    assert_eq!(
        folder.pending().unwrap()[0].keys,
        [fingerprint(2), fingerprint(3)].into(),
        "an old key must sign it too"
    );
    sign(&mut folder, &[2]);
    run(&mut member, &mut published(&folder)).unwrap();
    assert_eq!((member.root.version, held(&member)), (2, Some(3)));
    assert!(member.bundle.as_ref().unwrap().is_current, "the bundle has signatures of the new keys");
    let lower = Rotation { threshold: Some(4), ..Rotation::default() };
    assert!(folder.rotate(&lower, NOW).is_err(), "three keys cannot reach a threshold of four");
}

#[test]
fn mistakes_in_a_folder_are_named() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Folder::open(directory.path()).unwrap_err().to_string().contains("team new"));
    let folder = new_team(directory.path());
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    for (name, text, said) in [
        ("bundle.toml", "valid-days = 0", "from 1 to 730"),
        ("bundle.toml", "colour = 1", "unknown field"),
        ("bundle.toml", "[[pack]]\nfile = \"none.wasm\"", "none.wasm"),
        ("settings.json", "{", "settings.json"),
        ("trust.toml", "[[revoked]]", "trust"),
    ] {
        let before = std::fs::read_to_string(directory.path().join(name)).unwrap_or_default();
        write(name, text);
        let told = folder.draft().unwrap_err().to_string();
        assert!(told.contains(said), "{text}: {told}");
        write(name, &before);
    }
    let again =
        NewTeam { team: "acme".to_owned(), keys: vec![public(1)], threshold: 1, timestamp_keys: Vec::new() };
    assert!(Folder::create(directory.path(), &again, NOW).unwrap_err().to_string().contains("already"));
    let other = directory.path().join("other");
    let wrong = NewTeam { threshold: 2, ..again };
    assert!(Folder::create(&other, &wrong, NOW).is_err(), "one key cannot reach a threshold of two");
}
