//! Links at and around the paths of rules.

use std::path::{Path, PathBuf};

use portcullis_decision::profile::FileRight::{self, Read, Write};
use portcullis_decision::verdict::Effect::{self, Allow, Ask, Deny};
use portcullis_settings::{Disk, DiskEntry, RealDisk};

use crate::resolving::{DEFAULT, check, filesystem};
use crate::world::World;

#[test]
fn links_are_denied_under_every_name() {
    let world = World::new();
    // Both `~/.pi` and the home directory are links.
    let moved = world.root.join("moved");
    std::fs::rename(world.root.join("home/u/.pi"), &moved).unwrap();
    world.link("home/u/.pi", &moved);
    world.write("dotfiles/bashrc", "");
    world.link("home/u/.bashrc", &world.root.join("dotfiles/bashrc"));
    world.link("home/u/.npmrc", Path::new("/dev/null"));
    check(
        &world,
        &[
            ("moved/agent/auth.json", Read, Deny),
            ("home/u/.pi/agent/auth.json", Read, Deny),
            ("moved/agent/extensions/x", Write, Deny),
            ("moved/agent/skills/x", Read, Allow),
            ("dotfiles/bashrc", Write, Deny),
            ("home/u/.bashrc", Write, Deny),
            ("home/u/.npmrc", Read, Deny),
            ("/dev/null", Read, Ask),
        ],
    );
}

#[test]
fn links_on_the_way_stay_as_they_are() {
    let world = World::new();
    let project = world.root.join("home/u/work/foo");
    world.write("home/u/work/foo/.git/config", "[core]\n\thooksPath = mine/hooks\n");
    world.write("home/u/work/foo/common/bashrc", "");
    world.write("home/u/work/foo/cfg1/prod.yaml", "");
    world.write("home/u/work/foo/free/x", "");
    world.write("home/u/dotfiles/vim/vimrc", "");
    for (link, target) in [("mine", "tools"), ("host", "common"), ("cfg", "cfg1"), ("other", "free")] {
        world.link(&format!("home/u/work/foo/{link}"), Path::new(target));
    }
    world.link("home/u/.bashrc", &project.join("host/bashrc"));
    world.link("home/u/dotfiles/now", Path::new("vim"));
    world.link("home/u/.vimrc", &world.root.join("home/u/dotfiles/now/vimrc"));
    filesystem(
        &world,
        r#""denyRead": ["ROOT/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": ["./cfg/*.yaml"]"#,
    );
    let granted = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] }, "filesystem": { "denyRead": ["ROOT/home"],
        "allowRead": ["."], "allowWrite": ["."], "denyWrite": ["./cfg/prod.yaml"] },
        "grants": [{ "path": "ROOT/home/u/dotfiles", "rights": "write", "grantedAt": 1 }] }"#;
    let check_all = |world: &World| {
        check(
            world,
            &[
                ("home/u/work/foo/mine", Write, Deny),
                ("home/u/work/foo/host", Write, Ask),
                ("home/u/work/foo/cfg", Write, Deny),
                // The link itself is protected, and only the path through it.
                ("home/u/work/foo/cfg1/x", Write, Allow),
                ("home/u/work/foo/common/x", Write, Allow),
                ("home/u/work/foo/other", Write, Allow),
            ],
        );
    };
    check_all(&world);
    check(&world, &[("home/u/dotfiles/now", Write, Ask)]);
    world.write(DEFAULT, &granted.replace("ROOT", &world.root.to_string_lossy()));
    check_all(&world);
    check(&world, &[("home/u/dotfiles/now", Write, Deny)]);
}

#[test]
fn all_that_decides_is_protected_wherever_links_lead_it() {
    let world = World::new();
    let project = world.root.join("home/u/work/foo");
    for name in ["policy.lock", "trust.toml", "packs/x.wasm", "v1/guard.wasm", "rel/two.wasm"] {
        world.write(&format!("home/u/work/foo/{name}"), "");
    }
    for name in ["policy.lock", "trust.toml", "packs"] {
        world.link(&format!("home/u/.pi/agent/sandbox/{name}"), &project.join(name));
    }
    world.write("home/u/rel/three.wasm", "");
    world.link("home/u/work/foo/result", Path::new("v1"));
    world.link("home/u/work/foo/two.wasm", Path::new("rel/two.wasm"));
    world.link("home/u/work/foo/three.wasm", &world.root.join("home/u/rel/three.wasm"));
    let policies: Vec<String> = ["result/guard.wasm", "two.wasm", "three.wasm"]
        .iter()
        .map(|name| format!("{{ \"use\": \"{}/{name}\" }}", project.display()))
        .collect();
    let text = format!(
        r#"{{ "network": {{ "allowedDomains": [], "deniedDomains": [] }}, "policies": [{}],
            "filesystem": {{ "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] }} }}"#,
        policies.join(", ")
    );
    world.write(DEFAULT, &text);
    let denied = [
        "policy.lock",
        "trust.toml",
        "packs/y.wasm",
        "v1/guard.wasm",
        "v1/policy.toml",
        "result",
        "two.wasm",
        "policy.toml",
        "rel/two.wasm",
        "rel/policy.toml",
        "three.wasm",
    ];
    let paths: Vec<String> = denied.iter().map(|name| format!("home/u/work/foo/{name}")).collect();
    let mut cases: Vec<(&str, FileRight, Effect)> =
        paths.iter().map(|path| (path.as_str(), Write, Deny)).collect();
    cases.push(("home/u/work/foo/v1/other.wasm", Write, Allow));
    check(&world, &cases);
}

#[test]
fn what_opens_something_does_not_follow_the_agents_links() {
    let world = World::new();
    let text = r#"{ "network": { "allowedDomains": [], "deniedDomains": [], "allowUnixSockets": ["run.sock"] },
        "filesystem": { "denyRead": ["~"], "allowRead": [".", "vendor/**", "~/mine"],
            "allowWrite": [".", "build", "out/*.o", "inside"], "denyWrite": ["circle"] },
        "grants": [{ "path": "granted", "rights": "write", "grantedAt": 1 }] }"#;
    world.write(DEFAULT, text);
    for name in ["vendor", "build", "out", "granted"] {
        world.link(&format!("home/u/work/foo/{name}"), &world.root.join("home/u/secret"));
    }
    world.link("home/u/work/foo/inside", Path::new("real"));
    world.link("home/u/work/foo/run.sock", &world.root.join("home/u/docker.sock"));
    world.link("home/u/work/foo/circle", Path::new("circle"));
    world.write("home/u/theirs/x", "");
    world.link("home/u/mine", Path::new("theirs"));
    check(
        &world,
        &[
            ("home/u/secret/key", Read, Ask),
            ("home/u/secret/key.o", Write, Ask),
            ("home/u/work/foo/real/x", Write, Allow),
            // Rules that deny apply whatever a link does, and the user's own links are followed.
            ("home/u/work/foo/circle", Write, Deny),
            ("home/u/theirs/x", Read, Allow),
        ],
    );
    let resolved = world.resolve().unwrap();
    assert_eq!(resolved.sockets, [world.root.join("home/u/work/foo/run.sock")]);
    let granted = format!("{:?}", resolved.grants);
    assert!(!granted.contains("secret"), "{granted}");
    let told: Vec<&str> = resolved.warnings.iter().map(|warning| warning.text.as_str()).collect();
    for name in ["vendor/**", "build", "out/*.o", "run.sock", "granted"] {
        assert!(
            told.iter().any(|text| text.starts_with(&format!("`{name}` opens nothing"))),
            "{name}: {told:?}"
        );
    }
    assert!(!told.iter().any(|text| text.contains("inside") || text.contains("mine")), "{told:?}");
}

/// A stored answer was for a path without links. A link that is placed there later is not covered.
#[test]
fn what_an_answer_opened_is_not_followed_through_a_link() {
    let world = World::new();
    let kept = |name: &str| world.root.join(name).display().to_string();
    let text = format!(
        r#"{{ "network": {{ "allowedDomains": [], "deniedDomains": [] }},
            "filesystem": {{ "denyRead": ["~"], "allowRead": ["."], "denyWrite": [],
                "allowWrite": [".", {{ "path": "{}", "literal": true }}, {{ "path": "{}", "literal": true }}] }},
            "grants": [{{ "path": "{}", "rights": "write", "grantedAt": 1 }}] }}"#,
        kept("other/notes.md"),
        kept("other/file"),
        kept("other/lent"),
    );
    world.write(DEFAULT, &text);
    world.write("home/u/secret/key", "");
    world.write("other/file", "");
    for name in ["notes.md", "lent"] {
        world.link(&format!("other/{name}"), &world.root.join("home/u/secret"));
    }
    check(&world, &[("home/u/secret/key", Write, Ask), ("other/file", Write, Allow)]);
    let resolved = world.resolve().unwrap();
    let granted = format!("{:?}", resolved.grants);
    assert!(!granted.contains("secret"), "{granted}");
    for name in ["notes.md", "lent"] {
        let begin = format!("`{}` opens nothing", kept(&format!("other/{name}")));
        let told = resolved.warnings.iter().any(|warning| warning.text.starts_with(&begin));
        assert!(told, "{name}: {:?}", resolved.warnings);
    }
}

#[test]
fn a_linked_home_is_one_home() {
    let mut world = World::new();
    world.link("h", &world.root.join("home/u"));
    world.places.home = world.root.join("h");
    world.places.agent_directory = world.root.join("h/.pi/agent");
    check(
        &world,
        &[
            ("home/u/notes", Read, Ask),
            ("home/u/.pi/agent/auth.json", Read, Deny),
            ("home/u/.pi/agent/skills/x", Read, Allow),
            ("home/u/work/foo/a", Write, Allow),
        ],
    );
}

/// A disk whose links change with each lookup.
#[derive(Default)]
struct Swapping(std::cell::Cell<u32>);

impl Disk for Swapping {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn look(&self, path: &Path) -> std::io::Result<DiskEntry> {
        if !path.ends_with("swapped") {
            return RealDisk.look(path);
        }
        self.0.set(self.0.get() + 1);
        Ok(DiskEntry::Link(PathBuf::from(format!("/somewhere/{}", self.0.get()))))
    }

    fn names(&self, directory: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
        RealDisk.names(directory)
    }
}

#[test]
fn all_rules_of_one_resolution_see_the_same_links() {
    let world = World::new();
    filesystem(
        &world,
        r#""denyRead": ["swapped/a"], "allowWrite": ["."], "denyWrite": ["swapped/b", "swapped/c"]"#,
    );
    let disk = Swapping::default();
    let resolved = portcullis_settings::resolve(&world.discover().unwrap(), &world.places, &disk).unwrap();
    assert!(resolved.deny_read().any(|rule| rule.pattern.to_string().contains("/somewhere/1/a")));
    assert_eq!(disk.0.get(), 1);
}

/// A link of the agent's can lead to a name that cannot be in a pattern.
#[test]
fn an_entry_that_makes_no_pattern_opens_nothing_or_denies_more() {
    use std::os::unix::ffi::OsStrExt;

    let world = World::new();
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(world.root.join("home/u/work/foo").join(odd)).unwrap();
    world.link("home/u/work/foo/open", odd);
    world.link("home/u/work/foo/secret", odd);
    filesystem(
        &world,
        r#""denyRead": ["ROOT/home"], "allowRead": [".", "open/*.md"], "allowWrite": [".", "open/*/out"], "denyWrite": ["secret/*.pem"]"#,
    );
    let resolved = world.resolve().unwrap();
    let told = resolved.warnings.iter().filter(|warning| warning.text.contains("opens nothing")).count();
    assert_eq!(told, 2, "{:?}", resolved.warnings);
    let place = world.root.join("home/u/work/foo").join(odd).join("a.pem");
    let rules = crate::resolving::rule_set(&world);
    let of = |path: &Path| rules.file(path, Write, portcullis_decision::rules::Caller::Tool).effect;
    assert_eq!((of(&place), of(&world.root.join("home/u/work/foo/x"))), (Deny, Allow));
}
