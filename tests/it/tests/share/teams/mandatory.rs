//! A machine whose file makes the bundle mandatory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, say};
use portcullis_it::{Interface, Launch, PiVersion, Registry, Scene, Serve, User, script};

use super::super::author::{Build, FIRST_FILE, SECOND_FILE};
use super::super::reads;
use super::publisher::Team;
use super::{BAD, in_force, printed};

/// Mounts another directory over `/etc` for the program that it starts.
const WITH_ETC: &str = r#"mount --bind "$0" /etc && exec "$@""#;
/// Settings of a user who wants no sandbox, and whose policy allows everything that it can.
const OFF: &str = r#"{
  "enabled": false,
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowRead": ["/"], "allowWrite": ["."], "denyWrite": [] }
}"#;

/// A member on a machine with an `/etc` of its own.
struct Machine {
    scene: Scene,
    file: std::path::PathBuf,
    /// The words that start a program on it.
    through: Vec<&'static str>,
}

impl Machine {
    fn new(team: &Team) -> Result<Self> {
        let scene = Scene::new(User::Caller)?;
        let etc = scene.at("etc");
        Command::new("cp").args(["-a", "/etc"]).arg(&etc).output().context("copying `/etc`")?;
        let etc: &'static str = Box::leak(etc.display().to_string().into_boxed_str());
        let words: &'static [&'static str] =
            Box::leak(Box::new(["--mount", "--", "sh", "-c", WITH_ETC, etc]));
        let file = std::path::Path::new(etc).join("portcullis/team.toml");
        let through = std::iter::once("unshare").chain(words.iter().copied()).collect();
        let machine = Self { scene: scene.through("unshare", words), file, through };
        machine.requires(team, "")?;
        for name in [FIRST_FILE, SECOND_FILE] {
            machine.scene.write(&machine.scene.project().join(name), "the text of it")?;
        }
        Ok(machine)
    }

    /// Writes the machine's file.
    fn requires(&self, team: &Team, more: &str) -> Result<()> {
        let text = format!(
            "team = \"acme\"\nregistry = \"{}\"\nroot = \"{}\"\nmandatory = true\n{more}",
            team.repository, team.root
        );
        self.scene.write(&self.file, &text)
    }
}

#[test]
fn a_machine_makes_it_mandatory() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        // Only root can own the machine's file.
        eprintln!("not tested: this needs root");
        return Ok(());
    }
    let registry = Registry::start()?;
    let team = Team::new(User::Caller, &registry)?;
    team.require_pack(&Build::new("0.1.0"), "")?;
    team.publish()?;
    let machine = Machine::new(&team)?;
    let scene = &machine.scene;

    // Without a bundle everything is blocked; the session gets it in the background and opens by itself.
    nothing_is_decided(scene)?;
    let mut host = Serve::start(scene, &[], &[])?;
    let hello = host.hello(Interface::Absent);
    let greeted = host.succeed("hello", &hello)?;
    ensure!(greeted.to_string().contains("requires the bundle of the team `acme`"), "{greeted}");
    ensure!(!reads(&mut host, scene, SECOND_FILE)?, "nothing is read without the bundle");
    host.wait("status", |message| message.to_string().contains("# Sandbox"))?;
    ensure!(reads(&mut host, scene, SECOND_FILE)?, "the bundle has arrived: {}", host.errors());
    ensure!(!reads(&mut host, scene, FIRST_FILE)?, "and its pack denies its file");
    host.close()?;

    pi_keeps_the_sandbox(&machine, &team)?;
    the_user_cannot_loosen(&machine, &team)?;
    the_file_is_roots(&machine, &team)?;
    packs_are_staged(&machine, &team)
}

/// Without a bundle, decisions are refused.
fn nothing_is_decided(scene: &Scene) -> Result<()> {
    let told = scene.portcullis(&["check", "read", "x"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("portcullis team update"), "{told:#?}");
    Ok(())
}

/// Starts pi with `--no-sandbox` for each word of the machine's file. A file outside of the project says whether
/// there was a sandbox.
fn pi_keeps_the_sandbox(machine: &Machine, team: &Team) -> Result<()> {
    let scene = &machine.scene;
    for (word, is_off) in [("allow", true), ("log", true), ("forbid", false)] {
        machine.requires(team, &format!("no-sandbox = \"{word}\"\n"))?;
        let (inside, outside) = (scene.project().join(word), scene.outside().join(word));
        let script = script([
            bash(&format!("touch '{}'; touch '{}'; echo sum-$((40+2))", inside.display(), outside.display())),
            expecting("sum-42", say("done")),
        ]);
        let host = scene.host()?;
        let pi = machine.through.iter().map(OsString::from).chain([host.into(), "pi".into()]);
        let launch = Launch::guarded(scene, PiVersion::V1_5, &script)?.through(pi);
        let finished = launch.with(["--no-sandbox"]).print("go")?.ended_unattended()?;
        ensure!(inside.exists() && outside.exists() == is_off, "{word}: {finished:#?}");
        ensure!(
            is_off || finished.stderr.contains("forbids pi without the sandbox"),
            "{word}: {finished:#?}"
        );
    }
    let log = scene.portcullis(&["audit", "tail", "-n", "50", "--json"])?.ended_with(0)?;
    ensure!(log.stdout.contains("team.no-sandbox"), "{log:#?}");
    machine.requires(team, "")
}

fn the_user_cannot_loosen(machine: &Machine, team: &Team) -> Result<()> {
    let scene = &machine.scene;
    let told = scene.portcullis(&["team", "leave"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("cannot be left"), "{told:#?}");
    team.join(scene)?.ended_with(BAD)?;
    // `--no-sandbox` is free, then recorded, then forbidden.
    scene.portcullis(&["team", "unprotected"])?.ended_with(0)?;
    machine.requires(team, "no-sandbox = \"log\"\n")?;
    scene.portcullis(&["team", "unprotected"])?.ended_with(0)?;
    let log = scene.portcullis(&["audit", "tail", "-n", "50", "--json"])?.ended_with(0)?;
    ensure!(log.stdout.contains("team.no-sandbox"), "{log:#?}");
    machine.requires(team, "no-sandbox = \"forbid\"\npacks = [\"acme:deny-one\"]\n")?;
    let told = scene.portcullis(&["team", "unprotected"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("forbids pi without the sandbox"), "{told:#?}");
    // Nor do the settings or the client switch it off.
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), OFF)?;
    let mut host = Serve::start(scene, &[], &[])?;
    let mut hello = host.hello(Interface::Absent);
    hello.as_object_mut().context("an object")?.insert("sandbox".into(), "off".into());
    host.succeed("hello", &hello)?;
    ensure!(reads(&mut host, scene, SECOND_FILE)?, "the sandbox is on: {}", host.errors());
    ensure!(!reads(&mut host, scene, FIRST_FILE)?, "and the pack denies its file");
    host.close()?;
    // A bundle without the required pack, in place of the accepted one.
    machine.requires(team, "packs = [\"acme:other\"]\n")?;
    let told = scene.portcullis(&["check", "read", "x"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("has no pack `acme:other`"), "{told:#?}");
    machine.requires(team, "")?;
    // The accepted documents and packs cannot be forged.
    let held = scene.home().join(".pi/agent/sandbox/team/held.json");
    let text = fs::read_to_string(&held)?;
    scene.write(&held, &text.replace("deny-one", "deny-two"))?;
    let told = scene.portcullis(&["check", "read", "x"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("has signed other bytes"), "{told:#?}");
    scene.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(scene)? == 1, "an update repairs it");
    Ok(())
}

fn the_file_is_roots(machine: &Machine, team: &Team) -> Result<()> {
    machine.requires(team, "")?;
    fs::set_permissions(&machine.file, fs::Permissions::from_mode(0o666))?;
    let told = machine.scene.portcullis(&["team", "status"])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("chown root:"), "{told:#?}");
    machine.scene.portcullis(&["check", "read", "x"])?.ended_with(BAD)?;
    fs::set_permissions(&machine.file, fs::Permissions::from_mode(0o644))?;
    machine.scene.portcullis(&["team", "status"])?.ended_with(0)?;
    Ok(())
}

fn packs_are_staged(machine: &Machine, team: &Team) -> Result<()> {
    let scene = &machine.scene;
    let id = machine.file.with_file_name("../machine-id");
    let modes = |more: &str| -> Result<Vec<String>> {
        machine.requires(team, more)?;
        let mut modes = Vec::new();
        for number in 0..12 {
            scene.write(&id, &format!("{number:032x}\n"))?;
            let status = printed(&scene.portcullis(&["team", "status", "--json"])?.ended_with(0)?)?;
            let mode =
                status.pointer("/inForce/packs/0/mode").and_then(|mode| mode.as_str()).context("a mode")?;
            modes.push(mode.to_owned());
        }
        Ok(modes)
    };
    let all = |modes: &[String], wanted: &str| modes.iter().all(|mode| mode == wanted);
    ensure!(all(&modes("")?, "enforce") && all(&modes("stage = { enforce = 0 }\n")?, "observe"));
    let half = modes("stage = { enforce = 50, observe = 100 }\n")?;
    ensure!(half.contains(&"enforce".to_owned()) && half.contains(&"observe".to_owned()), "{half:?}");
    ensure!(half == modes("stage = { enforce = 50, observe = 100 }\n")?, "the same machines each time");
    fs::remove_file(scene.home().join(".pi/agent/sandbox/default.json"))?;
    // Where it is only observed, its denial is logged and does not count.
    machine.requires(team, "stage = { enforce = 0 }\n")?;
    let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
    ensure!(reads(&mut host, scene, FIRST_FILE)?, "{}", host.errors());
    host.close()?;
    let log = scene.portcullis(&["audit", "tail", "-n", "20", "--json"])?.ended_with(0)?;
    ensure!(log.stdout.contains("team-acme-deny-one"), "{log:#?}");
    Ok(())
}
