//! `config show`, `config validate` and `config path`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User};
use serde_json::{Value, json};

use super::verbs::{SETTINGS, json_of};

as_each_user!(
    what_was_changed_is_shown_alone,
    config_show_names_every_line,
    config_validate_tells_every_mistake,
    a_policy_that_a_session_would_refuse_is_told,
    config_path_leads_to_the_file,
);

const BAD: i32 = 1;

fn what_was_changed_is_shown_alone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let told = scene.portcullis(&["config", "show", "--changed"])?.ended_with(0)?;
    ensure!(told.stdout.contains("no setting differs from its default"), "{told:#?}");
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&settings, SETTINGS)?;
    let changed = json_of(&scene.portcullis(&["config", "show", "--changed", "--json"])?.ended_with(0)?)?;
    let all = json_of(&scene.portcullis(&["config", "show", "--json"])?.ended_with(0)?)?;
    let values = |told: &Value| told.get("values").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(0 < values(&changed) && values(&changed) < values(&all), "{changed:#}");
    let told = scene.portcullis(&["config", "show", "--changed"])?.ended_with(0)?;
    ensure!(told.stdout.contains("a.example") && told.stdout.contains("default.json:"), "{told:#?}");
    Ok(())
}

fn config_show_names_every_line(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let built_in = json_of(&scene.portcullis(&["config", "show", "--json"])?)?;
    ensure!(built_in.pointer("/source/kind") == Some(&json!("builtIn")), "{built_in:#}");

    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    let layer = "{ \"filesystem\": { \"denyWrite\": [\"vendor\"] },\n  \"limits\": { \"processes\": 50 } }";
    scene.write(&scene.project().join(".pi/portcullis.json"), layer)?;
    let told = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    let line = |parts: &[&str]| told.stdout.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    for parts in [
        &["network.allowedDomains", "a.example", "default.json:2"],
        &["~/.ssh", "explicit deny", "default.json:4"],
        &["~ ", "closed unless a rule allows it", "default.json:4"],
        &["vendor", "explicit deny", "portcullis.json:1"],
        &["limits.processes", "500", "overruled"],
        &["", "50 ", "portcullis.json:2"],
        &["combine", "strictest", "default"],
        &["ripgrep", "default.json:7", "starts no helper program"],
        &["default.json:5", "`*.pem` holds in the working directory only", ""],
        &["settings", "default.json", "no project entry applies"],
    ] {
        ensure!(line(parts), "no line with {parts:?} in\n{}", told.stdout);
    }
    let report = json_of(&scene.portcullis(&["config", "show", "--json"])?)?;
    let values = report.get("values").and_then(Value::as_array).context("values")?;
    let of = |value: &Value| value.get("field") == Some(&json!("limits.processes"));
    let standings: Vec<_> =
        values.iter().filter(|value| of(value)).filter_map(|value| value.get("standing")).collect();
    ensure!(standings == [&json!("overruled"), &json!("inForce")], "{standings:?}");
    Ok(())
}

fn config_validate_tells_every_mistake(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    let file = scene.project().join("team.json");
    scene.write(&file, SETTINGS)?;
    scene.portcullis(&["config", "validate", "team.json"])?.ended_with(0)?;
    scene.portcullis(&["config", "validate", "--kind", "project", "team.json"])?.ended_with(BAD)?;

    scene.write(&file, &SETTINGS.replace("\"limits\"", "\"limts\"").replace("\"~/.ssh\"", "7"))?;
    let told = scene.portcullis(&["config", "validate", "team.json"])?.ended_with(BAD)?;
    for part in ["team.json:4:18: ", "team.json:8:3: ", "did you mean `limits`?"] {
        ensure!(told.stdout.contains(part), "no `{part}` in {told:#?}");
    }
    let told = scene.portcullis(&["config", "validate", "--json", "team.json"])?.ended_with(BAD)?;
    let told: Value = serde_json::from_str(&told.stdout)?;
    let mistakes = told.pointer("/files/0/mistakes").and_then(Value::as_array).context("mistakes")?;
    ensure!(mistakes.len() == 2 && told.get("valid") == Some(&json!(false)), "{told:#}");
    let last = mistakes.last().context("a mistake")?;
    ensure!(
        last.get("suggestion") == Some(&json!("limits")) && last.get("line") == Some(&json!(8)),
        "{last}"
    );

    // A file that does not apply in this directory is checked as well.
    let projects = scene.home().join(".pi/agent/sandbox/projects.json");
    scene.write(&projects, "{ \"/elsewhere\": { \"x\": 1 } }")?;
    scene.portcullis(&["config", "validate"])?.ended_with(BAD)?;
    scene.portcullis(&["config", "validate", "missing.json"])?.ended_with(BAD)?;

    let schema = json_of(&scene.portcullis(&["config", "schema"])?)?;
    let published = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.schema.json");
    ensure!(schema == serde_json::from_str::<Value>(&fs::read_to_string(published)?)?);
    let layer = json_of(&scene.portcullis(&["config", "schema", "--kind", "project"])?)?;
    ensure!(layer.pointer("/properties/enabled").is_none() && layer != schema, "{layer:#}");
    Ok(())
}

/// Verbs that show settings report what a session would refuse, so that the user learns it before starting one.
fn a_policy_that_a_session_would_refuse_is_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    let with = |policies: &str| {
        SETTINGS.replace("\"limits\": { \"processes\": 500 }", &format!("\"policies\": [{policies}]"))
    };
    for (policy, why) in [
        (r#"{ "use": "acme:guard" }"#, "`acme:guard` is not in"),
        (r#"{ "use": "gaurd" }"#, "there is no policy `gaurd`"),
        (r#"{ "use": "git-guard", "config": { "nonsense": 1 } }"#, "nonsense"),
    ] {
        scene.write(&settings, &with(policy))?;
        scene.portcullis(&["check", "read", "x"])?.ended_with(BAD)?;
        let shown = scene.portcullis(&["config", "show"])?.ended_with(BAD)?;
        ensure!(
            shown.stdout.contains("cannot be used") && shown.stdout.contains(why),
            "{policy}: {shown:#?}"
        );
        ensure!(shown.stderr.contains("Tools are blocked until you fix this"), "{policy}: {shown:#?}");
        let told = scene.portcullis(&["config", "validate"])?.ended_with(BAD)?;
        ensure!(told.stdout.contains("default.json:8:") && told.stdout.contains(why), "{policy}: {told:#?}");
        // The same for a file that is named on the command line.
        scene.write(&scene.project().join("team.json"), &with(policy))?;
        let told = scene.portcullis(&["config", "validate", "team.json"])?.ended_with(BAD)?;
        ensure!(told.stdout.contains("team.json:8:") && told.stdout.contains(why), "{policy}: {told:#?}");
    }
    scene.write(&settings, &with(r#"{ "use": "git-guard", "config": { "protected": ["main"] } }"#))?;
    scene.portcullis(&["config", "show"])?.ended_with(0)?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    Ok(())
}

fn config_path_leads_to_the_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let default = scene.home().join(".pi/agent/sandbox/default.json");
    let path = |arguments: &[&str]| -> Result<String> {
        let words: Vec<&str> = ["config", "path"].iter().chain(arguments).copied().collect();
        Ok(scene.portcullis(&words)?.ended_with(0)?.stdout)
    };
    let expected = format!("{}\n", default.display());
    let missing = scene.portcullis(&["config", "path"])?.ended_with(0)?;
    ensure!(
        missing.stdout == expected && missing.stderr.contains("there is no such file yet"),
        "{missing:#?}"
    );
    // Also when the file must be repaired before anything else works.
    scene.write(&default, "{ nonsense")?;
    ensure!(path(&[])? == expected);
    scene.portcullis(&["config", "show"])?.ended_with(BAD)?;
    scene.write(&default, SETTINGS)?;
    let there = scene.portcullis(&["config", "path"])?.ended_with(0)?;
    ensure!(there.stdout == expected && there.stderr.is_empty(), "{there:#?}");
    let all = path(&["--all"])?;
    ensure!(all.lines().any(|line| line.starts_with("in use") && line.contains("default.json")), "{all}");
    ensure!(all.lines().any(|line| line.starts_with("missing") && line.contains("projects.json")), "{all}");
    Ok(())
}
