//! The standard attacks on update systems, each with a control, against the workflow of an update.

use semver::Version;
use serde_json::{Value, json};

use crate::document::{SignedText, TEAM_PURPOSE};
use crate::held::Trusted;
use crate::source::DocumentName;
use crate::test_team::{
    DAY, Memory, NOW, at, bundle, fingerprint, first_root, held, member, root, run, run_at, signature,
    signed, timestamp,
};
use crate::update::{Checks, update};

/// Publishes bundle 2, changed by `lie`; expects `said` and that bundle 1 stays. Without the lie, 2 is accepted.
fn refused(lie: impl Fn(&mut Memory), said: &str) {
    let (mut member, mut registry) = member();
    registry.publish(&bundle(2));
    let honest = registry.clone();
    lie(&mut registry);
    let told = match run(&mut member, &mut registry) {
        Err(told) => told,
        Ok(update) => update.refused.iter().map(|(_, error)| error.to_string()).collect(),
    };
    assert!(told.contains(said), "expected `{said}`: {told}");
    assert_eq!(held(&member), Some(1), "{said}");
    let mut control = honest.clone();
    let (mut other, _) = self::member();
    run(&mut other, &mut control).unwrap();
    assert_eq!(held(&other), Some(2), "control of `{said}`");
}

fn stamp(registry: &mut Memory, document: &Value, seeds: &[u8]) {
    registry.documents.insert(DocumentName::Timestamp, signed(document, seeds));
}

/// Publishes another bundle 2 with a valid timestamp.
fn other_second(registry: &mut Memory, document: &Value, seeds: &[u8]) {
    let other = signed(document, seeds);
    stamp(registry, &timestamp(2, &at(2, &other), &[]), &[9]);
    registry.documents.insert(DocumentName::Bundle(2), other);
}

#[test]
fn wrong_keys_and_too_few_of_them() {
    // Key 7 is no key of the team, key 9 signs timestamps only, and two signatures of one key are one.
    for seeds in [&[1][..], &[1, 7], &[1, 9], &[1, 1], &[]] {
        refused(|registry| other_second(registry, &bundle(2), seeds), "needs signatures of 2 keys");
    }
    for seeds in [&[7][..], &[1, 2, 3], &[]] {
        refused(
            |registry| {
                let newest = at(2, &registry.documents[&DocumentName::Bundle(2)]);
                stamp(registry, &timestamp(2, &newest, &[]), seeds);
            },
            "needs signatures of 1 keys",
        );
    }
}

#[test]
fn signatures_of_other_bytes_and_purposes() {
    let text = bundle(2).to_string();
    for (signatures, said) in [
        (signature(1, "portcullis-policy", &text) + &signature(2, "portcullis-policy", &text), "signed for"),
        (signature(1, TEAM_PURPOSE, "x") + &signature(2, TEAM_PURPOSE, "x"), "signed other bytes"),
        ("-----BEGIN SSH SIGNATURE-----\nxx".to_owned(), "cannot be read"),
    ] {
        refused(
            |registry| {
                let other = SignedText { text: text.clone(), signatures: signatures.clone() };
                stamp(registry, &timestamp(2, &at(2, &other), &[]), &[9]);
                registry.documents.insert(DocumentName::Bundle(2), other);
            },
            said,
        );
    }
}

#[test]
fn rollback() {
    let (mut member, mut registry) = member();
    let old = registry.clone();
    registry.publish(&bundle(2));
    run(&mut member, &mut registry).unwrap();
    // The registry offers the old documents again.
    let told = run(&mut member, &mut old.clone()).unwrap_err();
    assert!(told.contains("an old one is offered again") && held(&member) == Some(2), "{told}");
    // A new timestamp that names the old bundle.
    let first = at(1, &registry.documents[&DocumentName::Bundle(1)]);
    stamp(&mut registry, &timestamp(3, &first, &[]), &[9]);
    let told = run(&mut member, &mut registry).unwrap_err();
    assert!(told.contains("bundle has version 1") && held(&member) == Some(2), "{told}");
    // A bundle that was named and not accepted also counts.
    let broken = signed(&bundle(4), &[1]);
    stamp(&mut registry, &timestamp(4, &at(4, &broken), &[]), &[9]);
    registry.documents.insert(DocumentName::Bundle(4), broken);
    assert_eq!(run(&mut member, &mut registry).unwrap().refused.len(), 1);
    let third = signed(&bundle(3), &[1, 2]);
    stamp(&mut registry, &timestamp(5, &at(3, &third), &[]), &[9]);
    registry.documents.insert(DocumentName::Bundle(3), third);
    assert!(run(&mut member, &mut registry).unwrap_err().contains("version 4 was seen"));
    // The control: a newer one is accepted.
    registry.publish(&bundle(6));
    run(&mut member, &mut registry).unwrap();
    assert_eq!(held(&member), Some(6));
}

#[test]
fn freeze() {
    let (mut member, mut registry) = member();
    run_at(&mut member, &mut registry, NOW + 13 * DAY).unwrap();
    assert_eq!(member.held.checked_at, NOW + 13 * DAY);
    // The registry goes on offering the last timestamp.
    let told = run_at(&mut member, &mut registry, NOW + 15 * DAY).unwrap_err();
    assert!(told.contains("timestamp expired") && told.contains("holding back"), "{told}");
    assert!(held(&member) == Some(1) && member.held.checked_at == NOW + 13 * DAY);
    // A fresh timestamp does not help an expired bundle, nor an expired root.
    refused(
        |registry| {
            let mut old = bundle(2);
            old["expiresAt"] = json!(NOW - DAY);
            other_second(registry, &old, &[1, 2]);
        },
        "bundle 2 expired",
    );
    let told = run_at(&mut member, &mut registry, NOW + 400 * DAY).unwrap_err();
    assert!(told.contains("root 1 expired"), "{told}");
}

#[test]
fn mix_and_match() {
    // The timestamp is of one set and the bundle of another.
    refused(
        |registry| {
            let mut other = bundle(2);
            other["expiresAt"] = json!(NOW + 50 * DAY);
            registry.documents.insert(DocumentName::Bundle(2), signed(&other, &[1, 2]));
        },
        "has the digest",
    );
    // Bundle 1 under the name of bundle 2, with a timestamp that says so.
    refused(
        |registry| {
            let first = registry.documents[&DocumentName::Bundle(1)].clone();
            stamp(registry, &timestamp(2, &at(2, &first), &[]), &[9]);
            registry.documents.insert(DocumentName::Bundle(2), first);
        },
        "bundle 2 was asked for, and this is version 1",
    );
    // The version in force with other content.
    let (mut member, mut registry) = member();
    let mut other = bundle(1);
    other["expiresAt"] = json!(NOW + 50 * DAY);
    let other = signed(&other, &[1, 2]);
    stamp(&mut registry, &timestamp(2, &at(1, &other), &[]), &[9]);
    registry.documents.insert(DocumentName::Bundle(1), other);
    let refused = run(&mut member, &mut registry).unwrap().refused;
    assert!(refused[0].1.to_string().contains("other content"), "{refused:?}");
    // The timestamp in force with other content.
    let (mut member, mut registry) = self::member();
    let mut stamped = timestamp(1, &at(1, &registry.documents[&DocumentName::Bundle(1)]), &[]);
    stamped["expiresAt"] = json!(NOW + 300 * DAY);
    stamp(&mut registry, &stamped, &[9]);
    assert!(run(&mut member, &mut registry).unwrap_err().contains("other content"));
}

#[test]
fn documents_of_other_roles_and_teams() {
    refused(
        |registry| {
            let newest = registry.documents[&DocumentName::Timestamp].clone();
            registry.documents.insert(DocumentName::Root(2), newest);
        },
        "by the keys of the old one",
    );
    refused(
        |registry| {
            let mut other = bundle(2);
            other["team"] = json!("evil");
            other_second(registry, &other, &[1, 2]);
        },
        "of the team `evil`",
    );
    refused(|registry| other_second(registry, &root(2, &[1, 2, 3], &[9]), &[1, 2]), "this is a `root`");
}

#[test]
fn endless_and_malformed_data() {
    refused(
        |registry| {
            let mut large = bundle(2);
            large["presets"] = json!({ "x": "y".repeat(2 << 20) });
            other_second(registry, &large, &[1, 2]);
        },
        "bytes, not",
    );
    refused(
        |registry| {
            let many: Vec<Value> =
                (0..20).map(|version| json!({ "version": version, "digest": "x", "size": 1 })).collect();
            let newest = at(2, &registry.documents[&DocumentName::Bundle(2)]);
            stamp(registry, &timestamp(2, &newest, &many), &[9]);
        },
        "more than 8",
    );
    for (key, value) in
        [("more", json!(1)), ("packs", json!([{ "id": "../x" }])), ("trust", json!("[[revoked]]"))]
    {
        refused(
            |registry| {
                let mut other = bundle(2);
                other[key] = value.clone();
                other_second(registry, &other, &[1, 2]);
            },
            "cannot be read",
        );
    }
    // Endless roots.
    let (mut member, mut registry) = member();
    for version in 2..100 {
        let next = signed(&root(version, &[1, 2, 3], &[9]), &[1, 2]);
        registry.documents.insert(DocumentName::Root(version), next);
    }
    assert!(run(&mut member, &mut registry).unwrap_err().contains("more than 64 new roots"));
    assert!(run(&mut member, &mut registry).is_ok(), "the rest comes with the next update");
}

fn packed(bytes: &[u8]) -> (String, Value) {
    let digest = format!("sha256:{}", portcullis_packs::digest(bytes));
    let mut content = bundle(2);
    content["packs"] = json!([{ "id": "a:b", "version": "1.0.0", "digest": digest, "size": bytes.len() }]);
    (digest, content)
}

#[test]
fn arbitrary_packs() {
    let (digest, content) = packed(b"pack");
    for (bytes, said) in [(&b"pock"[..], "has the digest"), (b"pack and more", "bytes, not 4")] {
        refused(
            |registry| {
                other_second(registry, &content, &[1, 2]);
                registry.packs.insert(digest.clone(), bytes.to_vec());
            },
            said,
        );
    }
    refused(|registry| other_second(registry, &content, &[1, 2]), "not there");
    let (mut member, mut registry) = member();
    other_second(&mut registry, &content, &[1, 2]);
    registry.packs.insert(digest.clone(), b"pack".to_vec());
    let update = run(&mut member, &mut registry).unwrap();
    assert_eq!(update.accepted, Some((2, vec![(digest, b"pack".to_vec())])));
}

#[test]
fn one_bad_version_does_not_block_the_good_ones() {
    let (mut member, mut registry) = member();
    let good = signed(&bundle(2), &[1, 2]);
    let mut newer = bundle(3);
    newer["minimumProgram"] = json!("9.0.0");
    newer["aFieldOfTheFuture"] = json!({});
    let bad = signed(&newer, &[1, 2]);
    stamp(&mut registry, &timestamp(3, &at(3, &bad), &[at(2, &good)]), &[9]);
    registry.documents.extend([(DocumentName::Bundle(2), good), (DocumentName::Bundle(3), bad)]);
    let result = run(&mut member, &mut registry).unwrap();
    assert!(result.refused[0].1.to_string().contains("needs Portcullis 9.0.0"), "{:?}", result.refused);
    assert_eq!((held(&member), member.held.bundle_floor), (Some(2), 2));
    assert_eq!(member.held.checked_at, NOW, "the last complete check was before");
    // The fourth version is good again.
    registry.publish(&bundle(4));
    assert!(run(&mut member, &mut registry).unwrap().refused.is_empty());
    assert_eq!(held(&member), Some(4));
}

#[test]
fn what_a_machine_requires() {
    let (_, mut registry) = member();
    registry.publish(&bundle(2));
    let (first, program) = (first_root(), Version::new(0, 1, 0));
    let required = ["acme:guard".to_owned()];
    let asked = |required: &[String], minimum_version, usable: &dyn Fn() -> Result<(), String>| {
        let mut member = Trusted::begin(first.clone(), "acme", &first.digest()).unwrap();
        let checks = Checks {
            program: &program,
            now: NOW,
            required,
            minimum_version,
            has_pack: &|_| true,
            usable: &|_, _| usable(),
        };
        let update = update(&mut member, &mut registry.clone(), &checks).unwrap();
        let refused: String = update.refused.iter().map(|(_, error)| error.to_string()).collect();
        assert_eq!(refused.is_empty(), held(&member) == Some(2), "{refused}");
        refused
    };
    assert!(asked(&required, 0, &|| Ok(())).contains("no pack `acme:guard`"));
    assert!(asked(&[], 3, &|| Ok(())).contains("older than version 3"));
    assert!(asked(&[], 0, &|| Err("a setting that loosens".to_owned())).contains("a setting that loosens"));
    assert_eq!(asked(&[], 2, &|| Ok(())), "");
}

#[test]
fn a_registry_that_is_down_changes_nothing() {
    let (mut member, mut registry) = member();
    let before = member.held.clone();
    registry.is_down = true;
    assert!(run_at(&mut member, &mut registry, NOW + 7 * DAY).unwrap_err().contains("no route"));
    assert_eq!(member.held, before);
    // What is held is still accepted a year later, when it is read again.
    let pin = first_root().digest();
    let again = Trusted::open(before.clone(), "acme", &pin, &Version::new(0, 1, 0)).unwrap();
    assert!(again.bundle.unwrap().has_expired(NOW + 400 * DAY));
}

#[test]
fn keys_rotate_and_old_ones_end() {
    let (mut member, mut registry) = member();
    // Too few of the old owners, or too few of the new ones, or a gap in the versions.
    for (version, seeds, said) in [
        (2, &[1, 4, 5][..], "by the keys of the old one"),
        (2, &[1, 2, 3], "by its own keys"),
        (3, &[1, 2, 4, 5], "root 2 was asked for"),
    ] {
        let next = signed(&root(version, &[4, 5, 6], &[8]), seeds);
        registry.documents.insert(DocumentName::Root(2), next);
        let told = run(&mut member, &mut registry).unwrap_err();
        assert!(told.contains(said) && member.root.version == 1, "{told}");
    }
    let next = signed(&root(2, &[4, 5, 6], &[8]), &[1, 2, 4, 5]);
    registry.documents.insert(DocumentName::Root(2), next);
    let told = run(&mut member, &mut registry).unwrap_err();
    assert!(told.contains("timestamp needs signatures"), "the old timestamp key ended: {told}");
    assert_eq!((member.root.version, held(&member)), (2, Some(1)), "what is in force stays");
    // It stays also when a new session reads it.
    let again =
        Trusted::open(member.held.clone(), "acme", &first_root().digest(), &Version::new(0, 1, 0)).unwrap();
    assert!(!again.bundle.as_ref().unwrap().is_current);
    let second = signed(&bundle(2), &[4, 5]);
    registry.documents.insert(DocumentName::Timestamp, signed(&timestamp(1, &at(2, &second), &[]), &[8]));
    registry.documents.insert(DocumentName::Bundle(2), second);
    run(&mut member, &mut registry).unwrap();
    assert_eq!(held(&member), Some(2));
}

#[test]
fn a_stolen_timestamp_key_cannot_lock_out_its_successor() {
    let (mut member, mut registry) = member();
    let first = registry.documents[&DocumentName::Bundle(1)].clone();
    let mut far =
        timestamp(u64::MAX, &json!({ "version": u64::MAX, "digest": first.digest(), "size": 1 }), &[]);
    far["earlier"] = json!([at(1, &first)]);
    stamp(&mut registry, &far, &[9]);
    assert_eq!(run(&mut member, &mut registry).unwrap().refused.len(), 1);
    registry.publish(&bundle(2));
    assert!(run(&mut member, &mut registry).is_err(), "control: without a rotation the version stands");
    registry.documents.insert(DocumentName::Root(2), signed(&root(2, &[1, 2, 3], &[8]), &[1, 2]));
    let second = registry.documents[&DocumentName::Bundle(2)].clone();
    stamp(&mut registry, &timestamp(1, &at(2, &second), &[]), &[8]);
    run(&mut member, &mut registry).unwrap();
    assert_eq!(held(&member), Some(2));
}

#[test]
fn what_a_machine_holds_cannot_be_forged() {
    let (member, _) = member();
    let (pin, program) = (first_root().digest(), Version::new(0, 1, 0));
    let open = |change: &dyn Fn(&mut crate::held::Held), pin: &str| {
        let mut held = member.held.clone();
        change(&mut held);
        Trusted::open(held, "acme", pin, &program)
            .map(|trusted| self::held(&trusted))
            .map_err(|error| error.to_string())
    };
    assert_eq!(open(&|_| (), &pin), Ok(Some(1)));
    let forged = signed(&bundle(1), &[7, 8]);
    assert!(open(&|held| held.bundle = Some(forged.clone()), &pin).unwrap_err().contains("needs signatures"));
    let other = signed(&root(1, &[7, 8], &[9]), &[7, 8]);
    assert!(open(&|held| held.roots = vec![other.clone()], &pin).unwrap_err().contains("is pinned"));
    assert!(open(&|held| held.roots.clear(), &pin).unwrap_err().contains("is pinned"));
    assert!(open(&|_| (), &other.digest()).unwrap_err().contains("is pinned"));
}

#[test]
fn a_root_must_make_sense() {
    let begin = |change: &dyn Fn(&mut Value), seeds: &[u8]| {
        let mut document = root(1, &[1, 2, 3], &[9]);
        change(&mut document);
        let signed = signed(&document, seeds);
        Trusted::begin(signed.clone(), "acme", &signed.digest()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(begin(&|_| (), &[1, 2]), Ok(()));
    for (change, said) in [
        (
            &(|root: &mut Value| root["roles"]["bundle"]["threshold"] = json!(0)) as &dyn Fn(&mut Value),
            "threshold of 0",
        ),
        (&|root| root["roles"]["bundle"]["threshold"] = json!(4), "threshold of 4"),
        (
            &|root| root["roles"]["bundle"]["keys"] = json!([fingerprint(1), fingerprint(7)]),
            "not among the keys",
        ),
        (
            &|root| root["keys"][0] = json!("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"),
            "ssh keys",
        ),
        (&|root| root["team"] = json!("Acme"), "of the team"),
    ] {
        let told = begin(change, &[1, 2]).unwrap_err();
        assert!(told.contains(said), "{said}: {told}");
    }
    assert!(begin(&|_| (), &[1]).unwrap_err().contains("needs signatures of 2 keys"));
}
