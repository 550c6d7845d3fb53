//! `portcullis credentials`: adding, listing, testing and removing, with servers that accept a credential or do not.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::signing::make_key;
use super::ssh::{OwnSsh, prepare};
use super::{SECRET, SOURCE};
use crate::network::PROGRAM;

as_each_user!(
    a_test_says_whether_the_server_accepts_a_credential,
    a_test_says_whether_ssh_gets_in_and_a_key_signs,
    entries_of_all_kinds_are_added_listed_and_removed,
    other_projects_and_settings_can_be_chosen,
    rules_for_pushes_that_stay_are_named,
);

fn credential(name: &str, host: &str, purpose: &str) -> Value {
    json!({ "name": name, "source": { "env": SOURCE }, "host": host, "form": "bearer", "for": [purpose] })
}

/// Makes an entry with keys of AWS, for one region or for all.
fn bucket(scene: &Scene, name: &str, region: &str) -> Result<Value> {
    let mut entry = super::aws::entry(scene, name)?;
    entry["for"] = json!(["GET /a"]);
    entry["regions"] = if region.is_empty() { json!([]) } else { json!([region]) };
    entry["variables"] = json!([]);
    Ok(entry)
}

fn write_settings(scene: &Scene, credentials: &Value) -> Result<()> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "credentials": credentials,
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

/// Runs the program outside, on a machine with servers.
fn verb(world: &World<'_>, scene: &Scene, (secret, path): (&str, &str), words: &[&str]) -> Result<Finished> {
    let mut command = world.command(&scene.host()?)?;
    let authority = scene.at("world").join("authority.pem");
    command.arg("credentials").args(words).env(SOURCE, secret).env("PATH", path);
    Finished::run(command.env("SSL_CERT_FILE", &authority))
}

/// Returns whether a credential works, and the sentence about it.
fn said(finished: &Finished, name: &str) -> Result<(Option<bool>, String)> {
    let all: Value = serde_json::from_str(&finished.stdout).with_context(|| format!("{finished:#?}"))?;
    let all = all.get("credentials").and_then(Value::as_array).context("a list")?;
    let one =
        all.iter().find(|one| one.get("name") == Some(&json!(name))).with_context(|| format!("{all:?}"))?;
    let text = one.get("text").and_then(Value::as_str).context("a sentence")?;
    Ok((one.get("works").and_then(Value::as_bool), text.to_owned()))
}

fn a_test_says_whether_the_server_accepts_a_credential(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let path = prepare(&scene, OwnSsh::default())?;
    let brokered = [
        credential("forge", "allowed.test:9443", "GET /wants"),
        credential("open", "allowed.test:9443", "GET /open/x"),
        credential("posting", "allowed.test:9443", "POST /mine/**"),
        credential("hanging", "allowed.test:9445", "GET /hang"),
        credential("closed", "allowed.test:9449", "GET /"),
        credential("nowhere", "no-such-host.test", "GET /"),
        bucket(&scene, "bucket", "eu-central-1")?,
        bucket(&scene, "no-scope", "")?,
    ];
    write_settings(&scene, &json!({ "brokered": brokered }))?;
    let tested = verb(&world, &scene, (SECRET, &path), &["test", "--json"])?.ended_with(1)?;
    for (name, works, wanted) in [
        ("forge", Some(true), "accepts it: GET /wants is answered with 200, and with 401 without it"),
        ("open", None, "with the credential and without it"),
        ("posting", None, "name a path with `--path`"),
        ("hanging", Some(false), "does not answer within 20 seconds"),
        ("closed", Some(false), "connecting to `allowed.test:9449`"),
        ("nowhere", Some(false), "`no-such-host.test` is not found"),
        ("bucket", Some(true), "accepts it: GET /a is answered with 200, and with 403 without it"),
        ("no-scope", Some(false), "write them in `services` and `regions`"),
    ] {
        let (found, text) = said(&tested, name)?;
        ensure!(found == works && text.contains(wanted), "{name}: {found:?}, {text}");
    }
    ensure!(!format!("{tested:?}").contains(SECRET), "{tested:#?}");
    let good = verb(&world, &scene, (SECRET, &path), &["test", "forge"])?.ended_with(0)?;
    ensure!(good.stdout.contains("the server accepts it"), "{good:#?}");
    // An old credential, and a path that `for` does not cover.
    let words = ["test", "forge", "--json"];
    let expired = verb(&world, &scene, ("s3cr3t-of-last-year", &path), &words)?.ended_with(1)?;
    let (works, text) = said(&expired, "forge")?;
    ensure!(works == Some(false) && text.contains("may have expired or been revoked"), "{text}");
    ensure!(!format!("{expired:?}").contains("last-year"), "{expired:#?}");
    let requests = scene.at("world").join("requests");
    let before = fs::read_to_string(&requests)?;
    let words = ["test", "forge", "--json", "--path", "/mine/x"];
    let outside = verb(&world, &scene, (SECRET, &path), &words)?.ended_with(1)?;
    ensure!(said(&outside, "forge")?.1.contains("nothing was sent"), "{outside:#?}");
    ensure!(fs::read_to_string(&requests)? == before, "nothing reaches the server");
    Ok(())
}

fn a_test_says_whether_ssh_gets_in_and_a_key_signs(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let path = prepare(&scene, OwnSsh::default())?;
    make_key(&scene, "")?;
    write_settings(
        &scene,
        &json!({
            "ssh": [
                { "name": "forge-ssh", "host": "allowed.test:2222", "user": "git" },
                { "name": "stranger", "host": "allowed.test:2223", "user": "git" },
            ],
            "signing": { "name": "sign", "form": "ssh", "key": "~/.ssh/signing.pub" },
        }),
    )?;
    let tested = verb(&world, &scene, ("", &path), &["test", "--json"])?.ended_with(1)?;
    let (works, text) = said(&tested, "forge-ssh")?;
    ensure!(works == Some(true) && text.contains("lets your own `ssh` in"), "{text}");
    let (works, text) = said(&tested, "stranger")?;
    ensure!(works == Some(false) && text.contains("could not connect"), "{text}");
    let (works, text) = said(&tested, "sign")?;
    ensure!(works == Some(true) && text == "the key signs", "{text}");
    // A key that the server does not know, and one that is locked.
    let other = scene.at("world").join("client_key");
    fs::remove_file(&other)?;
    fs::copy(scene.home().join(".ssh/signing"), &other)?;
    user.own(&other)?;
    let refused = verb(&world, &scene, ("", &path), &["test", "forge-ssh", "--json"])?.ended_with(1)?;
    let (works, text) = said(&refused, "forge-ssh")?;
    ensure!(works == Some(false) && text.contains("ssh-add"), "{text}");
    fs::remove_file(scene.home().join(".ssh/signing"))?;
    make_key(&scene, "a passphrase")?;
    let locked = verb(&world, &scene, ("", &path), &["test", "sign", "--json"])?.ended_with(1)?;
    let (works, text) = said(&locked, "sign")?;
    ensure!(works == Some(false) && text.contains("unlock the key outside"), "{text}");
    Ok(())
}

fn entries_of_all_kinds_are_added_listed_and_removed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    write_settings(&scene, &json!({}))?;
    let verb = |words: &[&str]| {
        let mut command = scene.portcullis_command(&[&["credentials"], words].concat())?;
        Finished::run(command.env(SOURCE, OsStr::new(SECRET)))
    };
    let added: [&[&str]; 4] = [
        &["add", "forge", "--host", "forge.test", "--env", SOURCE, "--for", "GET /**"],
        &["add", "forge-ssh", "--ssh", "--host", "forge.test:2222", "--user", "git", "--fetch", "me/*"],
        &["add", "sign", "--sign", "~/.ssh/signing.pub"],
        &[
            "add",
            "s3",
            "--form",
            "aws",
            "--aws-profile",
            "work",
            "--host",
            "s3.test",
            "--for",
            "GET /**",
            "--service",
            "s3",
        ],
    ];
    for words in added {
        verb(words)?.ended_with(0)?;
        let again = verb(words)?;
        ensure!(again.code() != 0 && again.stderr.contains("already"), "{again:#?}");
    }
    let listed = verb(&["list"])?.ended_with(0)?;
    for text in [
        "forge.test",
        "forge.test:2222",
        "your own ssh",
        "~/.ssh/signing.pub",
        "commits and tags",
        "the profile work",
    ] {
        ensure!(listed.stdout.contains(text), "{text}: {listed:#?}");
    }
    ensure!(!format!("{listed:?}").contains(SECRET), "{listed:#?}");
    for name in ["forge", "forge-ssh", "sign", "s3"] {
        verb(&["remove", name])?.ended_with(0)?;
        let again = verb(&["remove", name])?;
        ensure!(again.code() != 0 && again.stderr.contains("no credential is called"), "{again:#?}");
    }
    let listed = verb(&["list"])?.ended_with(0)?;
    ensure!(listed.stdout.contains("no credentials"), "{listed:#?}");
    // The path of a private key is refused, and nothing is written.
    let wrong = verb(&["add", "sign", "--sign", "~/.ssh/signing"])?;
    ensure!(wrong.code() != 0 && wrong.stderr.contains("path of the public key"), "{wrong:#?}");
    Ok(())
}

fn other_projects_and_settings_can_be_chosen(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    write_settings(&scene, &json!({ "brokered": [credential("own", "own.test", "GET /**")] }))?;
    let of_file = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "credentials": { "brokered": [credential("of-file", "file.test", "GET /**")] },
    });
    let file = scene.home().join("other.json");
    scene.write(&file, &of_file.to_string())?;
    let project = scene.home().join("elsewhere");
    fs::create_dir(&project)?;
    user.own(&project)?;
    let names = |words: &[&str]| -> Result<Vec<String>> {
        let mut command = scene.portcullis_command(&[&["credentials", "list", "--json"], words].concat())?;
        let listed = Finished::run(command.env(SOURCE, OsStr::new(SECRET)))?.ended_with(0)?;
        let listed: Value = serde_json::from_str(&listed.stdout)?;
        let all = listed["credentials"].as_array().context("a list")?;
        Ok(all.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect())
    };
    let (file, project) = (file.display().to_string(), project.display().to_string());
    ensure!(names(&[])? == ["own"]);
    ensure!(names(&["--project", &project])? == ["own"], "the user's settings hold in every project");
    ensure!(names(&["--settings", &file])? == ["of-file"]);
    let mut missing = scene.portcullis_command(&["credentials", "test", "own", "--settings", &file])?;
    let missing = Finished::run(missing.env(SOURCE, OsStr::new(SECRET)))?;
    ensure!(missing.code() != 0 && missing.stderr.contains("no credential is called `own`"), "{missing:#?}");
    let mut nowhere = scene.portcullis_command(&["credentials", "list", "--project", "/no/such"])?;
    let nowhere = Finished::run(&mut nowhere)?;
    ensure!(nowhere.code() != 0 && nowhere.stderr.contains("is not a directory"), "{nowhere:#?}");
    Ok(())
}

fn rules_for_pushes_that_stay_are_named(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let pushes = json!([
        { "host": "forge.test", "repositories": ["me/a"], "refs": ["refs/heads/**"] },
        { "host": "other.test", "repositories": ["me/a"], "refs": ["refs/heads/**"] },
    ]);
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [], "pushes": pushes },
        "filesystem": { "denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "credentials": {
            "brokered": [credential("forge", "forge.test", "GET /**")],
            "ssh": [{ "name": "forge-ssh", "host": "forge.test", "fetch": ["me/a"] }],
        },
    });
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &settings.to_string())?;
    let remove = |name: &str| {
        let mut command = scene.portcullis_command(&["credentials", "remove", name])?;
        Finished::run(command.env(SOURCE, OsStr::new(SECRET)))?.ended_with(0)
    };
    let first = remove("forge")?;
    ensure!(!first.stdout.contains("network.pushes"), "the other credential uses them: {first:#?}");
    let last = remove("forge-ssh")?.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(last.contains("`network.pushes` still has a rule for `forge.test`"), "{last}");
    ensure!(fs::read_to_string(&file)?.contains("forge.test"), "they are still there");
    Ok(())
}
