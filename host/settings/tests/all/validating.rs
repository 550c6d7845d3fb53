//! Validation reports all mistakes of a file at once.

use std::path::Path;

use portcullis_settings::{Checked, RealDisk, validate, validate_all};
use portcullis_settings_format::{FileKind, Layer, Settings, Tightening};

use crate::world::{World, marked};

fn mistakes(checked: &Checked) -> Vec<String> {
    let file = format!("reading settings `{}`: ", checked.file.display());
    checked.mistakes.iter().map(|error| error.to_string().replace(&file, "")).collect()
}

const MISTAKES: &str = r#"{
  "enabeld": true,
  "network": { "allowedDomains": ["http://x.example"], "deniedDomains": [], "filterRequest": {} },
  "filesystem": { "denyRead": [], "allowWrite": "all" },
  "limits": { "processes": 0 }
}"#;

#[test]
fn all_mistakes_in_the_order_of_the_file() {
    let world = World::new();
    let file = world.write("x.json", MISTAKES);
    let found = mistakes(&validate(&file, FileKind::Settings, &RealDisk));
    let expected = [
        "line 2, column 3: unknown key `enabeld`, did you mean `enabled`?",
        "line 3, column 35: `network.allowedDomains[0]`: ",
        "line 3, column 94: `network.filterRequest` is refused: ",
        "line 4, column 49: `filesystem.allowWrite` has to be a list, each item a path, found text",
        "line 5, column 28: `limits.processes` has to be a whole number from 1 to 4194304, found a number",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn reading_stops_at_one_of_them() {
    let world = World::new();
    let file = world.write("x.json", MISTAKES);
    let all = validate(&file, FileKind::Settings, &RealDisk).mistakes;
    let first = Settings::parse(MISTAKES, &file).unwrap_err().to_string();
    assert!(all.iter().any(|one| one.to_string() == first), "{first}");
}

#[test]
fn each_kind_by_its_rules() {
    let world = World::new();
    let layer = r#"{ "filesystem": { "denyRead": ["a"] } }"#;
    let projects = format!(r#"{{ "a": {0}, "/b": {{ "x": 1 }}, "/c": {0}, "/c/": {0} }}"#, marked("m"));
    let cases: [(&str, FileKind, &str, usize); 9] = [
        ("built-in", FileKind::Settings, portcullis_settings_format::BUILT_IN, 0),
        ("layer as settings", FileKind::Settings, layer, 0),
        ("layer", FileKind::Tightening(Layer::Project), layer, 0),
        ("relative for the machine", FileKind::Tightening(Layer::Machine), layer, 1),
        ("settings as layer", FileKind::Tightening(Layer::Project), portcullis_settings_format::BUILT_IN, 1),
        ("projects", FileKind::Projects, &projects, 3),
        ("no object", FileKind::Projects, "[]", 1),
        ("no JSON", FileKind::Settings, "{,}", 1),
        ("empty", FileKind::Settings, "", 1),
    ];
    for (name, kind, text, count) in cases {
        let file = world.write("x.json", text);
        let found = mistakes(&validate(&file, kind, &RealDisk));
        assert_eq!(found.len(), count, "{name}: {found:#?}");
    }
    let missing = validate(Path::new("/nothing/here.json"), FileKind::Settings, &RealDisk);
    assert_eq!((missing.mistakes.len(), missing.text), (1, None));
}

#[test]
fn kinds_by_name() {
    for (name, kind) in [
        ("/a/projects.json", FileKind::Projects),
        ("/a/.pi/portcullis.json", FileKind::Tightening(Layer::Project)),
        ("/a/default.json", FileKind::Settings),
        ("/a/team.json", FileKind::Settings),
    ] {
        assert_eq!(FileKind::from_name(Path::new(name)), kind, "{name}");
    }
}

#[test]
fn files_that_do_not_hold_here_are_checked_too() {
    let world = World::new();
    assert!(validate_all(&world.places, &RealDisk).is_empty());
    let key = world.places.workspace.display();
    let projects = format!(r#"{{ "{key}": {0}, "/elsewhere": {{ "x": 1 }} }}"#, marked("m"));
    world.write("home/u/.pi/agent/sandbox/projects.json", &projects);
    world.write("home/u/.pi/agent/sandbox/default.json", "{");
    // This file chooses the layout, so no settings apply until it can be read.
    let error = world.resolve().unwrap_err().to_string();
    assert!(error.contains("default.json"), "{error}");
    let checked = validate_all(&world.places, &RealDisk);
    let counts: Vec<_> = checked.iter().map(|file| file.mistakes.len()).collect();
    assert_eq!(counts, [1, 1], "{checked:#?}");
}

#[test]
fn what_a_link_of_the_project_leads_to_is_not_shown() {
    let world = World::new();
    let secret = world.write("home/u/.ssh/id", "hunter2");
    world.link("home/u/work/foo/.pi/portcullis.json", &secret);
    let checked = validate_all(&world.places, &RealDisk);
    assert_eq!(checked.len(), 1);
    assert_eq!((checked[0].mistakes.len(), checked[0].text.as_ref()), (1, None));
    assert!(!format!("{checked:?}").contains("hunter2"));
}

/// Validation finds a mistake exactly where reading fails.
#[test]
fn reading_and_validating_agree() {
    for text in [portcullis_settings_format::BUILT_IN, MISTAKES, "{}", "[]", &marked("x")] {
        let world = World::new();
        let file = world.write("x.json", text);
        let valid = validate(&file, FileKind::Settings, &RealDisk).mistakes.is_empty();
        assert_eq!(valid, Settings::parse(text, &file).is_ok(), "{text}");
        let layer = FileKind::Tightening(Layer::Project);
        let valid = validate(&file, layer, &RealDisk).mistakes.is_empty();
        assert_eq!(valid, Tightening::parse(text, &file, Layer::Project).is_ok(), "{text}");
    }
}

#[test]
fn only_rules_that_can_be_lifted_are_and_only_by_the_user() {
    let world = World::new();
    let lifting = |id: &str| format!(r#"{{ "protections": {{ "lift": ["{id}"] }} }}"#);
    let whole = |id: &str| {
        let inner = r#""network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] }"#;
        lifting(id).replacen('{', &format!("{{ {inner},"), 1)
    };
    let check = |text: &str, kind: FileKind, expected: &str| {
        let found = mistakes(&validate(&world.write("x.json", text), kind, &RealDisk));
        assert!(expected.is_empty() == found.is_empty(), "{text}: {found:?}");
        assert!(found.iter().all(|found| found.contains(expected)), "{text}: {found:?}");
    };
    check(&whole("host.git-config"), FileKind::Settings, "");
    check(&whole("host.git-confg"), FileKind::Settings, "did you mean `host.git-config`?");
    for id in
        ["host.portcullis", "host.agent-settings", "host.agent-directory", "host.project-agent-settings"]
    {
        check(&whole(id), FileKind::Settings, "is not known here");
    }
    for layer in [Layer::Project, Layer::Machine] {
        check(&lifting("host.git-config"), FileKind::Tightening(layer), "`protections`");
    }
}
