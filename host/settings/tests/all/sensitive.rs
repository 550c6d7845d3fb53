//! Sensitive files below the home directory: denied by default, opened only by the user's settings.

use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRight::{self, Read, Write};
use portcullis_decision::profile::FileRights;
use portcullis_decision::rules::{Caller, RuleSet};
use portcullis_decision::verdict::Effect::{self, Allow, Ask, Deny};
use portcullis_decision::{Grant, GrantPattern, GrantScope};
use portcullis_settings::SENSITIVE;
use portcullis_settings_format::LIFTABLE;

use crate::resolving::{DEFAULT, check, filesystem, rule_set};
use crate::world::World;

const LISTS: &str = r#""denyRead": ["ROOT/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": []"#;

/// As `rule_set`, with a grant to read and write all of the home directory.
fn with_a_wide_grant(world: &World) -> RuleSet {
    let resolved = world.resolve().unwrap();
    let pattern = FilePattern::Tree(world.places.home.clone());
    let pattern = GrantPattern::Path(PathPattern { pattern, rights: FileRights::READ_WRITE });
    let grant = Grant { scope: GrantScope::User, pattern, granted_at: 0, expires_at: 0 };
    RuleSet::compile(resolved.ceiling(), resolved.base(), &[grant])
}

fn effect(rules: &RuleSet, world: &World, path: &str, right: FileRight, caller: Caller) -> Effect {
    rules.file(&world.places.home.join(path), right, caller).effect
}

/// The control is a text file beside them, which asks, and which the grant opens.
#[test]
fn every_entry_is_denied_and_no_grant_reaches_it() {
    let world = World::new();
    filesystem(&world, LISTS);
    let (rules, granted) = (rule_set(&world), with_a_wide_grant(&world));
    for caller in [Caller::Tool, Caller::Command] {
        assert_eq!(effect(&rules, &world, "notes", Read, caller), Ask);
        assert_eq!(effect(&granted, &world, "notes", Read, caller), Allow);
        for entry in SENSITIVE {
            for path in [entry.path.to_owned(), format!("{}/inside", entry.path)] {
                for right in [Read, Write] {
                    assert_eq!(effect(&rules, &world, &path, right, caller), Deny, "{path}");
                    assert_eq!(effect(&granted, &world, &path, right, caller), Deny, "{path}");
                }
            }
            let ruling = rules.file(&world.places.home.join(entry.path), Read, caller);
            assert!(ruling.reason.contains(entry.holds), "{ruling:?}");
            assert!(ruling.reason.contains("protections.lift") && ruling.conceal, "{ruling:?}");
        }
    }
}

#[test]
fn what_is_not_secret_beside_keys_is_left_to_the_other_rules() {
    let world = World::new();
    filesystem(&world, LISTS);
    for name in ["known_hosts", "config", "id_ed25519.pub", "id_ed25519"] {
        world.write(&format!("home/u/.ssh/{name}"), "");
    }
    let (rules, granted) = (rule_set(&world), with_a_wide_grant(&world));
    for (name, asked, given) in [
        (".ssh/known_hosts", Ask, Allow),
        (".ssh/config", Ask, Allow),
        (".ssh/id_ed25519.pub", Ask, Allow),
        // A file created after the rules is no exception: it may be a key.
        (".ssh/later.pub", Deny, Deny),
        (".ssh/id_ed25519", Deny, Deny),
        (".ssh", Deny, Deny),
    ] {
        for caller in [Caller::Tool, Caller::Command] {
            assert_eq!(effect(&rules, &world, name, Read, caller), asked, "{name}");
            assert_eq!(effect(&granted, &world, name, Read, caller), given, "{name}");
        }
        assert_eq!(effect(&granted, &world, name, Write, Caller::Tool), Deny, "{name}");
    }
    // An exception allows nothing by itself, and does not ask where the user allows.
    filesystem(
        &world,
        r#""denyRead": ["ROOT/home"], "allowRead": [".", "~/.ssh"], "allowWrite": ["."], "denyWrite": []"#,
    );
    check(
        &world,
        &[
            ("home/u/.ssh/config", Read, Allow),
            ("home/u/.ssh/id_ed25519", Read, Deny),
            ("home/u/notes", Read, Ask),
        ],
    );
    filesystem(
        &world,
        r#""denyRead": ["ROOT/home", "~/.ssh/config"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": []"#,
    );
    check(&world, &[("home/u/.ssh/config", Read, Deny), ("home/u/.ssh/known_hosts", Read, Ask)]);
}

#[test]
fn the_home_directory_as_project_changes_nothing() {
    let mut world = World::new();
    world.places.workspace = world.places.home.clone();
    world.write("home/u/.ssh/known_hosts", "");
    check(
        &world,
        &[
            ("home/u/notes", Read, Allow),
            ("home/u/.ssh/known_hosts", Read, Allow),
            ("home/u/.ssh/id_rsa", Read, Deny),
            ("home/u/.aws/credentials", Read, Deny),
            ("home/u/.bash_history", Write, Deny),
        ],
    );
}

#[test]
fn links_give_no_other_name() {
    let world = World::new();
    filesystem(&world, LISTS);
    let vault = world.root.join("data/vault");
    std::fs::create_dir_all(&vault).unwrap();
    std::fs::write(vault.join("known_hosts"), "").unwrap();
    world.link("home/u/.ssh", &vault);
    world.link("home/u/.aws", &world.root.join("data/aws"));
    check(
        &world,
        &[
            ("data/vault/id_rsa", Read, Deny),
            ("data/vault/known_hosts", Read, Ask),
            ("data/aws/credentials", Read, Deny),
            ("home/u/.aws", Read, Deny),
        ],
    );
}

#[test]
fn an_entry_is_lifted_by_its_id_in_the_users_settings_only() {
    let lifting = |lift: &str| {
        format!(
            r#"{{ "network": {{ "allowedDomains": [], "deniedDomains": [] }},
                "filesystem": {{ "denyRead": ["/home"], "allowRead": ["~/.aws"], "allowWrite": ["."], "denyWrite": [] }},
                "protections": {{ "lift": [{lift}] }} }}"#
        )
    };
    let world = World::new();
    world.write(DEFAULT, &lifting(""));
    check(&world, &[("home/u/.aws/config", Read, Deny)]);
    world.write(DEFAULT, &lifting("\"host.aws\""));
    check(&world, &[("home/u/.aws/config", Read, Allow), ("home/u/.azure/x", Read, Deny)]);
    world.write(DEFAULT, &lifting(""));
    world.write("home/u/work/foo/.pi/portcullis.json", r#"{ "protections": { "lift": ["host.aws"] } }"#);
    assert!(world.resolve().is_err(), "a project lifts nothing");
    assert!(SENSITIVE.iter().all(|entry| LIFTABLE.contains(&entry.id)));
}

#[test]
fn the_rules_are_plain_paths() {
    let world = World::new();
    world.write("home/u/.ssh/id.pub", "");
    let rules = rule_set(&world);
    assert_eq!(
        rules.patterns_on_reading().count(),
        0,
        "patterns would make every command pay for strict reads"
    );
}
