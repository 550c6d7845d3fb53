//! The standard attacks on update systems, against a real registry whose storage the attacker controls.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Registry, Scene, User};
use serde_json::Value;

use super::super::author::{Build, SECOND_FILE};
use super::publisher::Team;
use super::{BAD, in_force, stays};

as_each_user!(
    old_documents_come_back,
    time_stands_still,
    documents_of_different_sets,
    strangers_and_too_few_sign,
    endless_and_other_bytes,
);

/// The repository of the team, in the registry.
const REPOSITORY: &str = "acme/team";

/// Starts a registry and a team with a member that has bundle 1.
fn setting(user: User) -> Result<(Registry, Team, Scene)> {
    let registry = Registry::start()?;
    let team = Team::new(user, &registry)?;
    team.require_pack(&Build::new("0.1.0"), "")?;
    team.publish()?;
    let member = team.member(user)?;
    ensure!(in_force(&member)? == 1, "control: the first bundle is accepted");
    Ok((registry, team, member))
}

/// Publishes a version with another content.
fn change(team: &Team, processes: u32) -> Result<()> {
    team.write("settings.json", &format!("{{ \"limits\": {{ \"processes\": {processes} }} }}"))?;
    team.publish()
}

/// The control: the next honest version is accepted.
fn recovers(team: &Team, member: &Scene, version: u64) -> Result<()> {
    change(team, 700)?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(member)? == version, "control: version {version} is accepted");
    Ok(())
}

fn old_documents_come_back(user: User) -> Result<()> {
    let (registry, team, member) = setting(user)?;
    let timestamp = registry.tag(REPOSITORY, "timestamp");
    let old = fs::read(&timestamp)?;
    change(&team, 500)?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    let new = fs::read(&timestamp)?;
    fs::write(&timestamp, &old)?;
    stays(&member, 2, "an old one is offered again")?;
    // The status tells it too, until a check succeeds.
    let status = member.portcullis(&["team", "status"])?.ended_with(BAD)?;
    ensure!(status.stdout.contains("an old one is offered again"), "{status:#?}");
    fs::write(&timestamp, &new)?;
    recovers(&team, &member, 3)?;
    member.portcullis(&["team", "status"])?.ended_with(0)?;
    Ok(())
}

fn time_stands_still(user: User) -> Result<()> {
    let (_registry, team, member) = setting(user)?;
    let folder = team.folder();
    // A timestamp that has expired.
    team.publish_with(&folder, &[], &["--refresh"])?.ended_with(BAD)?;
    team.edit(&folder, "timestamp.json", |text| set(text, "/expiresAt", &1_600_000_000.into()))?;
    team.publish()?;
    stays(&member, 1, "timestamp expired")?;
    // A bundle that has expired, with a fresh timestamp.
    team.publish_with(&folder, &[], &["--renew"])?.ended_with(BAD)?;
    team.edit(&folder, "bundle-2.json", |text| set(text, "/expiresAt", &1_600_000_000.into()))?;
    name_newest(&team, &folder, "bundle-2.json")?;
    team.publish()?;
    stays(&member, 1, "bundle 2 expired")?;
    // A bundle that expires while it is in force.
    recovers(&team, &member, 3)
}

fn documents_of_different_sets(user: User) -> Result<()> {
    let (registry, team, member) = setting(user)?;
    let first = fs::read(registry.tag(REPOSITORY, "bundle-1"))?;
    change(&team, 500)?;
    fs::write(registry.tag(REPOSITORY, "bundle-2"), &first)?;
    stays(&member, 1, "bundle 2 has the digest")?;
    // A bundle in the place of the timestamp, a pack in the place of the bundle, and no bundle at all.
    let honest = fs::read(registry.tag(REPOSITORY, "timestamp"))?;
    fs::write(registry.tag(REPOSITORY, "timestamp"), &first)?;
    stays(&member, 1, "timestamp needs signatures").or_else(|_| stays(&member, 1, "this is a `bundle`"))?;
    fs::write(registry.tag(REPOSITORY, "timestamp"), &honest)?;
    let digest = digest_of(&team, "guard-0.1.0.wasm")?;
    fs::write(
        registry.tag(REPOSITORY, "bundle-2"),
        fs::read(registry.tag(REPOSITORY, &format!("pack-sha256-{digest}")))?,
    )?;
    stays(&member, 1, "has the parts `application/wasm`")?;
    fs::remove_file(registry.tag(REPOSITORY, "bundle-2"))?;
    stays(&member, 1, "bundle 2 is not there")?;
    recovers(&team, &member, 3)
}

fn strangers_and_too_few_sign(user: User) -> Result<()> {
    let (_registry, team, member) = setting(user)?;
    // A thief with write access to the registry, and keys of their own under the name of the team.
    let (evil, key) = (team.path("evil").display().to_string(), format!("{}.pub", team.key("thief")));
    team.run(&["team", "new", &evil, "--team", "acme", "--key", &key])?.ended_with(0)?;
    for more in [&[][..], &["--renew"], &["--renew"]] {
        team.publish_with(&evil, &["thief"], more)?.ended_with(0)?;
    }
    stays(&member, 1, "needs signatures of 2 keys of its role, and has 0")?;
    let newcomer = Scene::new(user)?;
    let told = team.join(&newcomer)?.ended_with(BAD)?;
    ensure!(
        told.stderr.contains("needs signatures") && told.stderr.contains("nothing was joined"),
        "{told:#?}"
    );
    newcomer.portcullis(&["team", "status"])?.ended_with(BAD)?;

    // A thief with one of the keys: a root of their own does not lower the threshold.
    let copy = team.copy("stolen")?;
    team.edit(&copy, "root-1.json", |text| text.replace("\"threshold\": 2", "\"threshold\": 1"))?;
    team.publish_with(&copy, &["ann"], &["--renew"])?.ended_with(0)?;
    stays(&member, 1, "needs signatures of 2 keys of its role, and has 1")?;
    // A next root that the old keys have not signed.
    let rotated = team.copy("rotated")?;
    let thief = format!("{}.pub", team.key("thief"));
    team.edit(&rotated, "root-1.json", |text| text.replace("\"threshold\": 2", "\"threshold\": 1"))?;
    team.run(&["team", "rotate", &rotated, "--add", &thief])?;
    team.publish_with(&rotated, &["ann", "thief"], &["--renew"])?.ended_with(0)?;
    stays(&member, 1, "by the keys of the old one, needs signatures of 2 keys")
}

fn endless_and_other_bytes(user: User) -> Result<()> {
    let (registry, team, member) = setting(user)?;
    team.require_pack(&Build::new("0.2.0").denying(SECOND_FILE), "")?;
    team.publish()?;
    // Other bytes of the same size, and many more bytes, for the pack.
    let pack = registry.blob(&digest_of(&team, "guard-0.2.0.wasm")?);
    let honest = fs::read(&pack)?;
    let mut flipped = honest.clone();
    if let Some(byte) = flipped.last_mut() {
        *byte ^= 1;
    }
    fs::write(&pack, &flipped)?;
    stays(&member, 1, "has the digest")?;
    fs::write(&pack, vec![0; 200 << 20])?;
    stays(&member, 1, "sent more than")?;
    fs::write(&pack, &honest)?;
    // Many more bytes for a document.
    let manifest = fs::read_to_string(registry.tag(REPOSITORY, "timestamp"))?;
    let manifest: Value = serde_json::from_slice(&fs::read(registry.blob(manifest.trim()))?)?;
    let document = manifest.pointer("/layers/0/digest").and_then(Value::as_str).context("a layer")?;
    let (blob, text) = (registry.blob(document), fs::read(registry.blob(document))?);
    fs::write(&blob, vec![b' '; 200 << 20])?;
    stays(&member, 1, "sent more than")?;
    fs::write(&blob, text)?;
    member.portcullis(&["team", "update"])?.ended_with(0)?;
    ensure!(in_force(&member)? == 2, "control: the honest bytes are accepted");
    Ok(())
}

/// Sets a value of a JSON text.
fn set(text: &str, pointer: &str, value: &Value) -> String {
    let mut document: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(place) = document.pointer_mut(pointer) {
        *place = value.clone();
    }
    document.to_string()
}

/// Makes the timestamp of a folder name a document that was changed.
fn name_newest(team: &Team, folder: &str, document: &str) -> Result<()> {
    let file = format!("{folder}/metadata/{document}");
    let (digest, size) = (sha256(&file)?, fs::metadata(&file)?.len());
    team.edit(folder, "timestamp.json", |text| {
        let text = set(text, "/bundle/digest", &format!("sha256:{digest}").into());
        set(&text, "/bundle/size", &size.into())
    })
}

fn digest_of(team: &Team, name: &str) -> Result<String> {
    sha256(&format!("{}/{name}", team.folder()))
}

fn sha256(file: &str) -> Result<String> {
    let told = Finished::run(std::process::Command::new("sha256sum").arg(file))?.ended_with(0)?;
    Ok(told.stdout.split_whitespace().next().context("a digest")?.to_owned())
}
