//! Refusals, with real files, a real registry and real keys; a refusal changes nothing. In each case the same pack is
//! accepted after the fault is repaired, or was accepted before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Registry, Scene, Serve, User};

use super::author::{Author, Build};
use super::{REFUSED, lock, machine};

as_each_user!(
    files_are_refused,
    registries_are_refused,
    archives_are_refused,
    running_packs_are_refused,
    the_agent_changes_nothing,
    revoking_closes_a_session,
);

/// Returns every path below a directory, with its content.
fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else {
                all.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    Ok(all)
}

/// Runs a verb that must be refused with these words, and must leave every file as it was.
fn refused(scene: &Scene, arguments: &[&str], said: &str) -> Result<()> {
    let sandbox = scene.home().join(".pi/agent/sandbox");
    let before = contents(&sandbox)?;
    let told = scene.portcullis(arguments)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains(said), "no `{said}` in {told:#?}");
    ensure!(contents(&sandbox)? == before, "{arguments:?} has changed something");
    Ok(())
}

fn files_are_refused(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.make_key("foreign")?;
    let scene = machine(user, &author, &registry)?;
    let good = author.build(&Build::new("0.2.0"))?;
    let name = good.to_str().context("text")?;
    let add: &[&str] = &["policy", "add", name];

    refused(&scene, add, "there is no signature")?;
    author.sign_with(&good, "foreign")?;
    refused(&scene, add, "is not theirs")?;
    author.sign(&good)?;
    let bytes = fs::read(&good)?;
    let mut flipped = bytes.clone();
    let place = flipped.windows(8).position(|part| part == b"One file").context("the title")?;
    if let Some(byte) = flipped.get_mut(place) {
        *byte ^= 1;
    }
    fs::write(&good, &flipped)?;
    refused(&scene, add, "is not over these bytes")?;
    fs::write(&good, &bytes)?;
    scene.portcullis(add)?.ended_with(0)?;

    // An older version, and one of another publisher; the controls are the other versions.
    let old = author.build(&Build::new("0.1.9"))?;
    author.sign(&old)?;
    refused(&scene, &["policy", "add", old.to_str().context("text")?], "older than 0.2.0")?;
    for (id, said) in
        [("acme:deny-0ne", "looks like `acme:deny-one`"), ("acne:deny-one", "is signed by `acme`")]
    {
        let other = author.build(&Build::new("0.3.0").named(id))?;
        author.sign(&other)?;
        refused(&scene, &["policy", "add", other.to_str().context("text")?], said)?;
    }
    let more = author.build(&Build::new("0.4.0").wanting("[capabilities]\nrewrites = true"))?;
    author.sign(&more)?;
    let more = more.to_str().context("text")?;
    // The guest exports every function, so the first version already had to ask for what it may see; see `agreed`.
    refused(&scene, &["policy", "add", more], "it wants rewrites")?;
    scene.portcullis(&["policy", "add", more, "--allow", "rewrites"])?.ended_with(0)?;

    // A key that was valid until it was revoked.
    let new = author.build(&Build::new("0.5.0"))?;
    author.sign(&new)?;
    let new = new.to_str().context("text")?;
    scene.portcullis(&["policy", "verify", new])?.ended_with(0)?;
    let key = author.public_key()?;
    scene.portcullis(&["policy", "trust", "revoke", &key, "--reason", "stolen"])?.ended_with(0)?;
    refused(&scene, &["policy", "add", new], "was revoked: stolen")?;
    scene.portcullis(&["policy", "lock"])?.ended_with(REFUSED)?;

    // A key that was valid until a day in the past.
    let late = Scene::new(user)?;
    let trust = ["policy", "trust", "publisher", "acme", "--key", &key, "--valid-before", "2020-01-01"];
    late.portcullis(&trust)?.ended_with(0)?;
    refused(&late, &["policy", "add", new], "has expired")
}

fn registries_are_refused(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let scene = machine(user, &author, &registry)?;
    let add: &[&str] = &["policy", "add", "acme:deny-one"];
    refused(&scene, add, "the list of versions")?;
    refused(&scene, &["policy", "add", "nobody:deny-one"], "no publisher of")?;

    // Another policy under this policy's name, signed with the right key.
    let other = author.build(&Build::new("0.1.0").named("acme:deny-two"))?;
    author.sign(&other)?;
    author.push(&other)?.ended_with(0)?;
    refused(&scene, add, "`acme:deny-one` was asked for, and this is `acme:deny-two`")?;
    // Another version under the tag of this version: any user who can write to the registry can move a tag.
    author.publish(&Build::new("0.2.0"))?;
    scene.portcullis(add)?.ended_with(0)?;
    move_tag(&registry, "0.2.0", "0.9.0")?;
    refused(&scene, &["policy", "update"], "version 0.9.0 was asked for, and this is 0.2.0")?;
    // A published version is not overwritten.
    let again = author.build(&Build::new("0.2.0").wanting("[tests]\nfiles = []\n[config]\nschema = \"\""))?;
    let bytes = fs::read(&again)?;
    fs::write(&again, [bytes.as_slice(), b"\0\x02\x01x"].concat())?;
    author.sign(&again)?;
    let told = author.push(&again)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("with other bytes"), "{told:#?}");
    // Without TLS only this machine is contacted, so there is no answer from the other host.
    refused(&scene, &["policy", "add", "oci://registry.invalid/a/b:1.0.0"], "registry.invalid")
}

/// Gives an artifact another tag, as any user can who may write to the registry.
fn move_tag(registry: &Registry, from: &str, to: &str) -> Result<()> {
    let place = format!("http://{}/v2/packs/acme/deny-one/manifests", registry.host());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let script = format!(
        "set -e; m=$(curl -sf -H 'Accept: {kind}' {place}/{from}); \
         printf %s \"$m\" | curl -sf -X PUT -H 'Content-Type: {kind}' --data-binary @- {place}/{to}"
    );
    Finished::run(Command::new("sh").args(["-c", &script]))?.ended_with(0)?;
    Ok(())
}

fn archives_are_refused(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.publish(&Build::new("0.1.0"))?;
    let one = machine(user, &author, &registry)?;
    one.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    let file = one.outside().join("packs.tar");
    one.portcullis(&["policy", "save", file.to_str().context("text")?])?.ended_with(0)?;

    let scene = machine(user, &author, &registry)?;
    let folder = scene.outside().join("layout");
    let victim = scene.outside().join("victim");
    scene.write(&victim, "as it was")?;
    // A real tar packs each hostile archive, from the content of a valid one.
    let tricks = [
        ("ln -s ../victim link", "link", "is no plain file"),
        ("ln -sf ../../victim blobs/sha256/evil", ".", "is no plain file"),
        ("echo x > ../x", "--absolute-names ../x", "has no place"),
        ("echo x > policy.lock", "policy.lock", "has no place"),
        ("mkfifo pipe", "pipe", "is no plain file"),
        ("ln index.json hard", "index.json hard", "is no plain file"),
        ("truncate -s 3G big; mv big oci-layout", "oci-layout | head -c 20000", "holds more than"),
        ("truncate -s 3G big; mv big index.json", "--sparse index.json", "is no plain file"),
        ("rm -r blobs; mkdir blobs", ".", "is not in it"),
        ("for b in blobs/sha256/*; do printf x >> $b; done", ".", "other bytes than its name"),
        ("printf '{\"schemaVersion\":2,\"manifests\":[]}' > index.json", ".", "there is no pack in it"),
        ("true", ". | gzip", "is not a tar archive"),
    ];
    for (index, (make, pack, said)) in tricks.into_iter().enumerate() {
        let archive = scene.outside().join(format!("{index}.tar"));
        let script = format!(
            "set -e; rm -rf '{0}'; mkdir '{0}'; cd '{0}'; tar -xf '{1}'; {make}; tar -c {pack} > '{2}'",
            folder.display(),
            file.display(),
            archive.display()
        );
        Finished::run(Command::new("sh").args(["-c", &script]))?
            .ended_with(0)
            .with_context(|| make.to_owned())?;
        refused(&scene, &["policy", "load", archive.to_str().context("text")?], said)
            .with_context(|| format!("{make}; tar {pack}"))?;
        ensure!(fs::read_to_string(&victim)? == "as it was");
        fs::remove_file(archive)?;
    }
    // No process ever writes to the pipe, and the verb must not wait for one.
    let pipe = scene.outside().join("pipe.tar");
    Finished::run(Command::new("mkfifo").arg(&pipe))?.ended_with(0)?;
    refused(&scene, &["policy", "load", pipe.to_str().context("text")?], "it is no regular file")?;
    scene.portcullis(&["policy", "load", file.to_str().context("text")?])?.ended_with(0)?;
    ensure!(lock(&scene)?.contains("acme:deny-one"));
    Ok(())
}

/// A pack in use that was changed or revoked is not used any more.
fn running_packs_are_refused(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let digest = author.publish(&Build::new("0.1.0"))?;
    let scene = machine(user, &author, &registry)?;
    scene.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), super::SETTINGS)?;
    scene.portcullis(&["check", "read", super::FIRST_FILE])?.ended_with(20)?;
    let refused = |said: &str| {
        let told = scene.portcullis(&["check", "read", super::SECOND_FILE])?.ended_with(REFUSED)?;
        ensure!(told.stderr.contains(said), "no `{said}` in {told:#?}");
        Ok(())
    };

    let name = format!("{}.wasm", digest.trim_start_matches("sha256:"));
    let file = scene.home().join(".pi/agent/sandbox/packs").join(name);
    let bytes = fs::read(&file)?;
    let mut flipped = bytes.clone();
    if let Some(last) = flipped.last_mut() {
        *last ^= 1;
    }
    fs::write(&file, flipped)?;
    refused("differs from the lock")?;
    fs::write(&file, bytes)?;
    scene.portcullis(&["check", "read", super::SECOND_FILE])?.ended_with(0)?;
    scene.portcullis(&["policy", "trust", "revoke", &digest, "--reason", "a hole"])?.ended_with(0)?;
    refused("was revoked: a hole")?;
    scene.portcullis(&["policy", "remove", "acme:deny-one"])?.ended_with(0)?;
    refused("`acme:deny-one` is not in")
}

/// The agent cannot write the files that decide which publishers and packs are accepted.
fn the_agent_changes_nothing(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.publish(&Build::new("0.1.0"))?;
    let scene = machine(user, &author, &registry)?;
    scene.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), super::SETTINGS)?;
    let sandbox = scene.home().join(".pi/agent/sandbox");
    let before = contents(&sandbox)?;
    for name in ["policy.lock", "trust.toml", "packs/x.wasm"] {
        let file = sandbox.join(name);
        let file = file.to_str().context("text")?;
        scene.portcullis(&["check", "write", file])?.ended_with(20)?;
        let script = format!("echo x >> '{file}'; rm -f '{file}'; mv '{file}' '{file}.old'; true");
        scene.portcullis(&["run", "--ask", "allow", "--", "sh", "-c", &script])?;
        ensure!(contents(&sandbox)? == before, "`{file}` was changed");
        // The agent runs the verbs themselves.
        let ours = portcullis_it::portcullis(user)?;
        let ours = ours.to_str().context("text")?;
        let script = format!("'{ours}' policy remove acme:deny-one; '{ours}' policy trust revoke SHA256:x");
        scene.portcullis(&["run", "--ask", "allow", "--", "sh", "-c", &script])?;
        ensure!(contents(&sandbox)? == before, "a verb has changed something");
    }
    // The control: the same verb outside the sandbox.
    scene.portcullis(&["policy", "remove", "acme:deny-one"])?.ended_with(0)?;
    ensure!(contents(&sandbox)? != before);
    Ok(())
}

/// A pack that is revoked while a session uses it no longer permits anything in that session.
fn revoking_closes_a_session(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.publish(&Build::new("0.1.0"))?;
    let scene = machine(user, &author, &registry)?;
    scene.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), super::SETTINGS)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    ensure!(super::reads(&mut host, &scene, super::SECOND_FILE)?);
    let key = author.public_key()?;
    scene.portcullis(&["policy", "trust", "revoke", &key, "--reason", "stolen"])?.ended_with(0)?;
    ensure!(!super::reads(&mut host, &scene, super::SECOND_FILE)?, "nothing is read any more");
    host.wait("notice", |message| message.to_string().contains("was revoked: stolen"))?;
    host.close()?;
    Ok(())
}
