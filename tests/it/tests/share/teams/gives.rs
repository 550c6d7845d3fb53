//! What a bundle gives to its members besides packs: presets and trusted publishers.

use anyhow::{Result, ensure};
use portcullis_it::{Registry, Scene, User};

use super::super::author::{Author, Build, FIRST_FILE, SECOND_FILE};
use super::super::{REFUSED, SETTINGS};
use super::in_force;
use super::publisher::Team;

as_each_user!(presets_can_be_named, publishers_are_trusted_and_revoked);

/// Exit codes of `check` for a request that is asked about, and for a denied one.
const ASKED: i32 = 10;
const DENIED: i32 = 20;
/// A preset of the team.
const PRESET: &str =
    "title   the team's registry\nhost    packages.acme.test:443    packages of the company\n";
/// Settings of a member who names it.
const NAMED: &str = r#"{ "presets": ["acme-packages"] }"#;

fn presets_can_be_named(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let team = Team::new(user, &registry)?;
    team.write("presets/acme-packages.preset", PRESET)?;
    team.publish()?;
    let member = Scene::new(user)?;
    let connect = |host: &str| member.portcullis(&["check", "connect", &format!("{host}:443")]);

    member.write(&member.home().join(".pi/agent/sandbox/default.json"), NAMED)?;
    connect("packages.acme.test")?.ended_with(ASKED)?;
    team.join(&member)?.ended_with(0)?;
    connect("packages.acme.test")?.ended_with(0)?;
    connect("other.acme.test")?.ended_with(ASKED)?;
    let listed = member.portcullis(&["presets"])?.ended_with(0)?;
    ensure!(listed.stdout.contains("acme-packages"), "{listed:#?}");
    // A bundle only tightens: who does not name the preset gets none of its hosts.
    member.write(&member.home().join(".pi/agent/sandbox/default.json"), "{}")?;
    connect("packages.acme.test")?.ended_with(ASKED)?;
    Ok(())
}

fn publishers_are_trusted_and_revoked(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.publish(&Build::new("0.1.0"))?;
    let key = author.public_key()?;
    let publisher = format!(
        "[[publisher]]\nname = \"acme\"\nnamespaces = [\"acme\"]\nregistry = \"{}/packs\"\n\
         [[key]]\npublisher = \"acme\"\nkey = \"{key}\"\n",
        registry.host()
    );
    let team = Team::new(user, &registry)?;
    team.write("trust.toml", &publisher)?;
    team.publish()?;
    let member = Scene::new(user)?;
    let add = &["policy", "add", "acme:deny-one"];

    let told = member.portcullis(add)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("no publisher of"), "{told:#?}");
    team.join(&member)?.ended_with(0)?;
    member.portcullis(add)?.ended_with(0)?;
    for name in [FIRST_FILE, SECOND_FILE] {
        member.write(&member.project().join(name), "the text of it")?;
    }
    member.write(&member.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    member.portcullis(&["check", "read", FIRST_FILE])?.ended_with(DENIED)?;
    member.portcullis(&["check", "read", SECOND_FILE])?.ended_with(0)?;

    // The key is stolen. Members that have the next bundle use none of its packs, even if they trust it themselves.
    team.write("trust.toml", &format!("{publisher}[[revoked]]\nkey = \"{key}\"\nreason = \"stolen\"\n"))?;
    team.publish()?;
    let place = format!("{}/packs", registry.host());
    let trust = ["policy", "trust", "publisher", "acme", "--key", &key, "--registry", &place];
    member.portcullis(&trust)?.ended_with(0)?;
    member.portcullis(&["check", "read", SECOND_FILE])?.ended_with(0)?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(&member)? == 2);
    let told = member.portcullis(&["check", "read", SECOND_FILE])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("was revoked: stolen"), "{told:#?}");
    let told = member.portcullis(add)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("was revoked: stolen"), "{told:#?}");
    Ok(())
}
