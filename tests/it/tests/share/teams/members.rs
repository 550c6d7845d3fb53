//! Fifty members: what is mandated arrives, a bad version blocks nothing, and a registry that is down changes nothing.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Registry, Scene, Serve, User};

use super::super::author::{Build, FIRST_FILE, SECOND_FILE};
use super::super::reads;
use super::publisher::{Team, text};
use super::{BAD, in_force, printed, stays};

as_each_user!(a_machine_reports, keys_rotate_and_versions_are_taken_back, without_a_network);

/// The number of members.
const MEMBERS: usize = 50;
/// Settings of a member who allows what the team's pack denies.
const LOOSE: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowRead": ["/"], "allowWrite": ["."], "denyWrite": [] },
  "policies": [{ "use": "workspace" }],
  "combine": "first"
}"#;

/// Runs `portcullis` for a member. All share the cache of compiled policies.
fn run(member: &Scene, cache: &std::path::Path, words: &[&str]) -> Result<Finished> {
    Finished::run(member.portcullis_command(words)?.env("XDG_CACHE_HOME", cache))
}

#[test]
fn fifty_members() -> Result<()> {
    let registry = Registry::start()?;
    let team = Team::new(User::Caller, &registry)?;
    team.require_pack(&Build::new("0.1.0"), "")?;
    team.write("settings.json", r#"{ "filesystem": { "denyRead": ["/srv/secret"] } }"#)?;
    team.publish()?;
    let cache = tempfile::tempdir()?;
    let members = (0..MEMBERS).map(|_| Scene::new(User::Caller)).collect::<Result<Vec<_>>>()?;
    for member in &members {
        let words = ["team", "join", &team.repository, "--root", &team.root];
        run(member, cache.path(), &words)?.ended_with(0)?;
    }
    let all_have = |version: u64| -> Result<()> {
        for member in &members {
            ensure!(in_force(member)? == version, "a member does not have bundle {version}");
        }
        Ok(())
    };
    all_have(1)?;

    // One of them tries to loosen what the team requires.
    let member = members.first().context("a member")?;
    for name in [FIRST_FILE, SECOND_FILE] {
        member.write(&member.project().join(name), "the text of it")?;
    }
    member.write(&member.home().join(".pi/agent/sandbox/default.json"), LOOSE)?;
    let mut host = Serve::greeted(member, &[], Interface::Absent)?;
    ensure!(reads(&mut host, member, SECOND_FILE)?, "control: other files are read; {}", host.errors());
    ensure!(!reads(&mut host, member, FIRST_FILE)?, "the pack of the team denies its file");
    let denied = member.portcullis(&["check", "--json", "read", "/srv/secret/key"])?.ended_with(20)?;
    ensure!(denied.stdout.contains("team-settings"), "{denied:#?}");
    let shown = member.portcullis(&["config", "show", "--json"])?;
    ensure!(shown.stdout.contains("team-acme-deny-one"), "the pack is shown: {shown:#?}");

    // Version 2 needs a newer program, version 3 does not.
    team.write("bundle.toml", "minimum-program = \"99.0.0\"\n[[pack]]\nfile = \"guard-0.1.0.wasm\"\n")?;
    team.publish()?;
    for member in &members {
        let told = run(member, cache.path(), &["team", "update"])?.ended_with(BAD)?;
        ensure!(told.stdout.contains("needs Portcullis 99.0.0"), "{told:#?}");
    }
    all_have(1)?;
    let newcomer = Scene::new(User::Caller)?;
    team.join(&newcomer)?.ended_with(BAD)?;
    ensure!(in_force(&newcomer)? == 1, "the newest one that it can use");
    team.require_pack(&Build::new("0.2.0").denying(SECOND_FILE), "")?;
    team.publish()?;
    for member in members.iter().chain([&newcomer]) {
        run(member, cache.path(), &["team", "update"])?.ended_with(0)?;
    }
    all_have(3)?;
    ensure!(!reads(&mut host, member, SECOND_FILE)?, "the new pack is in force in a running session");
    ensure!(reads(&mut host, member, FIRST_FILE)?, "and the old one is not");
    host.close()?;

    // The registry is gone, and what is in force stays in force.
    drop(registry);
    stays(member, 3, "asking `127.0.0.1")?;
    let mut host = Serve::greeted(member, &[], Interface::Absent)?;
    ensure!(!reads(&mut host, member, SECOND_FILE)? && reads(&mut host, member, FIRST_FILE)?, "as before");
    host.close()?;
    all_have(3)
}

fn a_machine_reports(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let team = Team::new(user, &registry)?;
    team.publish()?;
    let member = team.member(user)?;
    let file = member.home().join("report.json");
    let name = file.to_str().context("a path is text")?;
    let told = member.portcullis(&["team", "report", name, "--json"])?.ended_with(0)?;
    let report = printed(&told)?;
    ensure!(fs::read_to_string(&file)? == text(&report, "report")?, "the file is the signed text");
    let inner: serde_json::Value = serde_json::from_str(&text(&report, "report")?)?;
    ensure!(
        inner.get("team").is_some_and(|name| name == "acme")
            && inner.get("bundle").is_some_and(|bundle| bundle == 1),
        "{inner}"
    );
    // Any ssh verifies it, with the key of the machine, which stays the same.
    member.write(&member.home().join("machines"), &format!("machine {}\n", text(&report, "key")?))?;
    let verify = |text: &str| -> Result<Finished> {
        let script = format!(
            "printf %s '{text}' | ssh-keygen -Y verify -f ~/machines -I machine -n portcullis-report -s ~/report.json.sig"
        );
        let mut command = user.command("sh".as_ref());
        member.enter(&mut command);
        Finished::run(command.args(["-c", &script]))
    };
    verify(&text(&report, "report")?)?.ended_with(0)?;
    verify(&text(&report, "report")?.replace("acme", "evil"))?.ended_with(255)?;
    let again = printed(&member.portcullis(&["team", "report", "--json"])?.ended_with(0)?)?;
    ensure!(text(&again, "key")? == text(&report, "key")?);
    Ok(())
}

fn keys_rotate_and_versions_are_taken_back(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let team = Team::new(user, &registry)?;
    let folder = team.folder();
    team.publish()?;
    let member = team.member(user)?;

    // Version 2 is bad, and is taken back: version 3 has the content of version 1.
    team.write("settings.json", r#"{ "limits": { "processes": 1 } }"#)?;
    team.publish()?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(&member)? == 2);
    team.run(&["team", "yank", &folder, "2", "--reason", "no build works"])?.ended_with(0)?;
    team.publish()?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    let status = printed(&member.portcullis(&["team", "status", "--json"])?.ended_with(0)?)?;
    ensure!(status.pointer("/inForce/bundle").is_some_and(|version| *version == 3), "{status}");
    ensure!(status.pointer("/yanked/0/reason").is_some_and(|reason| reason == "no build works"), "{status}");
    ensure!(
        status.pointer("/settings").is_some_and(|settings| *settings == serde_json::json!({})),
        "{status}"
    );

    // Bob leaves. The old keys and the new ones sign the next root, and a bundle of Bob's is refused afterwards.
    let bob = fingerprint(&team, "bob")?;
    let told = team
        .run(&["team", "rotate", &folder, "--remove", &bob, "--key", &team.key("ann")])?
        .ended_with(BAD)?;
    ensure!(told.stdout.contains("root 2") && told.stdout.contains("needs 1 more"), "{told:#?}");
    team.write("settings.json", r#"{ "limits": { "processes": 500 } }"#)?;
    let told = team.publish_with(&folder, &["ann", "bob"], &[])?.ended_with(BAD)?;
    ensure!(told.stdout.contains("bundle 4") && told.stdout.contains("nothing was published"), "{told:#?}");
    team.publish_with(&folder, &["carol"], &[])?.ended_with(0)?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(&member)? == 4);
    // The root that a new member gets may be either.
    team.member(user)?;
    Ok(())
}

fn fingerprint(team: &Team, name: &str) -> Result<String> {
    let told = Finished::run(
        std::process::Command::new("ssh-keygen").args(["-lf", &format!("{}.pub", team.key(name))]),
    )?;
    Ok(told.stdout.split_whitespace().nth(1).context("a fingerprint")?.to_owned())
}

fn without_a_network(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let team = Team::new(user, &registry)?;
    team.require_pack(&Build::new("0.1.0"), "")?;
    team.publish()?;
    let online = team.member(user)?;
    let offline = team.member(user)?;
    team.write("settings.json", r#"{ "limits": { "processes": 500 } }"#)?;
    let old = online.at("old.tar").display().to_string();
    online.portcullis(&["team", "save", &old])?.ended_with(0)?;
    team.publish()?;
    online.portcullis(&["team", "update"])?.ended_with(0)?;
    let new = online.at("new.tar").display().to_string();
    online.portcullis(&["team", "save", &new])?.ended_with(0)?;
    drop(registry);
    offline.portcullis(&["team", "load", &new])?.ended_with(0)?;
    ensure!(in_force(&offline)? == 2);
    let told = offline.portcullis(&["team", "load", &old])?.ended_with(BAD)?;
    ensure!(told.stderr.contains("an old one is offered again") && in_force(&offline)? == 2, "{told:#?}");
    offline.portcullis(&["team", "leave"])?.ended_with(0)?;
    offline.portcullis(&["team", "status"])?.ended_with(BAD)?;
    Ok(())
}
