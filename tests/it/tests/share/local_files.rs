//! A `.wasm` file that the settings name and the user does not trust can only tighten. The control is the same file
//! once it is trusted.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Registry, Scene, Serve, User, guest};
use serde_json::{Value, json};

use super::author::{Author, Build, FIRST_FILE, SECOND_FILE};
use super::reads;

as_each_user!(
    it_opens_nothing,
    it_denies_all_the_same,
    whoever_vouches_for_it,
    it_is_shown,
    a_session_takes_trust_and_its_end,
);

const ALLOW: i32 = 0;
const ASK: i32 = 10;
const DENY: i32 = 20;

/// A scene with these policies, whose settings allow writing in `outside`.
fn scene_with(user: User, policies: &Value, combine: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    configure(&scene, policies, combine)?;
    for name in [FIRST_FILE, SECOND_FILE] {
        scene.write(&scene.project().join(name), "the text of it")?;
    }
    Ok(scene)
}

fn configure(scene: &Scene, policies: &Value, combine: &str) -> Result<()> {
    let settings = json!({
        "network": { "allowedDomains": ["example.com"], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/home"], "allowRead": ["."], "allowWrite": [".", scene.outside()], "denyWrite": [],
        },
        "policies": policies, "combine": combine,
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

fn place(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox/policies/mine.wasm")
}

fn put(scene: &Scene, component: &Path) -> Result<()> {
    scene.write(&place(scene), "")?;
    fs::copy(component, place(scene)).context("copying a component")?;
    Ok(())
}

/// Returns the path of the default policy as a file: it allows what the settings allow.
fn opening() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/workspace/policy.wasm")
}

/// The file allows nothing to tools or commands, however the settings combine policies.
fn it_opens_nothing(user: User) -> Result<()> {
    let alone = json!([{ "use": "policies/mine.wasm" }]);
    let beside = json!([{ "use": "policies/mine.wasm" }, { "use": "git-guard" }]);
    let chains = [(&alone, "strictest"), (&beside, "first"), (&beside, "mine | git-guard")];
    let scene = scene_with(user, &alone, "strictest")?;
    put(&scene, &opening())?;
    let file = scene.outside().join("made");
    let name = file.to_str().context("a path is text")?;
    let write = format!("echo x > '{name}'");
    for (is_trusted, code) in [(false, ASK), (true, ALLOW)] {
        if is_trusted {
            scene.trust(&place(&scene))?;
        }
        for (policies, combine) in &chains {
            configure(&scene, policies, combine)?;
            scene.portcullis(&["check", "write", name])?.ended_with(code)?;
            scene.portcullis(&["check", "connect", "example.com:443"])?.ended_with(code)?;
            drop(fs::remove_file(&file));
            scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", &write])?;
            ensure!(file.exists() == is_trusted, "{combine}, trusted {is_trusted}: what a command wrote");
        }
    }
    Ok(())
}

fn it_denies_all_the_same(user: User) -> Result<()> {
    let policies = json!([{ "use": "workspace" }, { "use": "policies/mine.wasm", "mode": "tighten" }]);
    let scene = scene_with(user, &policies, "strictest")?;
    put(&scene, &guest("deny-one", User::Caller)?)?;
    for combine in ["strictest", "first", "workspace"] {
        configure(&scene, &policies, combine)?;
        scene.portcullis(&["check", "read", FIRST_FILE])?.ended_with(DENY)?;
        scene.portcullis(&["check", "read", SECOND_FILE])?.ended_with(ALLOW)?;
        let seen = scene.portcullis(&["run", "--", "cat", FIRST_FILE])?;
        ensure!(!seen.stdout.contains("the text"), "{combine}: {seen:#?}");
        let seen = scene.portcullis(&["run", "--", "cat", SECOND_FILE])?.ended_with(0)?;
        ensure!(seen.stdout.contains("the text"), "{combine}: {seen:#?}");
    }
    Ok(())
}

/// Trust comes from its digest, from a signature of the publisher that its name belongs to, or from the command line,
/// and from nowhere else.
fn whoever_vouches_for_it(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.make_key("foreign")?;
    let file = author.build(&Build::new("0.1.0"))?;
    let policies = json!([{ "use": "workspace" }, { "use": "policies/mine.wasm" }]);
    let scene = scene_with(user, &policies, "strictest")?;
    put(&scene, &file)?;
    let mode = || -> Result<Value> {
        let shown = scene.portcullis(&["config", "show", "--json"])?.ended_with(0)?;
        let shown: Value = serde_json::from_str(&shown.stdout)?;
        shown.pointer("/chain/1/mode").cloned().context("the mode is shown")
    };
    let signed_by = |key: &str| -> Result<()> {
        drop(fs::remove_file(author.beside(&file, "sig")));
        author.sign_with(&file, key)?;
        let signature = fs::read_to_string(author.beside(&file, "sig"))?;
        scene.write(&author.beside(&place(&scene), "sig"), &signature)
    };
    ensure!(mode()? == "tighten");
    signed_by("id")?;
    ensure!(mode()? == "tighten", "a signature of nobody in particular");
    let key = author.public_key()?;
    scene.portcullis(&["policy", "trust", "publisher", "acme", "--key", &key])?.ended_with(0)?;
    ensure!(mode()? == "enforce", "signed by whom its name belongs to");
    signed_by("foreign")?;
    ensure!(mode()? == "tighten", "somebody else has signed");
    scene.write(&author.beside(&place(&scene), "sig"), "no signature at all")?;
    ensure!(mode()? == "tighten", "nobody has signed");
    scene.trust(&place(&scene))?;
    ensure!(mode()? == "enforce", "the user trusts its digest");
    let mut bytes = fs::read(place(&scene))?;
    let title = bytes.windows(8).position(|part| part == b"One file").context("the title")?;
    if let Some(byte) = bytes.get_mut(title) {
        *byte ^= 1;
    }
    fs::write(place(&scene), bytes)?;
    ensure!(mode()? == "tighten", "the digest is that of other bytes");

    // A file on the command line is trusted because it is named there.
    let named = opening();
    let named = named.to_str().context("a path is text")?;
    scene.portcullis(&["check", "--policy", named, "connect", "example.com:443"])?.ended_with(ALLOW)?;
    Ok(())
}

/// Users see why the policy allows nothing: in the settings, in the file itself, in a check and in the log.
fn it_is_shown(user: User) -> Result<()> {
    let scene = scene_with(user, &json!([{ "use": "policies/mine.wasm" }]), "strictest")?;
    put(&scene, &opening())?;
    let file = place(&scene);
    let file = file.to_str().context("a path is text")?;
    for (arguments, code) in [
        (vec!["config", "show"], 0),
        (vec!["policy", "inspect", file], 0),
        (vec!["check", "connect", "example.com:443"], ASK),
    ] {
        let told = scene.portcullis(&arguments)?.ended_with(code)?;
        ensure!(told.stdout.contains("can only tighten"), "{told:#?}");
    }
    scene.trust(&place(&scene))?;
    for arguments in [vec!["config", "show"], vec!["policy", "inspect", file]] {
        let told = scene.portcullis(&arguments)?.ended_with(0)?;
        let is_plain = told.stdout.contains("trusted by its digest") && !told.stdout.contains("tighten");
        ensure!(is_plain, "{told:#?}");
    }
    Ok(())
}

/// Trust takes effect from the next decision on, and so does its removal.
fn a_session_takes_trust_and_its_end(user: User) -> Result<()> {
    let scene = scene_with(user, &json!([{ "use": "policies/mine.wasm" }]), "strictest")?;
    put(&scene, &opening())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let outside = scene.outside().join("made");
    let write = json!({ "callId": "w", "path": outside, "content": "x" });
    ensure!(host.call("file/write", &write)?.get("error").is_some(), "nobody vouches for it");
    ensure!(reads(&mut host, &scene, FIRST_FILE)?, "the base holds");
    scene.trust(&place(&scene))?;
    ensure!(host.call("file/write", &write)?.get("error").is_none(), "it is trusted now");
    let told = host.wait("notice", |message| message.to_string().contains("has another mode"))?;
    ensure!(told.to_string().contains("mine"), "{told}");

    // Other bytes in its place are not trusted.
    fs::copy(guest("no-wasi", User::Caller)?, place(&scene))?;
    let again = json!({ "callId": "a", "path": scene.outside().join("more"), "content": "x" });
    ensure!(host.call("file/write", &again)?.get("error").is_some(), "these are other bytes");
    host.close()?;
    Ok(())
}
