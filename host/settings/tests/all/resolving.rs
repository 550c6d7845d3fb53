//! Settings as rules over real directories, evaluated by the rule set that all callers use.

use std::path::PathBuf;

use portcullis_decision::Profile;
use portcullis_decision::pattern::HostName;
use portcullis_decision::profile::FileRight::{self, Read, Write};
use portcullis_decision::profile::{FileRights, FileRule, Limits};
use portcullis_decision::request::ProcessInfo;
use portcullis_decision::rules::{Caller, RuleLayer, RuleSet};
use portcullis_decision::verdict::Effect::{self, Allow, Ask, Deny};
use portcullis_settings::Resolved;

use crate::world::World;

pub(crate) const DEFAULT: &str = "home/u/.pi/agent/sandbox/default.json";

pub(crate) fn filesystem(world: &World, lists: &str) {
    let text = format!(
        "{{ \"network\": {{ \"allowedDomains\": [], \"deniedDomains\": [] }}, \"filesystem\": {{ {lists} }} }}"
    );
    world.write(DEFAULT, &text.replace("ROOT", &world.root.to_string_lossy()));
}

/// Returns a minimal policy layer that applies the allow lists.
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

/// Returns the ceiling with the minimal policy.
pub(crate) fn layers(resolved: &Resolved) -> Vec<RuleLayer> {
    let mut layers = resolved.ceiling();
    layers.push(policy(resolved));
    layers
}

pub(crate) fn rule_set(world: &World) -> RuleSet {
    let resolved = world.resolve().unwrap();
    RuleSet::compile(layers(&resolved), resolved.base(), &[])
}

pub(crate) fn check(world: &World, cases: &[(&str, FileRight, Effect)]) {
    let rules = rule_set(world);
    for (path, right, expected) in cases {
        let ruling = rules.file(&world.root.join(path), *right, Caller::Tool);
        assert_eq!(ruling.effect, *expected, "{right:?} {path}: {ruling:?}");
    }
}

#[test]
fn the_built_in_lists() {
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
            // Dotfiles in the home directory ask before writing; nothing else changes.
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
        // An entry that contains the working directory, the home directory or an allowed path closes a region.
        (r#""ROOT/home""#, "", "home/u/notes", Read, Ask),
        (r#""~""#, "", "home/u/notes", Read, Ask),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data/a"]"#, "data/b", Read, Ask),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data/a"]"#, "data/a/x", Read, Allow),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data"]"#, "data/b", Read, Allow),
        (r#""ROOT/data""#, r#", "allowRead": ["ROOT/data"]"#, "data/b", Write, Ask),
        // Any other entry is an explicit deny, of writing too.
        (r#""~/.ssh""#, "", "home/u/.ssh/id", Read, Deny),
        (r#""ROOT/srv""#, "", "srv/x", Read, Deny),
        (r#""ROOT/srv""#, "", "srv/x", Write, Deny),
        (r#""./secret""#, r#", "allowRead": ["."]"#, "home/u/work/foo/secret/x", Read, Deny),
        (r#""./secret""#, "", "home/u/work/foo/secret/x", Write, Deny),
        // Inside an allowed path an entry is an explicit deny, except for paths allowed further inside.
        (r#""a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/x", Read, Deny),
        (r#""a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/x", Read, Allow),
        (r#""a", "a/b/c""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/c/x", Read, Deny),
        (r#""a/b/c", "a""#, r#", "allowRead": [".", "a/b"]"#, "home/u/work/foo/a/b/c/x", Read, Deny),
        // An exception never lifts a protection of the host.
        (
            r#""~/.pi""#,
            r#", "allowRead": ["~", "~/.pi/agent/auth.json"]"#,
            "home/u/.pi/agent/auth.json",
            Read,
            Deny,
        ),
        // The caller's home is denied even if no entry names it.
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
        // A file name can really look like a glob.
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
    world.places.settings = Some(world.write("named.json", portcullis_settings_format::BUILT_IN));
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
    let text = portcullis_settings_format::BUILT_IN.replacen(
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
    let limits = resolved.tightened_limits;
    assert_eq!((limits.processes, limits.memory_mib), (Some(5), Some(64)));
    let origin = resolved.origin("machine-settings", "filesystem.denyWrite[0]").unwrap();
    assert_eq!(origin.pointer, "/filesystem/denyWrite/0");
}

/// Limits in files that can only tighten never exceed the host's default.
///
/// The default bounds them if the user sets no limit, and the user's limits stay. The same limits in the user's own
/// file can loosen.
#[test]
fn layers_do_not_loosen_numbers() {
    const DEFAULTS: Limits = Limits {
        wall_ms: Some(1000),
        cpu_ms: None,
        memory_mib: Some(1000),
        processes: Some(1000),
        open_files: Some(1000),
        file_mib: Some(1000),
        output_kib: Some(1000),
    };
    let (more, less) = (5000, 100);
    let written = |number: u32| {
        serde_json::json!({
            "limits": { "wallMs": number, "cpuMs": number, "memoryMib": number, "processes": number,
                "openFiles": number, "fileMib": number, "outputKib": number },
            "network": { "uploadBudgetMib": number },
        })
    };
    let held = |world: &World| {
        let rules = rule_set(world);
        let limits = rules.limits(DEFAULTS);
        let budget = rules.budget(&HostName::parse("a.test").unwrap(), 443).bytes >> 20;
        ([limits.wall_ms, limits.memory_mib, limits.processes, limits.open_files, limits.output_kib], budget)
    };
    let files = ["home/u/work/foo/.pi/portcullis.json", "etc/portcullis/settings.json"];
    for file in files {
        // `None` is the host's default.
        for (number, expected, budget) in [(more, None, 256), (less, Some(less), 100)] {
            let world = World::new();
            world.write(file, &written(number).to_string());
            assert_eq!(held(&world), ([expected; 5], budget), "{file} {number}");
            assert_eq!(rule_set(&world).limits(DEFAULTS).cpu_ms, Some(number), "nothing is stricter");
        }
    }
    let with_own = |number: u32, other: u32| {
        let world = World::new();
        let mut own: serde_json::Value = serde_json::from_str(portcullis_settings_format::BUILT_IN).unwrap();
        own["limits"] = written(number)["limits"].clone();
        own["network"]["uploadBudgetMib"] = number.into();
        own["environment"] = serde_json::json!({ "set": { "ONLY": "mine" }, "drop": ["MY_OWN"] });
        world.write(DEFAULT, &own.to_string());
        let mut project = written(other);
        project["environment"] = serde_json::json!({ "drop": ["*"] });
        world.write(files[0], &project.to_string());
        world
    };
    assert_eq!(
        held(&with_own(more, more * 2)),
        ([Some(more); 5], u64::from(more)),
        "the control: the user's own"
    );
    assert_eq!(held(&with_own(more, less)), ([Some(less); 5], 100));
    let rules = rule_set(&with_own(more, less));
    let of = |name| rules.environment(name);
    assert_eq!([of("ONLY"), of("MY_OWN"), of("OTHER")], [Some(Allow), Some(Deny), Some(Deny)]);
}

#[test]
fn connections() {
    let world = World::new();
    world.write(
        DEFAULT,
        &portcullis_settings_format::BUILT_IN.replace(
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

    /// An additional deny entry never allows a path that was not allowed before.
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
