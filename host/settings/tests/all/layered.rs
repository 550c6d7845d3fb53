//! The layered layout: merged settings files, and a project's file that only tightens.
//!
//! The file is long because all its tests share the world of files that the helpers below write.

use std::path::Path;

use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::{FilePattern, HostName, NetworkPattern};
use portcullis_decision::profile::FileRight::{Read, Write};
use portcullis_decision::profile::{FileRights, Limits};
use portcullis_decision::request::ProcessInfo;
use portcullis_decision::rules::Caller;
use portcullis_decision::verdict::Effect::{self, Allow, Ask, Deny};
use portcullis_decision::{Grant, GrantPattern, GrantScope};
use portcullis_settings::{
    AllowLists, Draft, GrantFile, RealDisk, Source, Standing, Store, grant_files, keep, kept_grants, report,
    revoke, validate, validate_all,
};
use portcullis_settings_format::{Change, FileKind, Layer, Warning};
use serde_json::{Value, json};

use crate::resolving::{check, rule_set};
use crate::world::World;

const CHOICE: &str = "home/u/.pi/agent/sandbox/default.json";
const USER: &str = "home/u/.pi/agent/extensions/sandbox.json";
const ENTRIES: &str = "home/u/.pi/agent/sandbox/layered.json";
const PROJECT: &str = "home/u/work/foo/.pi/sandbox.json";
const HOSTS: [&str; 10] = [
    "npmjs.org",
    "*.npmjs.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "*.pypi.org",
    "github.com",
    "*.github.com",
    "api.github.com",
    "raw.githubusercontent.com",
];

fn layered() -> World {
    let world = World::new();
    world.write(CHOICE, r#"{ "layout": "layered" }"#);
    world
}

fn with(layers: &[(&str, Value)]) -> World {
    let world = layered();
    for (file, value) in layers {
        let text = format!("{value:#}").replace("ROOT", &world.root.to_string_lossy());
        world.write(file, &text);
    }
    world
}

fn entry(settings: Value) -> Value {
    json!({ "ROOT/home/u/work/foo": settings })
}

fn domains(world: &World) -> Vec<String> {
    world.resolve().unwrap().allowed_domains.iter().map(ToString::to_string).collect()
}

fn writable(world: &World) -> Vec<String> {
    let root = world.root.to_string_lossy().into_owned();
    let text = |pattern: &FilePattern| {
        pattern.to_string().trim_end_matches("/**").trim_start_matches(&root).to_owned()
    };
    world.resolve().unwrap().allow_write.iter().map(text).collect()
}

fn host(world: &World, name: &str, port: u16) -> Effect {
    let nobody = ProcessInfo::default();
    rule_set(world).connection(&HostName::parse(name).unwrap(), port, &nobody).effect
}

fn assert_refused(world: &World, expected: &str) {
    let error = match world.resolve() {
        Ok(_) => panic!("nothing is wrong, and `{expected}` was expected"),
        Err(error) => format!("{:#}", anyhow_of(error)),
    };
    assert!(error.contains(expected), "{error}");
}

fn anyhow_of(error: portcullis_settings_format::ConfigError) -> String {
    use std::error::Error as _;
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

#[test]
fn without_a_file_of_the_user_the_layered_defaults_apply() {
    let world = layered();
    let found = world.discover().unwrap();
    assert_eq!(found.source, Source::Layered { file: world.root.join(USER), key: None });
    assert_eq!(domains(&world), HOSTS);
    assert_eq!(writable(&world), ["/home/u/work/foo", "/tmp"]);
    let resolved = world.resolve().unwrap();
    assert_eq!(resolved.policies[0].name, "guard");
    let config = Value::Object(resolved.policies[0].config.clone());
    let workspace = world.places.workspace.to_string_lossy().into_owned();
    assert_eq!(config["network"], json!({ "allowedDomains": HOSTS, "deniedDomains": [] }));
    assert_eq!(
        config["filesystem"],
        json!({
            "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"],
            "allowRead": [workspace, "/tmp"],
            "allowWrite": [workspace, "/tmp"],
            "denyWrite": [".env", ".env.*", "*.pem", "*.key"],
        })
    );
}

/// The enforcement table of `@sysid/pi-sandbox`, with a policy that applies `allowWrite`.
#[test]
fn the_seeds_rules() {
    check(
        &layered(),
        &[
            ("home/u/.ssh/id_rsa", Read, Deny),
            ("home/u/.aws/credentials", Read, Deny),
            ("home/u/.gnupg/x", Read, Deny),
            ("home/u/work/foo/src/main.ts", Write, Allow),
            ("home/u/work/foo/.env", Write, Deny),
            ("home/u/work/foo/.env.local", Write, Deny),
            ("home/u/work/foo/.env.production", Write, Deny),
            ("home/u/work/foo/deep/er/.env", Write, Deny),
            ("home/u/work/foo/cert.pem", Write, Deny),
            ("home/u/work/foo/a/server.key", Write, Deny),
            ("srv/elsewhere/x.pem", Write, Deny),
            ("home/u/work/foo/.environment", Write, Allow),
            ("home/u/work/foo/pem", Write, Allow),
        ],
    );
    // The test directory lies in `/tmp`, which the defaults open.
    let elsewhere = rule_set(&layered()).file(Path::new("/etc/passwd"), Write, Caller::Tool);
    assert_eq!(elsewhere.effect, Ask);
}

#[test]
fn the_later_layer_wins_key_by_key_and_entries_add() {
    for (user, own, hosts, write) in [
        (json!({}), json!({}), HOSTS.to_vec(), vec!["/home/u/work/foo", "/tmp"]),
        (
            json!({ "network": { "allowedDomains": ["a.test"] } }),
            json!({}),
            vec!["a.test"],
            vec!["/home/u/work/foo", "/tmp"],
        ),
        (
            json!({ "network": { "deniedDomains": ["x.test"] }, "filesystem": { "allowWrite": ["./src"] } }),
            json!({}),
            HOSTS.to_vec(),
            vec!["/home/u/work/foo/src"],
        ),
        (
            json!({ "network": { "allowedDomains": ["a.test"] }, "filesystem": { "allowWrite": [] } }),
            json!({ "network": { "allowedDomains": ["b.test"] }, "filesystem": { "allowWrite": ["out"] } }),
            vec!["a.test", "b.test"],
            vec!["/home/u/work/foo/out"],
        ),
    ] {
        let world = with(&[(USER, user.clone()), (ENTRIES, entry(own))]);
        assert_eq!((domains(&world), writable(&world)), (texts(&hosts), texts(&write)), "{user}");
    }
    let world = with(&[
        (USER, json!({ "limits": { "processes": 10 }, "enabled": false })),
        (ENTRIES, entry(json!({ "limits": { "wallMs": 5000 }, "enabled": true }))),
    ]);
    let resolved = world.resolve().unwrap();
    assert!(resolved.enabled, "single values: the later layer wins");
    assert_eq!((resolved.limits.processes, resolved.limits.wall_ms), (Some(10), Some(5000)));
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// The user allows `.`, `/tmp` and two hosts; the project's file is that of the case.
#[test]
fn a_project_narrows_and_never_widens() {
    let user = json!({
        "network": { "allowedDomains": ["*.github.com", "npmjs.org:443"] },
        "filesystem": { "allowWrite": [".", "ROOT/data"] },
    });
    let all = ["*.github.com", "npmjs.org:443"];
    let both = ["/home/u/work/foo", "/data"];
    type Case = (Value, &'static [&'static str], &'static [&'static str], usize);
    let network = |hosts: Value| json!({ "network": { "allowedDomains": hosts } });
    let write = |places: Value| json!({ "filesystem": { "allowWrite": places } });
    let cases: [Case; 14] = [
        (json!({}), &["*.github.com", "npmjs.org:443"], &["/home/u/work/foo", "/data"], 0),
        (network(json!([])), &[], &["/home/u/work/foo", "/data"], 0),
        (network(json!(["api.github.com"])), &["api.github.com"], &["/home/u/work/foo", "/data"], 0),
        (network(json!(["*.github.com:443"])), &["*.github.com:443"], &["/home/u/work/foo", "/data"], 0),
        // The project's entry covers more than port 443: the overlap is allowed, and the user is warned about the rest.
        (network(json!(["npmjs.org"])), &["npmjs.org:443"], &["/home/u/work/foo", "/data"], 1),
        (network(json!(["npmjs.org:80"])), &[], &["/home/u/work/foo", "/data"], 1),
        (network(json!(["github.com"])), &[], &["/home/u/work/foo", "/data"], 1),
        (network(json!(["evil.test", "*.github.com"])), &["*.github.com"], &["/home/u/work/foo", "/data"], 1),
        (write(json!(["."])), &["*.github.com", "npmjs.org:443"], &["/home/u/work/foo"], 0),
        (
            write(json!(["src", "ROOT/data/x"])),
            &["*.github.com", "npmjs.org:443"],
            &["/home/u/work/foo/src", "/data/x"],
            0,
        ),
        (write(json!(["/"])), &["*.github.com", "npmjs.org:443"], &["/home/u/work/foo", "/data"], 1),
        (write(json!(["~/.bashrc", "."])), &["*.github.com", "npmjs.org:443"], &["/home/u/work/foo"], 1),
        (write(json!([])), &["*.github.com", "npmjs.org:443"], &[], 0),
        (json!({ "enabled": false }), &["*.github.com", "npmjs.org:443"], &["/home/u/work/foo", "/data"], 1),
    ];
    assert_eq!((all.len(), both.len()), (2, 2));
    for (project, hosts, write, warnings) in cases {
        let world = with(&[(USER, user.clone()), (PROJECT, project.clone())]);
        assert_eq!(domains(&world), texts(hosts), "{project}");
        assert_eq!(writable(&world), texts(write), "{project}");
        let resolved = world.resolve().unwrap();
        assert!(resolved.enabled, "{project}");
        let told: Vec<_> = resolved
            .warnings
            .iter()
            .filter(|warning| warning.origin.file.ends_with(".pi/sandbox.json"))
            .collect();
        assert_eq!(told.len(), warnings, "{project}: {told:?}");
    }
}

/// A project names paths inside a tree that is hidden from commands despite the user's entry above it.
#[test]
fn what_a_project_narrows_to_opens_nothing_of_its_own() {
    let cases = [
        (json!(["/tmp", "."]), json!(["/tmp/x", "."]), vec!["/home/u/work/foo"]),
        (json!(["/", "."]), json!(["/tmp/x", "/run/user", "."]), vec!["/home/u/work/foo"]),
        (json!(["/tmp/x", "/run", "."]), json!(["/tmp/x/y", "/run/user"]), vec!["/tmp/x/y", "/run/user"]),
        (json!(["/tmp", "."]), json!(["/tmp"]), vec!["/tmp"]),
    ];
    for (user, project, expected) in cases {
        let write = |entries: &Value| json!({ "filesystem": { "allowWrite": entries } });
        let mut world = with(&[(USER, write(&user)), (PROJECT, write(&project))]);
        world.places.temp = "/tmp".into();
        let mut found = writable(&world);
        found.sort();
        let mut expected = texts(&expected);
        expected.sort();
        assert_eq!(found, expected, "{user} {project}");
    }
    for (user, project, expected) in [
        (json!(["*.a.test"]), json!(["localhost:5432", "10.0.0.5", "x.a.test"]), vec!["x.a.test"]),
        (json!(["localhost"]), json!(["localhost:5432"]), vec![]),
        (json!(["localhost:5432"]), json!(["localhost"]), vec!["127.0.0.1/32:5432", "::1/128:5432"]),
        (json!(["0.0.0.0/0"]), json!(["127.0.0.1:5432"]), vec![]),
        (json!(["10.0.0.0/8"]), json!(["10.0.0.5:443"]), vec!["10.0.0.5/32:443"]),
    ] {
        let network = |hosts: &Value| json!({ "network": { "allowedDomains": hosts } });
        let world = with(&[(USER, network(&user)), (PROJECT, network(&project))]);
        assert_eq!(domains(&world).len(), expected.len(), "{user} {project}: {:?}", domains(&world));
    }
    let sockets = |paths: &Value| json!({ "network": { "allowUnixSockets": paths } });
    for (user, project, count) in [
        (json!(["/run"]), json!(["/run/docker.sock"]), 0),
        (json!(["/run/docker.sock"]), json!(["/run/docker.sock"]), 1),
    ] {
        let world = with(&[(USER, sockets(&user)), (PROJECT, sockets(&project))]);
        assert_eq!(world.resolve().unwrap().sockets.len(), count, "{user} {project}");
    }
}

#[test]
fn a_project_adds_denials() {
    let world = with(&[
        (USER, json!({ "network": { "allowedDomains": ["a.test", "b.test"] } })),
        (
            PROJECT,
            json!({
                "network": { "deniedDomains": ["b.test"] },
                "filesystem": { "denyRead": ["secrets"], "denyWrite": ["*.lock", "vendor/", "./plain"] },
                "limits": { "processes": 7 },
            }),
        ),
    ]);
    check(
        &world,
        &[
            ("home/u/work/foo/secrets/x", Read, Deny),
            ("home/u/work/foo/a/b/yarn.lock", Write, Deny),
            ("home/u/work/foo/vendor/x", Write, Deny),
            ("home/u/work/foo/deep/vendor/x", Write, Allow),
            ("home/u/work/foo/plain", Write, Deny),
            ("home/u/work/foo/.env", Write, Deny),
            ("home/u/work/foo/x", Write, Allow),
        ],
    );
    assert_eq!(host(&world, "b.test", 443), Deny);
    assert_eq!(world.resolve().unwrap().tightened_limits.processes, Some(7));
}

/// A `denyRead` entry inside an allowed path stays an explicit deny.
///
/// With a shorter allow list it would be a region that asks.
#[test]
fn a_project_makes_no_denial_a_question() {
    let user = json!({ "filesystem": {
        "denyRead": ["ROOT/srv/a"], "allowRead": ["ROOT/srv", "ROOT/srv/a/open"], "denyWrite": [],
    } });
    let cases = [("srv/a/x", Read, Deny), ("srv/a/x", Write, Deny)];
    let alone = with(&[(USER, user.clone())]);
    check(&alone, &cases);
    check(&alone, &[("srv/a/open/x", Read, Allow)]);
    for narrowed in [json!([]), json!(["ROOT/srv/a/open"]), json!(["ROOT/srv/a/open/in"])] {
        let world =
            with(&[(USER, user.clone()), (PROJECT, json!({ "filesystem": { "allowRead": narrowed } }))]);
        check(&world, &cases);
    }
}

#[test]
fn a_project_leaves_of_the_users_hosts_alone_what_they_are() {
    for file in [PROJECT, "home/u/work/foo/.pi/portcullis.json"] {
        let world = with(&[
            (USER, json!({ "network": { "allowedDomains": ["a.test"] } })),
            (file, json!({ "network": { "strictAllowlist": true } })),
        ]);
        assert_eq!((host(&world, "a.test", 443), host(&world, "b.test", 443)), (Allow, Deny), "{file}");
    }
}

#[test]
fn what_a_project_cannot_say_is_an_error_of_that_file() {
    for (key, value) in [
        ("layout", json!("layered")),
        ("policies", json!([{ "use": "workspace" }])),
        ("combine", json!("first")),
        ("ask", json!({ "timeoutMs": 1000 })),
        ("escalation", json!("ask")),
        ("unattendedRefusals", json!("quiet")),
        ("protections", json!({ "lift": ["host.git-hooks"] })),
        ("grants", json!([{ "tool": "x" }])),
        ("credentials", json!({ "files": [] })),
        ("environment", json!({ "keep": ["AWS_*"] })),
    ] {
        let world = with(&[(PROJECT, json!({ key: value }))]);
        assert_refused(&world, "this file can only tighten");
        assert_refused(&world, "work/foo/.pi/sandbox.json");
    }
    let world = with(&[(PROJECT, json!({ "network": { "allowedDomain": [] } }))]);
    assert_refused(&world, "did you mean `allowedDomains`?");
    let world = with(&[(PROJECT, json!({ "ignoreViolations": { "*": ["x"] }, "allowPty": true }))]);
    let resolved = world.resolve().unwrap();
    assert_eq!(resolved.ignored, []);
    assert!(
        resolved.warnings.iter().any(|warning| warning.text.contains("a project cannot silence reports"))
    );
}

/// The agent can write in the project: whatever it puts in place of the file, the file allows nothing.
#[test]
fn a_hostile_project_file_is_refused_loudly() {
    let fresh = || {
        let world = layered();
        std::fs::create_dir_all(world.root.join("home/u/work/foo/.pi")).unwrap();
        world
    };
    let file = |world: &World| world.root.join(PROJECT);

    let world = fresh();
    let token = world.write("home/u/.secret", "token");
    world.link(PROJECT, &token);
    assert_refused(&world, "lead out of the project through a link");
    let world = fresh();
    world.link(PROJECT, Path::new("/nowhere/at/all"));
    assert_refused(&world, "lead out of the project through a link");
    let world = fresh();
    world.link(PROJECT, &file(&world).with_file_name("none.json"));
    assert_refused(&world, "behind a broken link");
    let world = fresh();
    let made = std::process::Command::new("mkfifo").arg(file(&world)).status().unwrap();
    assert!(made.success());
    assert_refused(&world, "it is no plain file");
    let world = fresh();
    std::fs::create_dir(file(&world)).unwrap();
    assert_refused(&world, "it is no plain file");
    for (text, expected) in [
        (" ".repeat(1024 * 1024 + 1), "larger than 1 MiB"),
        ("{".to_owned(), "line 1, column 2"),
        (String::new(), "the file is empty"),
        ("[".repeat(100), "nested deeper"),
        (r#"{ "enabled": true, "enabled": true }"#.to_owned(), "there twice"),
    ] {
        let world = fresh();
        world.write(PROJECT, &text);
        assert_refused(&world, expected);
    }
}

#[test]
fn an_agents_links_open_nothing() {
    let world = with(&[
        (USER, json!({ "filesystem": { "allowWrite": ["."], "allowRead": ["~/work"] } })),
        (PROJECT, json!({ "filesystem": { "allowWrite": ["out"], "allowRead": ["out"] } })),
    ]);
    world.link("home/u/work/foo/out", &world.root.join("home/u/other"));
    std::fs::create_dir_all(world.root.join("home/u/other")).unwrap();
    check(&world, &[("home/u/other/x", Write, Ask), ("home/u/other/x", Read, Ask)]);
}

#[test]
fn only_default_json_chooses_the_layout_and_holds_nothing_else() {
    let world = World::new();
    world.write(CHOICE, r#"{ "layout": "layered", "enabled": false }"#);
    assert_refused(&world, "`enabled`: in the layered layout settings stand in `extensions/sandbox.json`");
    let world = with(&[(USER, json!({ "layout": "layered" }))]);
    assert_refused(&world, "only `default.json` chooses the layout");
    let whole: Value = serde_json::from_str(portcullis_settings_format::BUILT_IN).unwrap();
    let mut chosen = whole.clone();
    chosen["layout"] = json!("layered");
    let world = World::new();
    world.write(
        "home/u/.pi/agent/sandbox/projects.json",
        &entry(chosen.clone()).to_string().replace("ROOT", &world.root.to_string_lossy()),
    );
    assert_refused(&world, "only `default.json` chooses the layout");
    let mut world = World::new();
    world.places.settings = Some(world.write("named.json", &chosen.to_string()));
    assert_refused(&world, "only `default.json` chooses the layout");
    let world = World::new();
    let mut plain = whole;
    plain["layout"] = json!("projects");
    world.write(CHOICE, &plain.to_string());
    assert_eq!(world.discover().unwrap().source, Source::Default(world.root.join(CHOICE)));
}

#[test]
fn entries_of_the_other_layout_do_not_hold_and_that_is_told() {
    let world = layered();
    let other = "home/u/.pi/agent/sandbox/projects.json";
    world.write(other, "{}");
    let resolved = world.resolve().unwrap();
    let is_of_it = |warning: &&Warning| warning.origin.file == world.root.join(other);
    let warning = resolved.warnings.iter().find(is_of_it).expect("it is told");
    assert!(warning.text.contains("does not hold"), "{}", warning.text);
}

#[test]
fn every_value_says_where_it_was_written() {
    let world = layered();
    world.write(USER, "{\n  \"network\": {\n    \"allowedDomains\": [\n      \"a.test\"\n    ]\n  }\n}\n");
    let text =
        "{\n  \"ROOT/home/u/work/foo\": {\n    \"network\": { \"allowedDomains\": [\"b.test\"] }\n  }\n}\n";
    world.write(ENTRIES, &text.replace("ROOT", &world.root.to_string_lossy()));
    world.write(
        PROJECT,
        "{ \"enabled\": false,\n  \"network\": { \"allowedDomains\": [\n \"a.test\",\n \"c.test\"] } }\n",
    );
    let found = world.discover().unwrap();
    let resolved = world.resolve().unwrap();
    let report = report(&found, &resolved, &Limits::default());
    let told = |field: &str| -> Vec<(Value, Layer, Standing, String, u32)> {
        let of = report.values.iter().filter(|one| one.field == field);
        of.map(|one| {
            let origin = one.origin.as_ref().unwrap();
            let name = origin.file.file_name().unwrap().to_string_lossy().into_owned();
            (one.value.clone(), one.layer, one.standing, name, origin.at.line)
        })
        .collect()
    };
    use Standing::{ExplicitDeny, InForce, Overruled};
    let name = |text: &str| text.to_owned();
    assert_eq!(
        told("network.allowedDomains"),
        [
            (json!("a.test"), Layer::User, InForce, name("sandbox.json"), 4),
            (json!("b.test"), Layer::User, Overruled, name("layered.json"), 3),
            (json!("a.test"), Layer::Sandbox, InForce, name("sandbox.json"), 3),
            (json!("c.test"), Layer::Sandbox, Overruled, name("sandbox.json"), 4),
        ]
    );
    assert_eq!(
        told("enabled"),
        [
            (json!(true), Layer::User, InForce, name("<built in>"), 2),
            (json!(false), Layer::Sandbox, Overruled, name("sandbox.json"), 1),
        ]
    );
    assert_eq!(told("filesystem.denyRead")[0].2, ExplicitDeny);
    assert_eq!(told("layout"), [(json!("layered"), Layer::User, InForce, name("default.json"), 1)]);
    let at = resolved.origin("settings", "filesystem.denyWrite[1]").unwrap();
    assert_eq!(
        (at.file.as_path(), at.pointer.as_str()),
        (Path::new("<built in>"), "/filesystem/denyWrite/1")
    );
    let entry = &world.discover().unwrap().settings.network.allowed_domains[1].origin;
    assert_eq!(entry.file, world.root.join(ENTRIES));
    assert!(entry.pointer.ends_with("~1foo/network/allowedDomains/0"), "{}", entry.pointer);
}

#[test]
fn mistakes_are_told_of_the_file_that_they_stand_in() {
    let world = with(&[(USER, json!({ "filesystem": { "denyWrite": 7 } }))]);
    assert_refused(&world, "extensions/sandbox.json");
    let bad = json!({ "policies": [{ "use": "no policy" }] });
    assert_refused(&with(&[(USER, bad.clone())]), "extensions/sandbox.json");
    assert_refused(&with(&[(ENTRIES, entry(bad))]), "layered.json");
    let world = with(&[
        (USER, json!({ "enabledd": true, "network": { "allowedDomains": ["*"] } })),
        (ENTRIES, json!({ "relative": {} })),
        (PROJECT, json!({ "policies": [] })),
    ]);
    let told: Vec<_> = validate_all(&world.places, &RealDisk)
        .into_iter()
        .map(|file| (file.file.file_name().unwrap().to_string_lossy().into_owned(), file.mistakes.len()))
        .collect();
    assert_eq!(
        told,
        [
            ("layered.json".to_owned(), 1),
            ("sandbox.json".to_owned(), 2),
            ("default.json".to_owned(), 0),
            ("sandbox.json".to_owned(), 1),
        ]
    );
    for (file, kind) in [
        (USER, FileKind::Part),
        (ENTRIES, FileKind::Parts),
        (PROJECT, FileKind::Tightening(Layer::Sandbox)),
        (CHOICE, FileKind::Settings),
    ] {
        assert_eq!(FileKind::from_name(&world.root.join(file)), kind, "{file}");
    }
    let alone = with(&[(USER, json!({ "filesystem": { "allowWrite": ["."] } }))]);
    let checked = validate(&alone.root.join(USER), FileKind::Part, &RealDisk);
    assert!(checked.mistakes.is_empty(), "{:?}", checked.mistakes);
}

fn grant(pattern: GrantPattern) -> Grant {
    Grant { scope: GrantScope::Project, pattern, granted_at: 7, expires_at: 0 }
}

fn read(world: &World, file: &str) -> Value {
    let text = std::fs::read_to_string(world.root.join(file)).unwrap_or_else(|_| "null".to_owned());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn answers_stand_on_the_users_side_and_never_in_the_project() {
    let world = with(&[(PROJECT, json!({}))]);
    let store = Store::new(&world.places);
    let places = grant_files(&world.discover().unwrap(), &world.places, &RealDisk).unwrap();
    let [project @ GrantFile::NewEntry { .. }, all @ GrantFile::Default] = places.as_slice() else {
        panic!("{places:?}")
    };
    let host = grant(GrantPattern::Network(NetworkPattern::parse("a.test:443").unwrap()));
    let path = FilePattern::tree("/srv/data").unwrap();
    let path = grant(GrantPattern::Path(PathPattern { pattern: path, rights: FileRights::READ_WRITE }));
    for (grant_file, grant) in [(project, &host), (all, &path)] {
        // `Heard`, as for policies that use the lists: a one-entry list must not replace the built-in lists.
        keep(&store, &world.places, grant_file, grant, AllowLists::Heard).unwrap();
    }
    let workspace = world.places.workspace.to_string_lossy().into_owned();
    let kept = json!({ "grants": [{ "connect": "a.test:443", "grantedAt": 7 }] });
    assert_eq!(read(&world, ENTRIES), json!({ workspace: kept }));
    assert_eq!(read(&world, USER)["grants"][0]["path"], json!("/srv/data"));
    assert_eq!(read(&world, PROJECT), json!({}), "the project has no part in it");
    assert_eq!(read(&world, "home/u/.pi/agent/sandbox/projects.json"), Value::Null);
    let resolved = world.resolve().unwrap();
    assert_eq!((resolved.grants.len(), domains(&world)), (2, texts(&HOSTS)));

    let found = grant_files(&world.discover().unwrap(), &world.places, &RealDisk).unwrap();
    assert!(matches!(found[0], GrantFile::Entry { exact: true, .. }), "{found:?}");
    let grants = kept_grants(&world.places, &RealDisk, false).unwrap();
    assert_eq!(grants.len(), 2);
    for grant in &grants {
        assert!(revoke(&store, grant).unwrap());
    }
    assert_eq!(world.resolve().unwrap().grants, []);
}

#[test]
fn a_directory_inside_a_project_can_have_answers_of_its_own() {
    let world = with(&[(ENTRIES, json!({ "ROOT/home/u/work": { "grants": [{ "tool": "x" }] } }))]);
    let store = Store::new(&world.places);
    let found = grant_files(&world.discover().unwrap(), &world.places, &RealDisk).unwrap();
    let [GrantFile::Entry { exact: false, .. }, own @ GrantFile::NewEntry { .. }, GrantFile::Default] =
        found.as_slice()
    else {
        panic!("{found:?}")
    };
    let host = grant(GrantPattern::Network(NetworkPattern::parse("a.test").unwrap()));
    keep(&store, &world.places, own, &host, AllowLists::Unheard).unwrap();
    let own = &read(&world, ENTRIES)[world.places.workspace.to_str().unwrap()];
    assert_eq!(own["grants"].as_array().map(Vec::len), Some(2), "begun as a copy of the one above: {own}");
}

#[test]
fn the_editor_keeps_what_is_built_in() {
    let world = layered();
    let store = Store::new(&world.places);
    let way = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let mut draft = Draft::open(&world.places, &GrantFile::Default).unwrap();
    assert_eq!(draft.file(), world.root.join(USER));
    assert_eq!(draft.value(&way("network.allowedDomains")), json!(HOSTS));
    draft.change(&Change::Append(way("network.allowedDomains"), json!("a.test"))).unwrap();
    draft.change(&Change::Drop(way("filesystem.denyWrite"), json!("*.pem"))).unwrap();
    draft.change(&Change::Append(way("grants"), json!({ "tool": "x" }))).unwrap();
    assert_eq!(draft.obstacles(), []);
    draft.save(&store).unwrap();
    let file = read(&world, USER);
    assert_eq!(file["network"]["allowedDomains"].as_array().map(Vec::len), Some(HOSTS.len() + 1));
    assert_eq!(file["filesystem"], json!({ "denyWrite": [".env", ".env.*", "*.key"] }));
    let grant_file = grant_files(&world.discover().unwrap(), &world.places, &RealDisk).unwrap().remove(0);
    let mut draft = Draft::open(&world.places, &grant_file).unwrap();
    draft.change(&Change::Append(way("network.allowedDomains"), json!("b.test"))).unwrap();
    draft.save(&store).unwrap();
    assert_eq!(domains(&world).len(), HOSTS.len() + 2, "entries add");
}

/// A project's list of hosts would say nothing if the user's choice opened all others.
#[test]
fn a_projects_list_of_hosts_makes_the_others_a_question_again() {
    use portcullis_settings_format::UnlistedHosts;
    let users = json!({ "network": { "unlistedHosts": "allow" } });
    let chosen = |project: Value| {
        let world = with(&[(USER, users.clone()), (PROJECT, project)]);
        world.resolve().unwrap().unlisted_hosts
    };
    assert_eq!(chosen(json!({ "network": { "deniedDomains": ["evil.test"] } })), UnlistedHosts::Allow);
    for network in [json!({ "allowedDomains": ["a.test"] }), json!({ "strictAllowlist": true })] {
        assert_eq!(chosen(json!({ "network": network })), UnlistedHosts::Ask, "{network}");
    }
}
