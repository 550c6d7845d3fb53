//! The policy chain and how its verdicts are combined.

use std::path::Path;

use portcullis_settings_format::{BUILT_IN, PolicyMode, PolicySource, Settings};

use crate::world::World;

fn parse(more: &str) -> Result<Settings, String> {
    let text = BUILT_IN.replacen('{', &format!("{{ {more},"), 1);
    Settings::parse(&text, Path::new("x.json")).map_err(|error| error.to_string())
}

#[test]
fn chains() {
    let settings = parse(
        r#""policies": [{ "use": "workspace" }, { "use": "./team.wasm", "mode": "observe", "config": { "a": 1 } },
            { "use": "guard", "name": "second" }], "combine": "workspace | second""#,
    )
    .unwrap();
    let names: Vec<&str> = settings.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["workspace", "team", "second"]);
    assert_eq!(settings.policies[1].mode, PolicyMode::Observe);
    assert_eq!(settings.policies[1].config["a"], 1);
    assert_eq!(settings.policies[2].source, PolicySource::Shipped("guard".to_owned()));
    assert_eq!(
        parse("\"enabled\": true").err(),
        Some(
            "reading settings `x.json`: line 2, column 3: the key `enabled` is there twice, remove one"
                .to_owned()
        )
    );
}

#[test]
fn what_policies_are_given_has_a_place() {
    let world = World::new();
    let text = r#"{
  "network": { "allowedDomains": ["a.test", "localhost:80"], "deniedDomains": [], "strictAllowlist": true },
  "filesystem": { "denyRead": [], "allowRead": ["/opt", "/opt"], "allowWrite": ["."], "denyWrite": [] },
  "policies": [{ "use": "workspace" }, { "use": "guard", "config":
    { "a": [1, { "b/c": true }] } }, { "use": "./x.wasm", "configFile": "x.toml" }]
}"#;
    let file = world.write("home/u/.pi/agent/sandbox/default.json", text);
    world.write("home/u/.pi/agent/sandbox/x.toml", "");
    world.write("home/u/.pi/agent/sandbox/x.wasm", "");
    let resolved = world.resolve().unwrap();
    let at = |place: &str| format!("{}:{place}", file.display());
    for (pointer, place) in [
        ("/allowedDomains/0", "2:35 (network.allowedDomains[0])"),
        ("/allowedDomains/1", "2:45 (network.allowedDomains[1])"),
        ("/strictAllowlist", "2:102 (network.strictAllowlist)"),
        // A duplicate entry gives no item of its own, and `localhost` gives two.
        ("/allowedDomains/2", "2:45 (network.allowedDomains[1])"),
        ("/allowRead/0", "3:49 (filesystem.allowRead[0])"),
        ("/allowRead/1", "3:81 (filesystem.allowWrite[0])"),
        ("/allowWrite/0", "3:81 (filesystem.allowWrite[0])"),
    ] {
        assert_eq!(resolved.lists_at.words(pointer), at(place), "{pointer}");
    }
    assert_eq!(resolved.allow_read.len(), 2);
    let [_, guard, file_of_its_own] = resolved.policies_at.as_slice() else { panic!("three policies") };
    assert_eq!(guard.origin.as_ref().unwrap().to_string(), at("4:49 (policies[1].use)"));
    assert_eq!(guard.sites.words("/a/0"), at("5:13 (policies[1].config.a[0])"));
    assert_eq!(guard.sites.words("/a/1/b~1c"), at(r#"5:25 (policies[1].config.a[1]["b/c"])"#));
    assert_eq!(guard.sites.words("/other"), "`other`, a default of the policy's own");
    let words = file_of_its_own.sites.words("/keep/0");
    assert!(words.contains("policies[2].configFile") && words.ends_with("`keep[0]` in that file"), "{words}");
}

#[test]
fn refused_chains() {
    for (more, expected) in [
        (r#""policies": []"#, "an empty chain decides nothing"),
        (r#""policies": [{ "use": "a" }, { "use": "a" }]"#, "a policy called `a` is there already"),
        (r#""policies": [{ "use": "oci:registry/x" }]"#, "is not on this machine"),
        (r#""policies": [{ "use": "https://x/y.wasm" }]"#, "is not on this machine"),
        (
            r#""policies": [{ "use": "a:b" }, { "use": "./a-b.wasm" }]"#,
            "a policy called `a-b` is there already",
        ),
        (r#""policies": [{ "use": "a:../b" }]"#, "neither the name of a shipped policy nor `namespace:name`"),
        (r#""policies": [{ "use": "a/b" }]"#, "neither the name of a shipped policy nor"),
        (r#""policies": [{ "use": "~x/y.wasm" }]"#, "write the home directory in full"),
        (r#""policies": [{ "use": "./ä.wasm" }]"#, "give it one with `name`"),
        (r#""policies": [{ "use": "a", "name": "a|b" }]"#, "letters, digits"),
        (r#""policies": [{ "config": {} }]"#, "the key `policies[].use` is missing"),
        (r#""policies": [{ "use": "a", "configFile": "x.yaml" }]"#, "ends in `.toml` or `.json`"),
        (r#""policies": [{ "use": "a", "config": {}, "configFile": "x.toml" }]"#, "either `config` or"),
        (r#""combine": "workspace &""#, "expected the name of a policy"),
        (r#""environment": { "set": { "A=B": "x" } }"#, "`A=B` is no name of an environment variable"),
        (r#""combine": "other""#, "`other` is not the name of a policy"),
        (r#""policies": [{ "use": "a" }, { "use": "b" }], "combine": "a""#, "the policy `b` is not in it"),
    ] {
        let said = parse(more).unwrap_err();
        assert!(said.contains(expected), "{more}: {said}");
    }
}

#[test]
fn files_start_from_the_settings_file() {
    let world = World::new();
    let text = BUILT_IN.replacen(
        '{',
        r#"{ "policies": [{ "use": "policies/a.wasm" }, { "use": "~/b.wasm" }, { "use": "/c.wasm" }],"#,
        1,
    );
    world.write("home/u/.pi/agent/sandbox/default.json", &text);
    let resolved = world.resolve().unwrap();
    let files: Vec<_> = resolved.policies.iter().map(|policy| policy.source.clone()).collect();
    let home = &world.places.home;
    assert_eq!(
        files,
        [
            PolicySource::File(home.join(".pi/agent/sandbox/policies/a.wasm")),
            PolicySource::File(home.join("b.wasm")),
            PolicySource::File("/c.wasm".into()),
        ]
    );
    // Files that decide about the agent are read-only for it, wherever they lie.
    let fixed = |path: &Path| resolved.deny_write().any(|rule| rule.pattern.matcher().matches(path));
    assert!(fixed(&home.join("b.wasm")) && fixed(Path::new("/c.wasm")) && !fixed(Path::new("/d.wasm")));
}

#[test]
fn a_configuration_in_a_file_of_its_own() {
    let world = World::new();
    let settings = |file: &str| {
        let more = format!(r#"{{ "policies": [{{ "use": "bosun", "configFile": "{file}" }}],"#);
        world.write("home/u/.pi/agent/sandbox/default.json", &BUILT_IN.replacen('{', &more, 1));
        world.resolve()
    };
    world.write("home/u/lists.toml", "# places\nallow_write = ['./out']\n[more]\na = 1\n");
    let resolved = settings("~/lists.toml").unwrap();
    let policy = &resolved.policies[0];
    assert_eq!(policy.config["allow_write"][0], "./out");
    assert_eq!(policy.config["more"]["a"], 1);
    // The file is read-only for the agent, wherever it lies.
    let file = world.places.home.join("lists.toml");
    assert!(resolved.deny_write().any(|rule| rule.pattern.matcher().matches(&file)));
    world.write("home/u/.pi/agent/sandbox/lists.json", r#"{ "allow_write": ["./out"] }"#);
    assert_eq!(settings("lists.json").unwrap().policies[0].config["allow_write"][0], "./out");

    // A file that cannot be read is an error, never an empty configuration.
    world.write("home/u/broken.toml", "allow_write = [");
    for (file, said) in [("~/broken.toml", "broken.toml"), ("~/missing.toml", "missing.toml")] {
        let error = settings(file).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_text_is_read_and_its_file_is_protected() {
    let world = World::new();
    let settings = |policy: &str| {
        let more = format!(r#"{{ "policies": [{policy}],"#);
        world.write("home/u/.pi/agent/sandbox/default.json", &BUILT_IN.replacen('{', &more, 1));
        world.resolve()
    };
    let named =
        |file: &str| settings(&format!(r#"{{ "use": "cedar", "config": {{ "policyFile": "{file}" }} }}"#));
    world.write("home/u/team.cedar", "forbid (principal, action, resource);");
    let resolved = named("~/team.cedar").unwrap();
    let config = &resolved.policies[0].config;
    assert_eq!(config["policyFile"], "~/team.cedar");
    assert_eq!(config["policyText"], "forbid (principal, action, resource);");
    let file = world.places.home.join("team.cedar");
    assert!(resolved.deny_write().any(|rule| rule.pattern.matcher().matches(&file)));
    world.write("home/u/.pi/agent/sandbox/near.cedar", "");
    assert_eq!(named("near.cedar").unwrap().policies[0].config["policyText"], "");

    // A text that cannot be read is an error, never an empty one.
    world.write("home/u/large.cedar", &" ".repeat(256 * 1024 + 1));
    for (file, said) in [
        ("~/large.cedar", "larger than 256 KiB"),
        ("~/missing.cedar", "missing.cedar"),
        ("~/.pi", "no plain file"),
    ] {
        let error = named(file).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let both = settings(r#"{ "use": "cedar", "config": { "policyFile": "near.cedar", "policyText": "" } }"#);
    assert!(both.unwrap_err().to_string().contains("either `policyFile` or `policyText`"));
    // Only names in the settings are known when files are protected.
    world.write("home/u/text.toml", "policyFile = 'near.cedar'");
    let hidden = settings(r#"{ "use": "cedar", "configFile": "~/text.toml" }"#);
    assert!(hidden.unwrap_err().to_string().contains("belongs in `config`"));
}
