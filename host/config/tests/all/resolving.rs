//! Settings as rules over real directories, asked through the rule set that everything else asks.

use std::path::{Path, PathBuf};

use portcullis_config::{Disk, RealDisk, Resolved, Seen};
use portcullis_decision::Profile;
use portcullis_decision::pattern::HostName;
use portcullis_decision::profile::FileRight::{self, Read, Write};
use portcullis_decision::profile::{FileRights, FileRule};
use portcullis_decision::request::ProcessInfo;
use portcullis_decision::rules::{Caller, RuleLayer, RuleSet};
use portcullis_decision::verdict::Effect::{self, Allow, Ask, Deny};

use crate::world::World;

const DEFAULT: &str = "home/u/.pi/agent/sandbox/default.json";

fn filesystem(world: &World, lists: &str) {
    let text = format!(
        "{{ \"network\": {{ \"allowedDomains\": [], \"deniedDomains\": [] }}, \"filesystem\": {{ {lists} }} }}"
    );
    world.write(DEFAULT, &text.replace("ROOT", &world.root.to_string_lossy()));
}

/// What a policy makes of the allow lists: the least that lets them count.
fn policy(resolved: &Resolved) -> RuleLayer {
    let rule = |rights: FileRights| {
        move |pattern: &portcullis_decision::pattern::FilePattern| FileRule {
            id: "allow".to_owned(),
            pattern: pattern.clone(),
            rights,
            effect: Allow,
            conceal: false,
            condition: String::new(),
            reason: String::new(),
            setting: String::new(),
        }
    };
    let mut files: Vec<FileRule> = resolved.allow_read.iter().map(rule(FileRights::READ)).collect();
    files.extend(resolved.allow_write.iter().map(rule(FileRights::WRITE)));
    RuleLayer { name: "policy".to_owned(), profile: Profile { files, ..Profile::default() }, tightens: false }
}

pub(crate) fn rule_set(world: &World) -> RuleSet {
    let resolved = world.resolve().unwrap();
    let mut layers = resolved.ceiling();
    layers.push(policy(&resolved));
    RuleSet::compile(layers, resolved.base(), &[])
}

pub(crate) fn check(world: &World, cases: &[(&str, FileRight, Effect)]) {
    let rules = rule_set(world);
    for (path, right, expected) in cases {
        let ruling = rules.file(&world.root.join(path), *right, Caller::Tool);
        assert_eq!(ruling.effect, *expected, "{right:?} {path}: {ruling:?}");
    }
}

#[test]
fn the_first_seeds_default() {
    let world = World::new();
    filesystem(
        &world,
        r#""denyRead": ["ROOT/Users", "ROOT/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": []"#,
    );
    check(
        &world,
        &[
            ("home/u/work/foo/src/a.rs", Read, Allow),
            ("home/u/work/foo/src/a.rs", Write, Allow),
            ("home/u/work/foobar/a", Read, Ask),
            ("home/u/notes", Read, Ask),
            ("home/u/notes", Write, Ask),
            ("home/other/notes", Read, Ask),
            ("home/u/.pi/agent/skills/x.md", Read, Allow),
            ("home/u/.pi/agent/skills/x.md", Write, Ask),
            ("home/u/.pi/agent/auth.json", Read, Deny),
            ("home/u/.pi/agent/auth.json", Write, Deny),
            ("home/u/.pi/agent/mcp-oauth/token", Read, Deny),
            ("home/u/.pi/agent/sessions/other/x.jsonl", Read, Deny),
            ("home/u/.pi/agent/settings.json", Read, Allow),
            ("home/u/.pi/agent/settings.json", Write, Deny),
            ("home/u/.pi/agent/extensions/evil.ts", Write, Deny),
            ("home/u/.pi/agent/sandbox/default.json", Write, Deny),
            ("home/u/work/foo/.pi/extensions/evil.ts", Write, Deny),
            ("home/u/work/foo/.pi/portcullis.json", Write, Deny),
            ("home/u/.npmrc", Read, Deny),
            ("home/u/.bashrc", Write, Deny),
            ("home/u/.ssh/authorized_keys", Write, Deny),
            ("home/u/.config/systemd/user/x.service", Write, Deny),
            ("home/u/.local/state/portcullis/audit/x", Read, Deny),
        ],
    );
    let resolved = world.resolve().unwrap();
    assert_eq!(resolved.closed, [world.root.join("home")]);
    let rules = rule_set(&world);
    let seen = rules.file(&world.root.join("home/u/notes"), Read, Caller::Command);
    assert_eq!((seen.effect, seen.conceal), (Ask, true));
}

#[test]
fn the_agent_started_in_its_home() {
    let mut world = World::new();
    world.places.workspace = world.places.home.clone();
    world.places.path = vec![world.places.home.join(".local/bin"), PathBuf::from("/usr/bin")];
    check(
        &world,
        &[
            ("home/u/notes", Write, Allow),
            // Dotfiles are edited with a question there, and nothing else changes.
            ("home/u/.bashrc", Read, Allow),
            ("home/u/.bashrc", Write, Ask),
            ("home/u/.local/bin/ls", Write, Ask),
            ("home/u/.ssh/authorized_keys", Write, Deny),
            ("home/u/.config/autostart/x.desktop", Write, Deny),
            ("home/u/.pi/agent/extensions/evil.ts", Write, Deny),
            ("home/u/.pi/agent/sandbox/default.json", Write, Deny),
            ("home/u/.pi/agent/auth.json", Read, Deny),
            ("home/u/.cargo/credentials.toml", Read, Deny),
            ("/usr/bin/ls", Write, Deny),
        ],
    );
}

#[test]
fn path_directories() {
    let mut world = World::new();
    let root = world.root.clone();
    world.places.path = vec![
        root.join("opt/bin"),
        root.join("home/u/work/foo/node_modules/.bin"),
        root.join("home/u/work"),
        PathBuf::from("relative"),
        PathBuf::from("/"),
        root.join("tmp"),
    ];
    check(
        &world,
        &[
            ("opt/bin/tool", Write, Deny),
            ("home/u/work/foo/node_modules/.bin/tool", Write, Allow),
            ("home/u/work/foo/a", Write, Allow),
            ("tmp/a", Write, Allow),
        ],
    );
}

#[test]
fn closed_regions_and_explicit_denies() {
    for (deny_read, more, path, right, expected) in [
        // Holds the working directory, the home directory, an allowed path: a region.
        (r#""ROOT/home""#, "", "home/u/notes", Read, Ask),
        (r#""~""#, "", "home/u/notes", Read, Ask),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data/a"]"#, "data/b", Read, Ask),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data/a"]"#, "data/a/x", Read, Allow),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data"]"#, "data/b", Read, Allow),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data"]"#, "data/b", Write, Ask),
        // Every other one denies for good, for writing too.
        (r#""~/.ssh""#, "", "home/u/.ssh/id", Read, Deny),
        (r#""ROOT/srv""#, "", "srv/x", Read, Deny),
        (r#""ROOT/srv""#, "", "srv/x", Write, Deny),
        (r#""./secret""#, r#", "allowRead": ["."]"#, "home/u/work/foo/secret/x", Read, Deny),
        (r#""./secret""#, "", "home/u/work/foo/secret/x", Write, Deny),
        // Inside an allowed path it denies for good, except what is allowed further inside.
        (r#""a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/x", Read, Deny),
        (r#""a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/x", Read, Allow),
        (r#""a", "a/b/c""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/c/x", Read, Deny),
        (r#""a/b/c", "a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/c/x", Read, Deny),
        // An exception never lifts what the host protects.
        (
            r#""~/.pi""#,
            r#", "allowRead": ["~", "~/.pi/agent/auth.json"]"#,
            "home/u/.pi/agent/auth.json",
            Read,
            Deny,
        ),
        // The caller's home counts as denied although no entry names it.
        ("", "", "home/u/notes", Read, Ask),
        ("", r#", "allowRead": ["ROOT"]"#, "home/u/notes", Read, Deny),
        ("", r#", "allowRead": ["ROOT", "~/.pi"]"#, "home/u/.pi/x", Read, Allow),
        ("", r#", "allowRead": ["~"]"#, "home/u/notes", Read, Allow),
    ] {
        let world = World::new();
        let lists = format!("\"denyRead\": [{deny_read}], \"allowWrite\": [\".\"], \"denyWrite\": []{more}");
        filesystem(&world, &lists);
        let ruling = rule_set(&world).file(&world.root.join(path), right, Caller::Tool);
        assert_eq!(ruling.effect, expected, "{lists}: {right:?} {path}: {ruling:?}");
    }
}

#[test]
fn patterns() {
    for (deny, path, expected) in [
        (r#""**/*.pem""#, "home/u/work/foo/a/b/x.pem", Deny),
        (r#""**/*.pem""#, "home/u/work/foo/x.pem", Deny),
        (r#""**/*.pem""#, "home/u/work/foo/x.pem.txt", Allow),
        (r#""*.pem""#, "home/u/work/foo/x.pem", Deny),
        (r#""*.pem""#, "home/u/work/foo/a/x.pem", Allow),
        (r#""a/**""#, "home/u/work/foo/a/x", Deny),
        (r#""a/""#, "home/u/work/foo/a/x", Deny),
        (r#""./b/../a""#, "home/u/work/foo/a/x", Deny),
        (r#""~/work/*/secret""#, "home/u/work/foo/secret/x", Deny),
        (r#""{a,b}.env""#, "home/u/work/foo/b.env", Deny),
        // A file may really be called like a glob.
        (r#""[x].env""#, "home/u/work/foo/[x].env", Deny),
        (r#""[x].env""#, "home/u/work/foo/x.env", Deny),
        (r#"{ "path": "[x].env", "literal": true }"#, "home/u/work/foo/[x].env", Deny),
        (r#"{ "path": "[x].env", "literal": true }"#, "home/u/work/foo/x.env", Allow),
        (r#"{ "path": "a/**", "literal": true }"#, "home/u/work/foo/a/x", Allow),
    ] {
        let world = World::new();
        filesystem(&world, &format!("\"denyRead\": [], \"allowWrite\": [\".\"], \"denyWrite\": [{deny}]"));
        check(&world, &[(path, Write, expected)]);
    }
}

#[test]
fn a_directory_named_like_a_glob_is_no_glob() {
    let mut world = World::new();
    world.places.workspace = world.root.join("home/u/work/{a,b}[1]*");
    std::fs::create_dir_all(&world.places.workspace).unwrap();
    filesystem(&world, r#""denyRead": [], "allowWrite": ["."], "denyWrite": ["**/*.pem"]"#);
    check(
        &world,
        &[("home/u/work/{a,b}[1]*/x/y.pem", Write, Deny), ("home/u/work/{a,b}[1]*/x/y", Write, Allow)],
    );
}

#[test]
fn what_follows_a_glob_cannot_climb() {
    let world = World::new();
    filesystem(&world, r#""denyRead": [], "allowWrite": ["*/../.."], "denyWrite": []"#);
    assert!(world.resolve().unwrap_err().to_string().contains("`..` cannot follow a glob"));
}

#[test]
fn links_are_denied_under_every_name() {
    let world = World::new();
    // ~/.pi lies elsewhere, and so does the home directory.
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
                // The link itself, and nothing but the way through it.
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
fn globs_have_a_limit_together() {
    let world = World::new();
    let resolved = |globs: usize| {
        let entries: Vec<String> =
            (0..globs).map(|number| format!("\"**/{}{number}\"", "*a".repeat(150))).collect();
        filesystem(
            &world,
            &format!(r#""denyRead": [], "allowWrite": ["."], "denyWrite": [{}]"#, entries.join(",")),
        );
        world.resolve()
    };
    resolved(20).unwrap();
    let error = resolved(1000).unwrap_err().to_string();
    assert!(error.contains("64 KiB"), "{error}");
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
            // What denies holds whatever a link does, and the user's own links lead where they did.
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

/// An answer named no link. Who has put one there since, in whatever place, has not been answered.
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

#[test]
fn another_agent_directory_is_protected_beside_the_usual_one() {
    let mut world = World::new();
    world.places.agent_directory = world.root.join("agent");
    check(
        &world,
        &[
            ("agent/auth.json", Read, Deny),
            ("agent/sandbox/default.json", Write, Deny),
            ("home/u/.pi/agent/auth.json", Read, Deny),
        ],
    );
}

#[test]
fn further_homes_programs_and_toolchains() {
    let mut world = World::new();
    let root = world.root.clone();
    world.places.other_homes = vec![root.join("root")];
    world.places.programs = vec![root.join("opt/portcullis")];
    world.places.toolchains = vec![root.join("cargo")];
    world.places.settings = Some(world.write("named.json", portcullis_config::BUILT_IN));
    check(
        &world,
        &[
            ("root/notes", Read, Ask),
            ("root/.pi/agent/auth.json", Read, Deny),
            ("opt/portcullis", Write, Deny),
            ("cargo/credentials.toml", Read, Deny),
            ("cargo/bin/x", Read, Ask),
            ("named.json", Write, Deny),
        ],
    );
    assert!(world.resolve().unwrap().closed.contains(&root.join("root")));
}

#[test]
fn an_account_without_a_home_can_work() {
    let mut world = World::new();
    world.places.home = PathBuf::from("/");
    assert!(!world.resolve().unwrap().closed.contains(&PathBuf::from("/")));
    world.places.home = PathBuf::from("relative");
    assert!(world.resolve().is_err());
}

#[test]
fn credentials_are_denied() {
    let world = World::new();
    let text = portcullis_config::BUILT_IN.replacen(
        '{',
        r#"{ "credentials": { "files": [{ "path": "key*.txt", "mode": "deny" }],
            "envVars": [{ "name": "MY_TOKEN", "mode": "deny" }] },
            "environment": { "keep": ["MY_*"], "set": { "A": "b" } },"#,
        1,
    );
    world.write(DEFAULT, &text);
    check(&world, &[("home/u/work/foo/key*.txt", Read, Deny), ("home/u/work/foo/key1.txt", Read, Allow)]);
    let rules = rule_set(&world);
    assert_eq!(rules.environment("MY_TOKEN"), Some(Deny));
    assert_eq!(rules.environment("MY_OTHER"), Some(Allow));
    assert_eq!(rules.variables().next(), Some(&("A".to_owned(), "b".to_owned())));
}

#[test]
fn layers_tighten() {
    let world = World::new();
    world.write(
        "home/u/work/foo/.pi/portcullis.json",
        r#"{ "filesystem": { "denyRead": ["."], "denyWrite": ["src"] },
            "network": { "deniedDomains": ["evil.example"] }, "limits": { "processes": 5 } }"#,
    );
    world.write(
        "etc/portcullis/settings.json",
        r#"{ "filesystem": { "denyRead": [], "denyWrite": ["~/work"] }, "limits": { "processes": 9, "memoryMib": 64 } }"#,
    );
    check(&world, &[("home/u/work/foo/a", Read, Deny), ("home/u/work/foo/src/a", Write, Deny)]);
    let resolved = world.resolve().unwrap();
    assert_eq!((resolved.limits.processes, resolved.limits.memory_mib), (Some(5), Some(64)));
    let origin = resolved.origin("machine-settings", "filesystem.denyWrite[0]").unwrap();
    assert_eq!(origin.pointer, "/filesystem/denyWrite/0");
}

#[test]
fn connections() {
    let world = World::new();
    world.write(
        DEFAULT,
        &portcullis_config::BUILT_IN.replace(
            r#""allowedDomains": [], "deniedDomains": []"#,
            r#""allowedDomains": ["ok.example:443"], "deniedDomains": ["*.bad.example"],
               "deniedDomainReasons": { "*.bad.example": "known to be bad\u001b[31m" },
               "deniedResolvedAddresses": ["10.0.0.0/8"], "strictAllowlist": true"#,
        ),
    );
    let rules = rule_set(&world);
    let ask = |host: &str, port: u16| {
        rules.connection(&HostName::parse(host).unwrap(), port, &ProcessInfo::default())
    };
    assert_eq!(ask("ok.example", 443).effect, Allow);
    assert_eq!(ask("ok.example", 22).effect, Deny);
    assert_eq!(ask("other.example", 443).effect, Deny);
    assert_eq!(ask("10.1.1.1", 443).effect, Deny);
    assert_eq!(ask("a.bad.example", 443).reason, "known to be bad\\u{1b}[31m");
}

#[test]
fn warnings_say_what_has_no_effect() {
    let world = World::new();
    filesystem(
        &world,
        r#""denyRead": [], "allowWrite": [".", "~/.ssh/x"], "denyWrite": ["*.pem", "**/*.key", ".env"]"#,
    );
    let texts: Vec<String> =
        world.resolve().unwrap().warnings.into_iter().map(|warning| warning.text).collect();
    assert_eq!(
        texts,
        [
            "`*.pem` holds in the working directory only, write `**/*.pem` for every depth",
            "`~/.ssh/x` stays denied by the rule `host.keys`",
        ]
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever else is denied, nothing is allowed that was not before.
    #[test]
    fn a_further_deny_never_loosens(
        entry in "(\\./|~/|/)?[a-c*]{1,2}(/[a-c*]{1,2}){0,2}",
        list in proptest::sample::select(vec!["denyRead", "denyWrite"]),
        path in "home/u/work/foo/[a-c]{1,2}(/[a-c]{1,2}){0,2}",
    ) {
        let world = World::new();
        let lists = |read: &str, write: &str| format!(
            "\"denyRead\": [\"ROOT/home\"{read}], \"allowRead\": [\".\", \"~/.pi\"], \"allowWrite\": [\".\"], \"denyWrite\": [\"a\"{write}]"
        );
        filesystem(&world, &lists("", ""));
        let before = rule_set(&world);
        let more = format!(", \"{entry}\"");
        filesystem(&world, &if list == "denyRead" { lists(&more, "") } else { lists("", &more) });
        let after = rule_set(&world);
        let path = world.root.join(path);
        for right in [Read, Write] {
            let effect = |rules: &RuleSet| rules.file(&path, right, Caller::Tool).effect;
            proptest::prop_assert!(effect(&after) >= effect(&before));
        }
    }
}

/// A disk whose links change with every look.
#[derive(Default)]
struct Swapping(std::cell::Cell<u32>);

impl Disk for Swapping {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn look(&self, path: &Path) -> std::io::Result<Seen> {
        if !path.ends_with("swapped") {
            return RealDisk.look(path);
        }
        self.0.set(self.0.get() + 1);
        Ok(Seen::Link(PathBuf::from(format!("/somewhere/{}", self.0.get()))))
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
    let resolved = portcullis_config::resolve(&world.discover().unwrap(), &world.places, &disk).unwrap();
    assert!(resolved.deny_read().any(|rule| rule.pattern.to_string().contains("/somewhere/1/a")));
    assert_eq!(disk.0.get(), 1);
}
