//! Settings as a profile of macOS: the rules of the host, of the settings and of presets can all be written there.

use std::path::PathBuf;

use portcullis_decision::Effect;
use portcullis_decision::profile::FileRight;
use portcullis_decision::rules::{Caller, OwnHome, OwnPlaces, Tops};
use portcullis_decision::{Base, RuleSet};
use portcullis_profile_model::Evaluator;
use portcullis_seatbelt::{Wanted, compile};

use crate::resolving::{DEFAULT, layers};
use crate::world::World;

#[test]
fn the_rules_of_the_settings_can_be_written() {
    let mut world = World::new();
    world.places.toolchains = vec![world.places.home.join(".cargo")];
    world.places.path = vec![world.places.home.join(".local/bin"), PathBuf::from("/usr/bin")];
    let text = r#"{
        "presets": ["registries", "git"],
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["ROOT/home", "~/.ssh", "*.pem", "**/secrets/**"],
            "allowRead": [".", "~/.pi"],
            "allowWrite": [".", "~/notes"],
            "denyWrite": ["vendor", "**/.env*"]
        }
    }"#;
    world.write(DEFAULT, &text.replace("ROOT", &world.root.to_string_lossy()));
    let resolved = world.resolve().unwrap();
    let private = world.root.join("private/homes/foo");
    let home =
        OwnHome::new(world.places.home.clone(), Tops::from_iter([world.places.home.join(".npm/_cacache")]));
    let own = OwnPlaces { directories: vec![private.clone()], home: Some(home) };
    let rules = RuleSet::compile(layers(&resolved), Base { own, ..resolved.base() }, &[]);
    let wanted = Wanted { homes: &resolved.homes, sockets: &resolved.sockets, ..Wanted::of_rules(&rules) };
    let profile = Evaluator::read(&compile(&wanted).unwrap());
    for (path, is_read, is_written) in [
        ("home/u/work/foo/src/a.rs", true, true),
        ("home/u/work/foo/a.pem", false, false),
        ("home/u/work/foo/secrets/a", false, false),
        ("home/u/work/foo/vendor/a", true, false),
        ("home/u/work/foo/x/.env.local", true, false),
        ("home/u/work/foo/.pi/settings.json", true, false),
        ("home/u/work/foo/.git/hooks/pre-commit", true, false),
        ("home/u/notes/a", true, true),
        ("home/u/other", false, false),
        ("home/u/.ssh/id_ed25519", false, false),
        ("home/u/.npmrc", false, false),
        ("home/u/.npm/_cacache/x", false, false),
        ("home/u/.pi/agent/auth.json", false, false),
        ("home/u/.pi/agent/skills/x.md", true, false),
        ("private/homes/foo/.npm/x", true, true),
        // The host's own state is denied, so the private home of commands cannot lie there.
        ("home/u/.local/state/portcullis/homes/foo/.npm/x", false, false),
        ("home/u/.local/state/portcullis/audit/x", false, false),
    ] {
        let path = world.root.join(path);
        let allows = |operation| profile.allows(operation, path.to_str().unwrap());
        assert_eq!((allows("file-read-data"), allows("file-write-data")), (is_read, is_written), "{path:?}");
    }
    // Every path that a rule names: what the rules deny, the profile denies.
    let all = rules.layers().iter().flat_map(|layer| &layer.profile.files);
    let named: Vec<_> = all.filter_map(|rule| rule.pattern.literal()).collect();
    assert!(named.len() > 100, "{}", named.len());
    for path in named.iter().flat_map(|path| [path.to_path_buf(), path.join("below")]) {
        for (right, operation) in [
            (FileRight::Read, "file-read-data"),
            (FileRight::Write, "file-write-data"),
            (FileRight::Execute, "process-exec"),
        ] {
            let is_allowed = rules.answer(&path, right, Caller::Command).effect == Effect::Allow;
            let is_possible = profile.allows(operation, path.to_str().unwrap());
            assert!(is_allowed || !is_possible, "{operation} {}", path.display());
        }
    }
}
