//! The report on the origin of every value.

use portcullis_decision::profile::Limits;
use portcullis_settings::{RealDisk, Report, Setting, Standing, discover, report, resolve};
use portcullis_settings_format::{FIELDS, Layer, Settings, Shape, Status};
use serde_json::{Value, json};

use crate::world::World;

const DEFAULT: &str = r#"{
  "$schema": "settings.schema.json",
  "network": {
    "allowedDomains": ["a.example"],
    "deniedDomains": ["10.0.0.0/8"], "strictAllowlist": false, "deniedDomainReasons": { "10.0.0.0/8": "x" }
  },
  "filesystem": {
    "denyRead": ["~/.ssh", "~"],
    "allowWrite": ["."], "denyWrite": []
  },
  "limits": { "processes": 100,
    "wallMs": 1000 },
  "environment": { "set": { "A_B": "x" } },
  "ripgrep": { "command": "rg" }
}"#;

fn reported(world: &World) -> Report {
    let found = discover(&world.places, &RealDisk).unwrap();
    let defaults = Limits { wall_ms: Some(3_600_000), ..Limits::default() };
    report(&found, &resolve(&found, &world.places, &RealDisk).unwrap(), &defaults)
}

fn settings_of<'a>(report: &'a Report, field: &str) -> Vec<&'a Setting> {
    report.values.iter().filter(|value| value.field == field).collect()
}

/// Returns value, standing and line of each setting of a field.
fn values(report: &Report, field: &str) -> Vec<(Value, Standing, u32)> {
    let line = |setting: &&Setting| setting.origin.as_ref().map_or(0, |origin| origin.at.line);
    settings_of(report, field).iter().map(|one| (one.value.clone(), one.standing, line(one))).collect()
}

#[test]
fn every_value_has_its_line() {
    let world = World::new();
    let file = world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
    let report = reported(&world);
    assert_eq!((report.source.kind, report.source.file.as_ref()), ("default", Some(&file)));
    for (field, expected) in [
        ("network.allowedDomains", vec![(json!("a.example"), Standing::InForce, 4)]),
        ("network.deniedDomains", vec![(json!("10.0.0.0/8"), Standing::InForce, 5)]),
        ("network.deniedDomainReasons", vec![(json!({ "10.0.0.0/8": "x" }), Standing::InForce, 5)]),
        (
            "filesystem.denyRead",
            vec![(json!("~/.ssh"), Standing::ExplicitDeny, 8), (json!("~"), Standing::ClosedRegion, 8)],
        ),
        ("filesystem.denyWrite", vec![(json!([]), Standing::InForce, 9)]),
        ("filesystem.allowRead", vec![(json!([]), Standing::Default, 0)]),
        ("limits.wallMs", vec![(json!(1000), Standing::InForce, 12)]),
        ("limits.cpuMs", vec![(Value::Null, Standing::Default, 0)]),
        ("environment.set", vec![(json!({ "A_B": "x" }), Standing::InForce, 13)]),
        ("enabled", vec![(json!(true), Standing::Default, 0)]),
    ] {
        assert_eq!(values(&report, field), expected, "{field}");
    }
    let pointers: Vec<_> = settings_of(&report, "network.deniedDomainReasons")[0]
        .origin
        .iter()
        .map(|at| at.pointer.as_str())
        .collect();
    assert_eq!(pointers, ["/network/deniedDomainReasons/10.0.0.0~18"]);
    // The object is named once, not also by each of its fields.
    let unused: Vec<_> = report.unused.iter().map(|one| (one.field, one.origin.at.line)).collect();
    assert_eq!(unused, [("$schema", 2), ("ripgrep", 14)]);
}

#[test]
fn the_strictest_layer_holds_and_the_others_are_told() {
    let world = World::new();
    world.write("home/u/.pi/agent/sandbox/default.json", DEFAULT);
    world.write(
        "home/u/work/foo/.pi/portcullis.json",
        r#"{ "network": { "strictAllowlist": true }, "limits": { "processes": 50, "wallMs": 5000 },
             "filesystem": { "denyWrite": ["vendor"] } }"#,
    );
    let report = reported(&world);
    let standings = |field: &str| -> Vec<(Layer, Standing)> {
        settings_of(&report, field).iter().map(|one| (one.layer, one.standing)).collect()
    };
    use Standing::{Default, ExplicitDeny, InForce, Overruled};
    for (field, expected) in [
        ("network.strictAllowlist", vec![(Layer::User, Overruled), (Layer::Project, InForce)]),
        ("limits.processes", vec![(Layer::User, Overruled), (Layer::Project, InForce)]),
        ("limits.wallMs", vec![(Layer::User, InForce), (Layer::Project, Overruled)]),
        ("filesystem.denyWrite", vec![(Layer::User, InForce), (Layer::Project, ExplicitDeny)]),
        ("environment.drop", vec![(Layer::User, Default)]),
    ] {
        assert_eq!(standings(field), expected, "{field}");
    }
}

/// If the user sets no limit, the host's default bounds a project and is the value in force.
#[test]
fn what_a_project_would_loosen_is_not_told_as_in_force() {
    use Standing::{Default, InForce, Overruled};
    let world = World::new();
    let project = |text: &str| world.write("home/u/work/foo/.pi/portcullis.json", text);
    let standings = |field: &str| -> Vec<(Layer, Standing)> {
        settings_of(&reported(&world), field).iter().map(|one| (one.layer, one.standing)).collect()
    };
    let (only_default, only_project) =
        (vec![(Layer::User, Default), (Layer::Project, Overruled)], vec![(Layer::Project, InForce)]);
    let limits = |wall: u32, budget: u32| {
        format!(
            r#"{{ "limits": {{ "wallMs": {wall}, "cpuMs": 900 }}, "network": {{ "uploadBudgetMib": {budget} }},
            "requiredTier": "namespaces" }}"#
        )
    };
    project(&limits(3_600_001, 257));
    assert_eq!(standings("limits.wallMs"), only_default);
    assert_eq!(standings("network.uploadBudgetMib"), only_default);
    assert_eq!(standings("requiredTier"), only_default);
    assert_eq!(standings("limits.cpuMs"), only_project, "the host has no limit of its own");
    project(&limits(3_600_000, 255));
    assert_eq!(standings("limits.wallMs"), only_project);
    assert_eq!(standings("network.uploadBudgetMib"), only_project);
    // Beside values of the user.
    let users = DEFAULT
        .replace("\"strictAllowlist\": false", "\"uploadBudgetMib\": 10")
        .replace("\"limits\"", "\"requiredTier\": \"landlock\", \"limits\"");
    world.write("home/u/.pi/agent/sandbox/default.json", &users);
    let users_holds = [(Layer::User, InForce), (Layer::Project, Overruled)];
    assert_eq!(standings("limits.wallMs"), users_holds);
    assert_eq!(standings("network.uploadBudgetMib"), users_holds);
    assert_eq!(standings("requiredTier"), [(Layer::User, Overruled), (Layer::Project, InForce)]);
}

#[test]
fn the_source_is_named() {
    let world = World::new();
    assert_eq!(reported(&world).source.kind, "builtIn");
    let closed = values(&reported(&world), "filesystem.denyRead");
    assert_eq!(closed[1], (json!("/home"), Standing::ClosedRegion, 5));
    let key = world.root.join("home/u/work").display().to_string();
    let built_in: Value = serde_json::from_str(portcullis_settings_format::BUILT_IN).unwrap();
    world.write("home/u/.pi/agent/sandbox/projects.json", &json!({ key.clone(): built_in }).to_string());
    let report = reported(&world);
    assert_eq!((report.source.kind, report.source.key), ("project", Some(key.clone())));
    let pointer = settings_of(&reported(&world), "enabled")[0].origin.as_ref().unwrap().pointer.clone();
    assert_eq!(pointer, format!("/{}/enabled", key.replace('/', "~1")));
}

/// The defaults in the report are those that decoding gives for missing fields.
#[test]
fn defaults_are_those_in_force() {
    let parse = |document: &Value| {
        let mut settings = Settings::parse(&document.to_string(), "x.json".as_ref()).unwrap();
        // Origins do not matter for the comparison.
        settings.policies.iter_mut().for_each(|policy| policy.origin = None);
        settings
    };
    let base = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] },
    });
    let world = World::new();
    world.write("home/u/.pi/agent/sandbox/default.json", &base.to_string());
    let report = reported(&world);
    let mut tried = 0;
    for setting in
        report.values.iter().filter(|one| one.standing == Standing::Default && !one.value.is_null())
    {
        let field = portcullis_settings_format::field(setting.field).unwrap();
        let value = match (field.shape, &setting.value) {
            (Shape::Objects, Value::Object(_)) => json!([setting.value]),
            (_, value) => value.clone(),
        };
        let mut document = base.clone();
        let mut at = &mut document;
        for key in setting.field.split('.') {
            at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
        }
        *at = value;
        assert_eq!(parse(&document), parse(&base), "{}", setting.field);
        tried += 1;
    }
    assert!(tried > 8, "{tried}");
    for field in FIELDS.iter().filter(|field| matches!(field.status, Status::Honoured)) {
        let shown = field.shape != Shape::Object && !field.name.contains("[]");
        assert_eq!(!settings_of(&report, field.name).is_empty(), shown, "{}", field.name);
    }
}
