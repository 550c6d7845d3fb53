//! Whole profiles, and the examples of the sandboxes that came before.

use std::path::Path;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::rules::{OwnHome, OwnPlaces, Tops};
use portcullis_decision::{Base, Effect, RuleSet};
use portcullis_profile_model::Evaluator;
use portcullis_seatbelt::{CompileError, Wanted, compile};

use crate::kit::{grant, layer, paths, rule};

fn tree(path: &str) -> FilePattern {
    FilePattern::tree(path).unwrap()
}

fn glob(text: &str) -> FilePattern {
    FilePattern::glob(text).unwrap()
}

/// A project with the sensitive files, patterns, a preset's cache, answers and the private home that the settings give.
fn rules() -> RuleSet {
    let base = Base {
        workspace: paths(&["/Users/u/p"]),
        temp: "/private/var/folders/s".into(),
        closed: paths(&["/Users"]),
        own: OwnPlaces {
            directories: paths(&["/Users/u/.local/state/portcullis/home"]),
            home: Some(OwnHome::new(
                "/Users/u".into(),
                Tops::from_iter(paths(&["/Users/u/.cargo/registry"])),
            )),
        },
    };
    let policy = vec![
        rule(Effect::Allow, tree("/Users/u/.pi/agent/skills"), FileRights::READ),
        rule(Effect::Allow, tree("/Users/u/.cargo/bin"), FileRights::READ),
        rule(Effect::Allow, tree("/opt/cache"), FileRights::READ_WRITE),
        rule(Effect::Ask, tree("/Users/u/p/vendor"), FileRights::WRITE),
    ];
    let ceiling = vec![
        rule(Effect::Deny, tree("/Users/u/.ssh"), FileRights::ALL),
        rule(Effect::Deny, glob("*.pem"), FileRights::READ_WRITE),
        rule(Effect::Deny, glob("/Users/u/p/**/.env.local"), FileRights::READ_WRITE),
        rule(Effect::Deny, FilePattern::exact("/Users/u/p/it\"s (1).txt").unwrap(), FileRights::WRITE),
    ];
    let grants = [
        grant(tree("/Users/u/other"), FileRights::READ),
        grant(tree("/Users/u/p/vendor/x"), FileRights::WRITE),
    ];
    RuleSet::compile(vec![layer("workspace", false, policy), layer("settings", true, ceiling)], base, &grants)
}

#[test]
fn a_whole_profile() {
    let rules = rules();
    let sockets = paths(&["/Users/u/.colima/docker.sock"]);
    // The protected names have tests of their own; their text is long.
    let wanted = Wanted { roots: &[], ports: &[43128, 43129], sockets: &sockets, ..Wanted::of_rules(&rules) };
    insta::assert_snapshot!("profile", compile(&wanted).unwrap());
}

#[test]
fn what_commands_can_do_in_it() {
    let rules = rules();
    let profile = Evaluator::read(&compile(&Wanted { roots: &[], ..Wanted::of_rules(&rules) }).unwrap());
    for (path, is_read, is_written) in [
        ("/usr/bin/env", true, false),
        ("/Users/u/p/src/main.rs", true, true),
        ("/Users/u/p/key.pem", false, false),
        ("/Users/u/p/a/.env.local", false, false),
        ("/private/var/folders/s/.env.local", false, false),
        ("/Users/u/p/it\"s (1).txt", true, false),
        ("/Users/u/p/vendor/a", true, false),
        ("/Users/u/p/vendor/x/a", true, true),
        ("/Users/u/other/a", true, false),
        ("/Users/u/other/a.pem", false, false),
        ("/Users/u/secret", false, false),
        ("/Users/u/.ssh/id_ed25519", false, false),
        // The private home is a directory of its own.
        ("/Users/u/.local/state/portcullis/home/.npm/x", true, true),
        ("/Users/u/.npm/x", false, false),
        ("/Users/u/.cargo/registry/x", false, false),
        ("/Users/u/.cargo/bin/cargo", true, false),
        ("/opt/cache/x", true, true),
        ("/private/var/folders/s/x", true, true),
        ("/private/var/folders/t/x", true, false),
        ("/dev/null", true, true),
        ("/dev/disk0", false, false),
    ] {
        let (read, write) = (profile.allows("file-read-data", path), profile.allows("file-write-data", path));
        assert_eq!((read, write), (is_read, is_written), "{path}");
    }
    for (path, is_made) in [
        ("/Users/u/p/KEY.PEM", false),
        ("/Users/u/p/Vendor/a", false),
        ("/Users/u/p/a", true),
        ("/Users/u/p", false),
        ("/Users/u/p/vendor", false),
    ] {
        assert_eq!(profile.allows("file-write-create", path), is_made, "{path}");
    }
}

/// The settings in the documents of both sandboxes: everything readable but secrets, writes in the project and `/tmp`.
#[test]
fn the_examples_of_earlier_sandboxes() {
    let base = Base {
        workspace: paths(&["/Users/u/p"]),
        temp: "/private/tmp/session".into(),
        closed: Vec::new(),
        own: OwnPlaces::default(),
    };
    let denied = [
        tree("/Users/u/.ssh"),
        tree("/Users/u/.aws"),
        tree("/Users/u/.gnupg"),
        glob(".env"),
        glob(".env.*"),
        glob("*.pem"),
        glob("*.key"),
    ];
    let (reads, writes) = denied.split_at(3);
    let mut ceiling: Vec<_> =
        reads.iter().map(|pattern| rule(Effect::Deny, pattern.clone(), FileRights::ALL)).collect();
    ceiling.extend(writes.iter().map(|pattern| rule(Effect::Deny, pattern.clone(), FileRights::WRITE)));
    let rules = RuleSet::compile(vec![layer("settings", true, ceiling)], base, &[]);
    let profile = Evaluator::read(&compile(&Wanted::of_rules(&rules)).unwrap());
    for (path, is_read, is_written) in [
        ("/Users/u/.ssh/id_rsa", false, false),
        ("/Users/u/.aws/credentials", false, false),
        ("/Users/u/notes", true, false),
        ("/Users/u/p/.env", true, false),
        ("/Users/u/p/a/.env.production", true, false),
        ("/Users/u/p/a/tls.key", true, false),
        ("/Users/u/p/a/b.rs", true, true),
        ("/private/tmp/session/x", true, true),
        ("/private/tmp/x", true, false),
        ("/Users/u/p/.git/hooks/pre-commit", true, false),
    ] {
        let (read, write) = (profile.allows("file-read-data", path), profile.allows("file-write-data", path));
        assert_eq!((read, write), (is_read, is_written), "{path}");
    }
}

#[test]
fn connections_go_to_the_gate_only() {
    let rules = rules();
    let sockets = paths(&["/run/a \"b\".sock"]);
    let none = Evaluator::read(&compile(&Wanted::of_rules(&rules)).unwrap());
    let some = Wanted { ports: &[8080], sockets: &sockets, ..Wanted::of_rules(&rules) };
    let some = Evaluator::read(&compile(&some).unwrap());
    assert!(none.others("network-outbound").is_empty());
    let conditions = some.others("network-outbound").join(" ");
    assert_eq!(conditions.matches("remote").count(), 2);
    assert!(
        conditions.contains("\"localhost:8080\"") && conditions.contains(r#"/run/a \"b\".sock"#),
        "{conditions}"
    );
    for operation in
        ["network-bind", "network-inbound", "system-socket", "mach-register", "forbidden-exec-sugid"]
    {
        assert!(some.others(operation).is_empty(), "{operation}");
    }
    for operation in ["signal", "process-info-pidinfo"] {
        assert_eq!(some.others(operation).len(), 1, "{operation}");
        assert!(some.others(operation)[0].contains("same-sandbox"), "{operation}");
    }
}

/// A restriction that cannot be said is an error; what only opens is left out.
#[test]
fn restrictions_that_cannot_be_said() {
    let with = |effect, pattern: FilePattern| {
        let base = Base { workspace: paths(&["/w"]), closed: paths(&["/Users"]), ..Base::default() };
        let rules = vec![rule(effect, pattern, FileRights::READ_WRITE)];
        compile(&Wanted::of_rules(&RuleSet::compile(vec![layer("settings", false, rules)], base, &[])))
    };
    for text in ["*.[!-]", "/w/{a/b,c}"] {
        let Err(CompileError::Pattern { pattern, layer, .. }) = with(Effect::Deny, glob(text)) else {
            panic!("{text} can be said")
        };
        assert_eq!((pattern.as_str(), layer.as_str()), (text, "settings"));
    }
    let opened = Evaluator::read(&with(Effect::Allow, glob("/Users/u/*.[!-]")).unwrap());
    assert!(!opened.allows("file-read-data", "/Users/u/x.a"));
    let raw = FilePattern::exact("/w/\\xFF").unwrap();
    assert!(raw.literal().is_some_and(|path| Path::to_str(path).is_none()));
    assert!(with(Effect::Deny, raw).is_err());
}
