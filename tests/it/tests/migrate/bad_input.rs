//! `portcullis migrate` with half-migrated homes, files with mistakes, two sandboxes at once, and homes that cannot be
//! written.

use std::fs;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::json;

use super::{FAILED, SECOND, check, files, first_extension, migrate, told};

as_each_user!(two_at_once, what_stops_it_changes_nothing, half_of_it_was_done, a_home_that_cannot_be_written,);

fn two_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    first_extension(&scene)?;
    scene.write(&agent.join("extensions/sandbox.json"), SECOND)?;
    scene.write(&agent.join("sandbox.json"), r#"{ "network": { "allowedDomains": ["only.test"] } }"#)?;
    let before = files(&scene)?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    for part in ["of `sysid` or of `pi-sandbox`", "--from", "nothing was changed"] {
        ensure!(said.stdout.contains(part), "no `{part}` in {said:#?}");
    }
    ensure!(files(&scene)? == before);
    migrate(&scene, &["--from", "pi-sandbox", "--apply"])?.ended_with(0)?;
    check(&scene, &["connect", "only.test:443"], 0)?;
    ensure!(agent.join("extensions/zackify-pi-sandbox").exists(), "it was not meant");
    // An extension of nobody known, with the same flag, is named and left alone.
    scene.write(
        &agent.join("extensions/own.ts"),
        r#"export default (pi) => pi.registerFlag("no-sandbox", {});"#,
    )?;
    let said = migrate(&scene, &["--from", "oddsjam", "--apply"])?.ended_with(0)?;
    ensure!(said.stdout.contains("own.ts") && agent.join("extensions/own.ts").exists(), "{said:#?}");
    ensure!(!agent.join("extensions/zackify-pi-sandbox").exists());
    Ok(())
}

fn what_stops_it_changes_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    let old = agent.join("extensions/sandbox.json");
    scene.write(&agent.join("settings.json"), r#"{ "packages": ["npm:@sysid/pi-sandbox"] }"#)?;
    for (text, part) in [
        ("{ \"network\": ", "line 1, column"),
        ("{ \"enabled\": true, \"enabled\": false }", "line 1, column"),
    ] {
        scene.write(&old, text)?;
        let before = files(&scene)?;
        let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
        ensure!(said.stdout.contains(part) && said.stdout.contains("correct it"), "{said:#?}");
        ensure!(files(&scene)? == before, "{text}");
    }
    // Values that do not fit are left out and named; the rest is taken.
    scene.write(&old, &SECOND.replace("\"registry.npmjs.org\"", "\"*\", 7"))?;
    let default = agent.join("sandbox/default.json");
    scene.write(&default, "{ \"network\": { \"allowedDomains\": [\"mine.test\"] } }")?;
    let before = files(&scene)?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    ensure!(said.stdout.contains("is there already") && said.stdout.contains("--replace"), "{said:#?}");
    ensure!(files(&scene)? == before);
    let said = migrate(&scene, &["--apply", "--replace"])?.ended_with(0)?;
    ensure!(said.stdout.contains("not carried") && said.stdout.contains("\"*\""), "{said:#?}");
    ensure!(fs::read_to_string(agent.join("sandbox/default.json.before-portcullis"))?.contains("mine.test"));
    // What the user edits afterwards is not taken back.
    scene.write(&default, "{ \"network\": { \"allowedDomains\": [\"later.test\"] } }")?;
    let said = migrate(&scene, &["--undo"])?.ended_with(FAILED)?;
    ensure!(
        said.stdout.contains("has changed since") && fs::read_to_string(&default)?.contains("later.test"),
        "{said:#?}"
    );
    ensure!(fs::read_to_string(agent.join("settings.json"))?.contains("@sysid"), "the rest is as it was");
    Ok(())
}

fn half_of_it_was_done(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    scene.write(&agent.join("extensions/sandbox.json"), SECOND)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    // A second run finds nothing to write, and one after the old extension came back removes only that.
    let said = told(&scene, &["--apply"])?;
    ensure!(said.pointer("/sandboxes/0/writes") == Some(&json!([])), "{said:#}");
    scene.write(&agent.join("settings.json"), r#"{ "packages": ["npm:@sysid/pi-sandbox"] }"#)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    ensure!(!fs::read_to_string(agent.join("settings.json"))?.contains("sysid"));
    // The settings are gone, the extension is still there.
    fs::remove_file(agent.join("extensions/sandbox.json"))?;
    scene.write(&agent.join("settings.json"), r#"{ "packages": ["npm:@sysid/pi-sandbox"] }"#)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    migrate(&scene, &["--undo"])?;
    ensure!(!agent.join("sandbox/default.json").exists() && !agent.join("extensions/portcullis").exists());
    Ok(())
}

fn a_home_that_cannot_be_written(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let agent = scene.home().join(".pi/agent");
    scene.write(&agent.join("extensions/sandbox.json"), SECOND)?;
    let before = files(&scene)?;
    // For root only a file system that is mounted read-only is one.
    let home = scene.home().display().to_string();
    let script =
        format!("mount --bind '{home}' '{home}' && mount -o remount,bind,ro '{home}' && exec \"$@\"");
    let mut command = scene.user().command("unshare".as_ref());
    scene.enter(&mut command);
    command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", &script, "sh"]);
    command.arg(portcullis_it::portcullis(user)?).args(["migrate", "--apply"]);
    let said = Finished::run(&mut command)?.ended_with(FAILED)?;
    ensure!(
        said.stderr.contains("cannot be written") && said.stderr.contains("nothing was changed"),
        "{said:#?}"
    );
    ensure!(files(&scene)? == before);
    Ok(())
}
