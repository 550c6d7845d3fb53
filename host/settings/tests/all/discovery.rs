//! Which settings apply to which directory.

use std::path::Path;

use portcullis_settings::Source;
use portcullis_settings_format::{ConfigError, Layer};

use crate::world::{World, marked};

const PROJECTS: &str = "home/u/.pi/agent/sandbox/projects.json";
const DEFAULT: &str = "home/u/.pi/agent/sandbox/default.json";
const PROJECT_FILE: &str = "home/u/work/foo/.pi/portcullis.json";

fn mark(world: &World) -> String {
    let found = world.discover().unwrap();
    found.settings.network.denied_domains.first().map(|entry| entry.text.clone()).unwrap_or_default()
}

fn projects(world: &World, entries: &[(&str, &str)]) {
    let entry =
        |(key, mark): &(&str, &str)| format!("\"{}\": {}", world.root.join(key).display(), marked(mark));
    let text = entries.iter().map(entry).collect::<Vec<_>>().join(",\n");
    world.write(PROJECTS, &format!("{{{text}}}"));
}

#[test]
fn without_files_the_built_in_settings_hold() {
    let found = World::new().discover().unwrap();
    assert_eq!(found.source, Source::BuiltIn);
    // The two files of settings, those that only tighten, and the text for the model.
    assert_eq!(found.watched.len(), 5);
}

#[test]
fn the_longest_prefix_is_taken_in_full() {
    for (keys, expected) in [
        (&[("home/u", "home"), ("home/u/work", "work")][..], "work.example"),
        (&[("home/u/work/foo", "foo"), ("home/u/work", "work")], "foo.example"),
        (&[("home/u/work/foo/", "slash"), ("home/u", "home")], "slash.example"),
        (&[("home/u/work/foo/sub", "sub"), ("home/u/work/fo", "fo")], "default.example"),
        (&[("home/u/work/foobar", "foobar")], "default.example"),
        (&[("", "top")], "top.example"),
        (&[], "default.example"),
    ] {
        let world = World::new();
        world.write(DEFAULT, &marked("default"));
        projects(&world, keys);
        assert_eq!(mark(&world), expected, "{keys:?}");
    }
}

#[test]
fn links_are_followed_on_both_sides() {
    let mut world = World::new();
    projects(&world, &[("link/foo", "foo")]);
    world.link("link", &world.root.join("home/u/work"));
    assert_eq!(mark(&world), "foo.example");
    world.places.workspace = world.root.join("link/foo");
    assert_eq!(mark(&world), "foo.example");
}

#[test]
fn a_key_that_an_agent_may_have_led_here_is_not_believed() {
    let world = World::new();
    let there = |name: &str| world.root.join("home/u/work").join(name);
    projects(
        &world,
        &[("home/u/work/foo", "foo"), ("home/u/work/other/sub", "sub"), ("home/u/work/loop", "loop")],
    );
    // An agent in `other` has put these links in place of directories.
    world.link("home/u/work/other/sub", &there("foo"));
    world.link("home/u/work/loop", &there("loop"));
    assert_eq!(mark(&world), "foo.example");
    // The entry through the link would apply: that is an error, and no other settings are used instead.
    projects(&world, &[("home/u/work", "work"), ("home/u/work/other/sub", "sub")]);
    let said = world.discover().unwrap_err().to_string();
    assert!(said.contains("which an agent may have made") && said.contains("work/other/sub"), "{said}");
    projects(&world, &[("home/u/work/foo", "foo"), ("home/u/work/other", "other")]);
    assert_eq!(mark(&world), "foo.example");
}

#[test]
fn a_key_in_the_workspace_says_nothing_of_it_whatever_it_leads_to() {
    let mut world = World::new();
    projects(&world, &[("home/u/work", "work"), ("home/u/work/foo/sub", "sub")]);
    for target in [".", "..", "../../work"] {
        let _old = std::fs::remove_file(world.root.join("home/u/work/foo/sub"));
        world.link("home/u/work/foo/sub", Path::new(target));
        assert_eq!(mark(&world), "work.example", "{target}");
    }
    // A session that starts at that path means that key.
    let _old = std::fs::remove_file(world.root.join("home/u/work/foo/sub"));
    world.link("home/u/work/foo/sub", Path::new("."));
    world.places.workspace = world.root.join("home/u/work/foo/sub");
    assert!(world.discover().is_err());
}

#[test]
fn a_linked_agent_directory_works() {
    let world = World::new();
    let moved = world.root.join("elsewhere");
    std::fs::rename(world.root.join("home/u/.pi"), &moved).unwrap();
    world.link("home/u/.pi", &moved);
    world.write("elsewhere/agent/sandbox/default.json", &marked("moved"));
    assert_eq!(mark(&world), "moved.example");
}

#[test]
fn another_agent_directory_is_honoured() {
    let mut world = World::new();
    world.write(DEFAULT, &marked("usual"));
    world.write("agent/sandbox/default.json", &marked("other"));
    world.places.agent_directory = world.root.join("agent");
    assert_eq!(mark(&world), "other.example");
}

#[test]
fn a_named_file_stands_in_for_the_users() {
    let mut world = World::new();
    world.write(DEFAULT, &marked("default"));
    projects(&world, &[("home/u/work/foo", "foo")]);
    world.places.settings = Some(world.write("named.json", &marked("named")));
    assert_eq!(mark(&world), "named.example");
    world.places.settings = Some(world.root.join("missing.json"));
    assert!(matches!(world.discover(), Err(ConfigError::Missing { .. })));
}

#[test]
fn a_broken_file_never_falls_back() {
    let good = marked("good");
    let absolute = |text: &str| text.to_owned();
    for (path, text, expected) in [
        (
            DEFAULT,
            absolute("{"),
            "line 1, column 2: expected a key in double quotes, found the end of the file",
        ),
        (DEFAULT, absolute(""), "the file is empty"),
        (PROJECTS, absolute("[]"), "has to be an object"),
        (PROJECTS, format!("{{\"relative\": {good}}}"), "a project is named by its absolute path"),
        (PROJECTS, format!("{{\"~/work\": {good}}}"), "a project is named by its absolute path"),
        (PROJECTS, format!("{{\"/\": {good}, \"//\": {good}}}"), "it is the same directory as `/`"),
        (PROJECTS, absolute("{\"/\": {\"netwrk\": {}}}"), "unknown key `netwrk`, did you mean `network`?"),
        ("etc/portcullis/settings.json", absolute("{\"enabled\": true}"), "this file can only tighten"),
        (PROJECT_FILE, absolute("{\"enabled\": false}"), "this file can only tighten"),
    ] {
        let world = World::new();
        world.write(DEFAULT, &good);
        world.write(path, &text);
        let said = world.discover().unwrap_err().to_string();
        assert!(said.contains(expected), "{path}: {said}");
    }
}

#[test]
fn what_is_no_readable_file_is_an_error() {
    let world = World::new();
    world.link(DEFAULT, Path::new("nowhere"));
    assert!(matches!(world.discover(), Err(ConfigError::Unusable { .. })));

    let world = World::new();
    std::fs::remove_dir_all(world.root.join("home/u/.pi")).unwrap();
    world.link("home/u/.pi", Path::new("/nowhere/at/all"));
    assert!(matches!(world.discover(), Err(ConfigError::Unusable { .. })));

    let world = World::new();
    std::fs::create_dir(world.root.join(DEFAULT)).unwrap();
    assert!(matches!(world.discover(), Err(ConfigError::Read { .. })));

    let world = World::new();
    world.write("home/u/.pi/agent/sandbox/x", "");
    std::fs::remove_dir_all(world.root.join("home/u/.pi/agent/sandbox")).unwrap();
    world.write("home/u/.pi/agent/sandbox", "a file");
    assert!(matches!(world.discover(), Err(ConfigError::Read { .. })));

    let world = World::new();
    std::fs::write(world.root.join(DEFAULT), [0xff, 0xfe]).unwrap();
    assert!(matches!(world.discover(), Err(ConfigError::Unusable { .. })));

    let world = World::new();
    world.write(DEFAULT, &format!("{}{}", marked("x"), " ".repeat(1024 * 1024)));
    let Err(ConfigError::Read { source, .. }) = world.discover() else { panic!("a huge file was read") };
    assert_eq!(source.to_string(), "it is larger than 1 MiB");
}

#[test]
fn a_named_pipe_does_not_hold_the_host() {
    let world = World::new();
    let pipe = world.root.join(DEFAULT);
    let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(status.success());
    let Err(ConfigError::Read { source, .. }) = world.discover() else { panic!("a pipe was read") };
    assert_eq!(source.to_string(), "it is no plain file");
}

#[test]
fn a_project_can_only_tighten() {
    let fine = r#"{ "network": { "deniedDomains": ["a.example"], "strictAllowlist": true },
        "filesystem": { "denyRead": ["secret"], "denyWrite": ["."] }, "limits": { "processes": 5 },
        "environment": { "drop": ["A_*"] } }"#;
    let world = World::new();
    world.write(PROJECT_FILE, fine);
    let found = world.discover().unwrap();
    assert_eq!(found.layers.iter().map(|layer| layer.layer).collect::<Vec<_>>(), [Layer::Project]);

    for loosening in [
        r#"{ "enabled": true }"#,
        r#"{ "network": { "allowedDomains": [] } }"#,
        r#"{ "filesystem": { "allowRead": ["/"] } }"#,
        r#"{ "filesystem": { "allowWrite": ["/"] } }"#,
        r#"{ "policies": [{ "use": "workspace" }] }"#,
        r#"{ "combine": "first" }"#,
        r#"{ "environment": { "keep": ["A"] } }"#,
        r#"{ "environment": { "set": { "A": "b" } } }"#,
        r#"{ "ask": { "timeoutMs": 5000 } }"#,
    ] {
        world.write(PROJECT_FILE, loosening);
        let said = world.discover().unwrap_err().to_string();
        assert!(said.contains("this file can only tighten"), "{loosening}: {said}");
    }
}

#[test]
fn a_project_file_cannot_lead_out_of_the_project() {
    let world = World::new();
    let outside = world.write("home/u/private.json", "{\"token\": 1}");
    world.link(PROJECT_FILE, &outside);
    let said = world.discover().unwrap_err().to_string();
    assert!(said.contains("lead out of the project") && !said.contains("token"), "{said}");
}

#[test]
fn a_machine_names_rooted_paths() {
    let world = World::new();
    world.write("etc/portcullis/settings.json", r#"{ "filesystem": { "denyRead": ["x"] } }"#);
    assert!(world.discover().unwrap_err().to_string().contains("starts with `/` or `~`"));
}
