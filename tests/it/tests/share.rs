//! The path of packs from one machine to another: signed, published, added, used, updated, refused.

mod author;
mod local_files;
mod machine_trust;
mod others;
mod programs;
mod refusals;
mod swap;
mod teams;
mod tls;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Registry, Scene, Serve, User};
use serde_json::{Value, json};

use author::{Author, Build, FIRST_FILE, SECOND_FILE};

as_each_user!(two_machines, a_teams_lock, without_a_network, other_tools_verify, credentials_are_asked_for);

const REFUSED: i32 = 1;

/// Settings of the user with a pack in the chain of policies.
const SETTINGS: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
  "policies": [{ "use": "workspace" }, { "use": "acme:deny-one" }]
}"#;

/// A machine that trusts `acme`, with the registry that has the packs of `acme`.
fn machine(user: User, author: &Author, registry: &Registry) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let key = author.public_key()?;
    let place = format!("{}/packs", registry.host());
    scene
        .portcullis(&["policy", "trust", "publisher", "acme", "--key", &key, "--registry", &place])?
        .ended_with(0)?;
    for name in [FIRST_FILE, SECOND_FILE] {
        scene.write(&scene.project().join(name), "the text of it")?;
    }
    Ok(scene)
}

fn lock(scene: &Scene) -> Result<String> {
    Ok(fs::read_to_string(scene.home().join(".pi/agent/sandbox/policy.lock")).unwrap_or_default())
}

/// Whether the read tool reads the file.
fn reads(host: &mut Serve, scene: &Scene, name: &str) -> Result<bool> {
    let open = json!({ "callId": name, "path": scene.project().join(name), "intent": { "kind": "read" } });
    Ok(host.call("file/open", &open)?.get("result").is_some())
}

/// Returns the digest of a policy in the last decision of the log.
fn digest_in_log(scene: &Scene, policy: &str) -> Result<String> {
    let told = scene.portcullis(&["audit", "tail", "--json", "-n", "20"])?.ended_with(0)?;
    let digests = told.stdout.lines().rev().filter_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        let policies = record.get("policies")?.as_array()?.clone();
        let one = policies.into_iter().find(|one| one.get("name").is_some_and(|name| name == policy))?;
        Some(one.get("digest")?.as_str()?.to_owned())
    });
    digests.into_iter().next().with_context(|| format!("no digest of `{policy}` in {told:#?}"))
}

/// One machine publishes a pack. Another one adds it, uses it, gets an update while it runs, and refuses a tampered
/// pack.
fn two_machines(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let first = author.publish(&Build::new("0.1.0"))?;

    let team = machine(user, &author, &registry)?;
    let added = team.portcullis(&["policy", "add", "acme:deny-one", "--json"])?.ended_with(0)?;
    let told: Value = serde_json::from_str(&added.stdout)?;
    ensure!(told.pointer("/taken/0/digest") == Some(&first.as_str().into()), "{told}");
    ensure!(lock(&team)?.contains(&first), "the lock has the digest");
    team.portcullis(&["policy", "lock"])?.ended_with(0)?;
    let listed = team.portcullis(&["policy", "list"])?.ended_with(0)?;
    ensure!(listed.stdout.contains("signed by acme"), "{listed:#?}");

    team.write(&team.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    let mut host = Serve::greeted(&team, &[], Interface::Absent)?;
    ensure!(!reads(&mut host, &team, FIRST_FILE)?, "the pack denies its file");
    ensure!(reads(&mut host, &team, SECOND_FILE)?, "and nothing else");
    ensure!(
        digest_in_log(&team, "acme-deny-one")? == first.trim_start_matches("sha256:"),
        "the log names it"
    );
    let (_, output) = host.run(&format!("cat {FIRST_FILE}; cat {SECOND_FILE}"))?;
    ensure!(!output.contains("the text of itthe text") && output.contains("the text of it"), "{output}");

    // The next version denies the other file. It applies from the next decision on.
    let second = author.publish(&Build::new("0.2.0").denying(SECOND_FILE))?;
    let told = team.portcullis(&["policy", "update"])?.ended_with(0)?;
    ensure!(told.stdout.contains("0.2.0"), "{told:#?}");
    ensure!(!reads(&mut host, &team, SECOND_FILE)?, "the new one is in force");
    ensure!(reads(&mut host, &team, FIRST_FILE)?, "the old one is not");
    ensure!(
        digest_in_log(&team, "acme-deny-one")? == second.trim_start_matches("sha256:"),
        "the log names the new one"
    );
    let notice =
        host.wait("notice", |message| message.to_string().contains("policy acme-deny-one is sha256:"))?;
    ensure!(notice.to_string().contains(second.get(7..19).context("a digest")?), "{notice}");

    // The following versions are refused, and the second one stays in force.
    let before = lock(&team)?;
    let third = author.publish(&Build::new("0.3.0"))?;
    let blob = registry.blob(&third);
    let mut bytes = fs::read(&blob)?;
    let place = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1;
    }
    let untouched = fs::read(&blob)?;
    fs::write(&blob, &bytes)?;
    let told = team.portcullis(&["policy", "update"])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("has the digest"), "{told:#?}");
    ensure!(lock(&team)? == before && !reads(&mut host, &team, SECOND_FILE)?, "nothing has changed");
    // The control: the unchanged bytes are accepted.
    fs::write(&blob, &untouched)?;
    team.portcullis(&["policy", "update"])?.ended_with(0)?;
    ensure!(lock(&team)?.contains(&third));
    host.close()?;
    Ok(())
}

/// A lock file and its packs are in a repository; another user adds all of them, with identical bytes.
fn a_teams_lock(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let digest = author.publish(&Build::new("0.1.0"))?;
    let one = machine(user, &author, &registry)?;
    one.portcullis(&["policy", "add", "acme:deny-one@^0.1"])?.ended_with(0)?;
    let folder = one.outside().join("team");
    let team = folder.to_str().context("a path is text")?;
    one.portcullis(&["policy", "vendor", team])?.ended_with(0)?;

    // The first machine publishes a newer version; the lock file decides which one is added.
    author.publish(&Build::new("0.1.1"))?;
    let other = machine(user, &author, &registry)?;
    other.portcullis(&["policy", "add", "--lock", &format!("{team}/policy.lock")])?.ended_with(0)?;
    ensure!(lock(&other)?.contains(&digest) && lock(&other)?.contains("^0.1"), "{}", lock(&other)?);
    // Without the file in the repository the pack comes from the registry, with identical bytes.
    let third = machine(user, &author, &registry)?;
    fs::remove_dir_all(folder.join("packs"))?;
    third.portcullis(&["policy", "add", "--lock", team])?.ended_with(0)?;
    ensure!(lock(&third)? == lock(&other)?);

    // A source in the lock file is only used without a question if the user trusts that publisher.
    let file = folder.join("policy.lock");
    let text = fs::read_to_string(&file)?;
    let known = text.lines().find(|line| line.starts_with("source = ")).context("a source")?;
    one.write(&file, &text.replace(known, "source = \"oci://registry.test/other/deny-one\""))?;
    let stranger = machine(user, &author, &registry)?;
    let told = stranger.portcullis(&["policy", "add", "--lock", team])?.ended_with(REFUSED)?;
    for part in ["oci://registry.test/other/deny-one", "^0.1", "policy trust publisher"] {
        ensure!(told.stderr.contains(part), "no `{part}` in {told:#?}");
    }
    ensure!(lock(&stranger)?.is_empty());
    one.write(&file, &text)?;

    // Other bytes in the repository are refused.
    let flipped = format!("sha256:{}", digest.trim_start_matches("sha256:").replace(['a', 'b', 'c'], "d"));
    one.write(&file, &text.replace(&digest, &flipped))?;
    let fourth = machine(user, &author, &registry)?;
    let told = fourth.portcullis(&["policy", "add", "--lock", team])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("these are other bytes") && lock(&fourth)?.is_empty(), "{told:#?}");
    Ok(())
}

/// An archive brings packs to a machine without access to a registry.
fn without_a_network(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let digest = author.publish(&Build::new("0.1.0"))?;
    let one = machine(user, &author, &registry)?;
    one.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    let file = one.outside().join("packs.tar");
    let archive = file.to_str().context("a path is text")?;
    one.portcullis(&["policy", "save", archive])?.ended_with(0)?;
    let other = machine(user, &author, &registry)?;
    drop(registry);
    other.portcullis(&["policy", "load", archive])?.ended_with(0)?;
    ensure!(lock(&other)?.contains(&digest));
    other.portcullis(&["policy", "lock"])?.ended_with(0)?;

    // An archive of a publisher that this machine does not trust.
    let stranger = Scene::new(user)?;
    let told = stranger.portcullis(&["policy", "load", archive])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("you do not trust") && lock(&stranger)?.is_empty(), "{told:#?}");
    ensure!(!stranger.home().join(".pi/agent/sandbox/packs").exists(), "not even a directory is there");
    Ok(())
}

/// ssh verifies what `policy sign` writes, and Portcullis accepts what minisign writes.
fn other_tools_verify(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let file = author.build(&Build::new("0.1.0"))?;
    author.sign(&file)?;
    author.ssh_verifies(&file)?;
    let scene = machine(user, &author, &registry)?;
    let name = file.to_str().context("a path is text")?;
    scene.portcullis(&["policy", "verify", name])?.ended_with(0)?;

    // The pack is signed by minisign alone.
    fs::remove_file(author.beside(&file, "sig"))?;
    scene.portcullis(&["policy", "verify", name])?.ended_with(REFUSED)?;
    let key = author.minisign(&file)?;
    let told = scene.portcullis(&["policy", "verify", name])?.ended_with(REFUSED)?;
    ensure!(told.stdout.contains("is not theirs"), "{told:#?}");
    scene.portcullis(&["policy", "trust", "key", "acme", "--key", &key])?.ended_with(0)?;
    scene.portcullis(&["policy", "verify", name])?.ended_with(0)?;
    let mut bytes = fs::read(&file)?;
    let place = bytes.windows(8).position(|part| part == b"One file").context("the title")?;
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1;
    }
    fs::write(&file, bytes)?;
    let told = scene.portcullis(&["policy", "verify", name])?.ended_with(REFUSED)?;
    ensure!(told.stdout.contains("not over these bytes"), "{told:#?}");
    Ok(())
}

/// The line `name:secret`, as `htpasswd -B` writes it.
const HTPASSWD: &str = "name:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// A registry that requires credentials, which the file of docker contains.
fn credentials_are_asked_for(user: User) -> Result<()> {
    let registry = Registry::for_those_of(HTPASSWD)?;
    let author = Author::new(user, &registry)?;
    let file = author.build(&Build::new("0.1.0"))?;
    author.sign(&file)?;
    let told = author.push(&file)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("401") && told.stderr.contains("docker login"), "{told:#?}");
    for (auth, code) in [("bmFtZTp3cm9uZw==", REFUSED), ("bmFtZTpzZWNyZXQ=", 0)] {
        let host = registry.host();
        let text = format!("{{\"auths\": {{\"{host}\": {{\"auth\": \"{auth}\"}}}}}}");
        author.scene().write(&author.scene().home().join(".docker/config.json"), &text)?;
        let told = author.push(&file)?.ended_with(code)?;
        ensure!(!told.stderr.contains("secret") && !told.stdout.contains("secret"), "{told:#?}");
    }
    Ok(())
}
