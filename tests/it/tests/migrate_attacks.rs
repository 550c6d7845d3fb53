//! Attacks on `portcullis migrate`: a project that its agent may have written, and files that change meanwhile.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::{Value, json};

as_each_user!(
    a_projects_file_opens_nothing_and_keeps_the_users_denials,
    nothing_is_taken_over_for_a_whole_home,
    no_link_of_a_project_is_written_through,
    agents_write_no_extension_that_was_taken_out,
    what_pi_wrote_since_is_kept,
    every_host_of_old_settings_is_not_carried,
    files_that_are_no_settings,
    files_without_end,
    lists_without_end,
    names_that_control_a_terminal,
    links_of_the_user_stay_links,
);

const FAILED: i32 = 1;
const ASK: i32 = 10;
const DENY: i32 = 20;

fn migrate(scene: &Scene, words: &[&str]) -> Result<Finished> {
    scene.portcullis(&[&["migrate"], words].concat())
}

fn check(scene: &Scene, words: &[&str], code: i32) -> Result<()> {
    scene.portcullis(&[&["check"], words].concat())?.ended_with(code)?;
    Ok(())
}

/// The control is the same list as bosun writes it, which opens its directory.
fn a_projects_file_opens_nothing_and_keeps_the_users_denials(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.project().join("config.toml");
    let default = json!({
        "network": { "allowedDomains": [], "deniedDomains": ["evil.test"] },
        "filesystem": { "denyRead": ["/home", "~/private"], "allowRead": ["."], "allowWrite": ["."],
            "denyWrite": ["~/kept"] }
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &default.to_string())?;
    let outside = scene.outside().join("x").display().to_string();
    for attack in [
        "[a]\nallow_read = ['.']\n[sandbox]\nallow_write = ['/']\n",
        "[sandbox]\nallow_write = '/'\n",
        "[sandbox]\nallow_write = [['/']]\nallow_read = ['/nix/../']\n",
        "[sandbox]\nallow_write = ['work/../../..']\n",
        "[sandbox]\nallow_write = []\n[sandbox.more]\nallow_write = ['/']\n",
    ] {
        scene.write(&file, attack)?;
        let said = migrate(&scene, &["--from", "bosun", "--apply", "--replace"])?.ended_with(0)?;
        ensure!(said.stdout.contains("not carried"), "{attack}: {said:#?}");
        let opened = scene.portcullis(&["check", "write", &outside])?;
        ensure!(opened.code() == ASK || opened.code() == DENY, "{attack}: {opened:#?}");
    }
    scene.write(&file, "[sandbox]\nallow_write = ['work']\ndeny_read = ['.env']\n")?;
    migrate(&scene, &["--from", "bosun", "--apply", "--replace"])?.ended_with(0)?;
    check(&scene, &["write", "work/a"], 0)?;
    check(&scene, &["read", "~/private/a"], DENY)?;
    check(&scene, &["write", "~/kept/a"], DENY)?;
    check(&scene, &["connect", "evil.test:443"], DENY)?;
    // A list that names a directory of the project, which the agent has made a link.
    fs::remove_dir_all(scene.project().join("work")).ok();
    symlink(scene.outside(), scene.project().join("work"))?;
    let through = scene.portcullis(&["check", "write", &outside])?;
    ensure!(through.code() == ASK || through.code() == DENY, "{through:#?}");
    Ok(())
}

fn nothing_is_taken_over_for_a_whole_home(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join("config.toml"), "[sandbox]\nallow_write = ['.']\n")?;
    let mut command = scene.portcullis_command(&["migrate", "--apply"])?;
    let said = Finished::run(command.current_dir(scene.home()))?.ended_with(FAILED)?;
    ensure!(said.stdout.contains("would decide about every project"), "{said:#?}");
    ensure!(!scene.home().join(".pi/agent/sandbox/projects.json").exists());
    Ok(())
}

fn no_link_of_a_project_is_written_through(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = scene.project().join(".pi");
    scene.write(&own.join("sandbox.json"), r#"{ "filesystem": { "denyWrite": ["*.lock"] } }"#)?;
    let target = scene.home().join("profile");
    symlink(&target, own.join("portcullis.json"))?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    ensure!(said.stderr.contains("no plain file") || said.stderr.contains("link"), "{said:#?}");
    ensure!(!target.exists());
    migrate(&scene, &["--undo"])?;
    ensure!(own.join("portcullis.json").is_symlink(), "it is not ours to remove");
    // The control: without the link it is written.
    fs::remove_file(own.join("portcullis.json"))?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    check(&scene, &["write", "a.lock"], DENY)
}

/// An old extension lies where no agent writes, also when the home is the project, or it would come back as the agent's.
fn agents_write_no_extension_that_was_taken_out(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let extensions = scene.home().join(".pi/agent/extensions");
    scene.write(&extensions.join("old/package.json"), r#"{ "name": "@oddsjam/pi-sandbox" }"#)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    let aside = extensions.join(".old.before-portcullis");
    ensure!(aside.join("package.json").is_file() && !extensions.join("old").exists());
    let index = aside.join("index.ts").display().to_string();
    let mut command = scene.portcullis_command(&["check", "write", &index])?;
    Finished::run(command.current_dir(scene.home()))?.ended_with(DENY)?;
    migrate(&scene, &["--undo"])?.ended_with(0)?;
    ensure!(extensions.join("old/package.json").is_file() && !aside.exists());
    Ok(())
}

fn what_pi_wrote_since_is_kept(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/settings.json");
    scene.write(&settings, r#"{ "packages": ["npm:other", "npm:@sysid/pi-sandbox"] }"#)?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    // pi writes its settings, and an agent the copy, if it may write there.
    scene.write(&settings, r#"{ "theme": "dark", "packages": ["npm:other"] }"#)?;
    let copy = settings.with_extension("json.before-portcullis");
    scene.write(&copy, r#"{ "extensions": ["/tmp/evil.ts"] }"#)?;
    migrate(&scene, &["--undo"])?.ended_with(0)?;
    let now: Value = serde_json::from_slice(&fs::read(&settings)?)?;
    ensure!(now == json!({ "theme": "dark", "packages": ["npm:other", "npm:@sysid/pi-sandbox"] }), "{now}");
    Ok(())
}

fn every_host_of_old_settings_is_not_carried(user: User) -> Result<()> {
    for file in [".pi/agent/extensions/sandbox.json", ".pi/agent/sandbox.json"] {
        let scene = Scene::new(user)?;
        scene.write(&scene.home().join(file), r#"{ "network": { "allowedDomains": ["*", "a.test"] } }"#)?;
        let said = migrate(&scene, &["--apply"])?.ended_with(0)?;
        ensure!(said.stdout.contains("not carried") && said.stdout.contains("\"*\""), "{file}: {said:#?}");
        check(&scene, &["connect", "b.test:443"], ASK)?;
        check(&scene, &["connect", "a.test:443"], 0)?;
    }
    Ok(())
}

/// None of them hangs, and none is read beyond its limit.
fn files_that_are_no_settings(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    fs::create_dir_all(project.join(".pi"))?;
    scene.user().own(&project.join(".pi"))?;
    let pipe = std::process::Command::new("mkfifo").arg(project.join(".pi/settings.json")).status()?;
    ensure!(pipe.success());
    symlink("/dev/zero", project.join("AGENTS.md"))?;
    fs::write(project.join("config.toml"), "x".repeat(2 << 20))?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    scene.write(
        &scene.home().join(".pi/agent/extensions/sandbox.json"),
        &format!("[{}", "[".repeat(100_000)),
    )?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    ensure!(said.stdout.contains("correct it, or move it away"), "{said:#?}");
    Ok(())
}

/// A file of many GiB on a disk that has no room for it. The control is the same file with settings in it.
fn endless(scene: &Scene, file: &Path) -> Result<()> {
    scene.write(file, "{}")?;
    Ok(fs::File::create(file)?.set_len(1 << 40)?)
}

/// No file is read beyond its limit: neither old settings, nor the files to be written, nor those of pi.
fn files_without_end(user: User) -> Result<()> {
    const DENIES: &str = r#"{ "filesystem": { "denyWrite": ["*.lock"] } }"#;
    for (name, is_of_project) in [
        (".pi/portcullis.json", true),
        (".pi/sandbox.json", true),
        (".pi/agent/sandbox/default.json", false),
        (".pi/agent/extensions/sandbox.json", false),
    ] {
        let scene = Scene::new(user)?;
        scene.write(&scene.project().join(".pi/sandbox.json"), DENIES)?;
        scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), "{}")?;
        let file = if is_of_project { scene.project().join(name) } else { scene.home().join(name) };
        endless(&scene, &file)?;
        let said = migrate(&scene, &["--from", "sysid", "--apply", "--replace"])?.ended_with(FAILED)?;
        ensure!(format!("{said:?}").contains("larger than 1 MiB"), "{name}: {said:#?}");
        ensure!(file.metadata()?.len() == 1 << 40, "{name}");
        fs::remove_file(&file)?;
        migrate(&scene, &["--from", "sysid", "--apply", "--replace"])?.ended_with(0)?;
    }
    // pi's own files are only looked into.
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), "{}")?;
    for name in
        ["settings.json", "extensions/x/package.json", "extensions/x/index.ts", "prompts/x.md", "AGENTS.md"]
    {
        endless(&scene, &scene.home().join(".pi/agent").join(name))?;
    }
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    Ok(())
}

/// An agent may have written a list that takes hours to convert and to compare.
fn lists_without_end(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let list = |count: usize| {
        let items: Vec<String> = (0..count).map(|number| format!("'f{number}.x'")).collect();
        format!("[sandbox]\ndeny_read = [{}]\n", items.join(","))
    };
    let begin = std::time::Instant::now();
    scene.write(&scene.project().join("config.toml"), &list(30_000))?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    ensure!(said.stdout.contains("more than 1000 entries"), "{said:#?}");
    scene.portcullis(&["doctor"])?;
    // Several lists count together, since each entry is compared with each other one.
    let several = ["deny_read", "allow_write", "deny_write"].map(|key| list(400).replace("deny_read", key));
    let several = several.join("").replace("[sandbox]\n", "");
    scene.write(&scene.project().join("config.toml"), &format!("[sandbox]\n{several}"))?;
    let said = migrate(&scene, &["--apply"])?.ended_with(FAILED)?;
    ensure!(said.stdout.contains("more than 1000 entries"), "{said:#?}");
    scene.write(&scene.project().join("config.toml"), &list(300))?;
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    check(&scene, &["read", "f299.x"], DENY)?;
    ensure!(begin.elapsed() < std::time::Duration::from_secs(120), "{:?}", begin.elapsed());
    Ok(())
}

/// Names in files of a project are shown, and must not write to the user's terminal.
fn names_that_control_a_terminal(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let evil = "git:github.com/zackify/pi-sandbox\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}";
    let settings = json!({ "packages": [evil], "extensions": [evil] }).to_string();
    scene.write(&scene.project().join(".pi/settings.json"), &settings)?;
    scene.write(
        &scene.project().join("config.toml"),
        "[sandbox]\ndeny_read = [\"a\\u001b]2J.x\"]\nallow_write = [\"/\\u001b[2J\"]\n",
    )?;
    for words in [&["migrate"][..], &["migrate", "--apply"], &["config", "show"], &["doctor"]] {
        let said = scene.portcullis(words)?;
        let all = format!("{}{}", said.stdout, said.stderr);
        ensure!(!all.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{words:?}: {all:?}");
        ensure!(words == ["config", "show"] || all.contains("zackify"), "control: {words:?}: {all}");
    }
    Ok(())
}

/// People keep settings and extensions in a directory of their own, behind links.
fn links_of_the_user_stay_links(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (agent, own) = (scene.home().join(".pi/agent"), scene.home().join("dotfiles"));
    scene.write(&own.join("old/package.json"), r#"{ "name": "@oddsjam/pi-sandbox" }"#)?;
    scene.write(&own.join("settings.json"), r#"{ "packages": ["npm:@sysid/pi-sandbox"] }"#)?;
    fs::create_dir_all(agent.join("extensions"))?;
    for directory in [scene.home().join(".pi"), agent.clone(), agent.join("extensions")] {
        scene.user().own(&directory)?;
    }
    let links = [("extensions/old", "old"), ("settings.json", "settings.json")];
    for (name, target) in links {
        symlink(own.join(target), agent.join(name))?;
        scene.user().own(&agent.join(name))?;
    }
    migrate(&scene, &["--apply"])?.ended_with(0)?;
    ensure!(agent.join("settings.json").is_symlink() && !agent.join("extensions/old").is_symlink());
    ensure!(!fs::read_to_string(own.join("settings.json"))?.contains("sysid"));
    ensure!(own.join("old/package.json").is_file(), "the user's own directory stays");
    migrate(&scene, &["--undo"])?.ended_with(0)?;
    for (name, target) in links {
        ensure!(fs::read_link(agent.join(name))? == own.join(target), "{name}");
    }
    ensure!(fs::read_to_string(own.join("settings.json"))?.contains("sysid"));
    Ok(())
}
