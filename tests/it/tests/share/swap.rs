//! A policy file is replaced while a session uses it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns};
use portcullis_it::{Interface, Launch, PiVersion, Registry, Scene, Serve, User};

use super::author::{Author, Build, FIRST_FILE, SECOND_FILE};
use super::{digest_in_log, reads};

on_each_pi!(under_pi);
as_each_user!(at_the_next_decision);

const SETTINGS: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
  "policies": [{ "use": "workspace" }, { "use": "policies/one.wasm" }]
}"#;

/// Both versions, and a scene that uses the first one.
struct Versions {
    scene: Scene,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Versions {
    fn new(user: User) -> Result<Self> {
        let registry = Registry::start()?;
        let author = Author::new(user, &registry)?;
        let first = fs::read(author.build(&Build::new("0.1.0"))?)?;
        let second = fs::read(author.build(&Build::new("0.2.0").denying(SECOND_FILE))?)?;
        let scene = Scene::new(user)?;
        for name in [FIRST_FILE, SECOND_FILE] {
            scene.write(&scene.project().join(name), &format!("text of {name}"))?;
        }
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
        let versions = Self { scene, first, second };
        versions.scene.write(&versions.file(), "")?;
        versions.put(&versions.first)?;
        Ok(versions)
    }

    fn file(&self) -> std::path::PathBuf {
        self.scene.home().join(".pi/agent/sandbox/policies/one.wasm")
    }

    /// Replaces the file in one step, as `policy build` does.
    fn put(&self, bytes: &[u8]) -> Result<()> {
        let part = self.file().with_extension("part");
        fs::write(&part, bytes)?;
        self.scene.user().own(&part)?;
        Ok(fs::rename(part, self.file())?)
    }
}

fn hex(file: &Path, scene: &Scene) -> Result<String> {
    let told = scene.portcullis(&["policy", "inspect", "--json", file.to_str().context("text")?])?;
    let told: serde_json::Value = serde_json::from_str(&told.ended_with(0)?.stdout)?;
    let digest = told.get("digest").and_then(serde_json::Value::as_str).context("a digest")?;
    Ok(digest.trim_start_matches("sha256:").to_owned())
}

fn at_the_next_decision(user: User) -> Result<()> {
    let versions = Versions::new(user)?;
    let scene = &versions.scene;
    let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
    ensure!(!reads(&mut host, scene, FIRST_FILE)? && reads(&mut host, scene, SECOND_FILE)?);
    let first = hex(&versions.file(), scene)?;
    ensure!(digest_in_log(scene, "one")? == first);

    // The test does not wait: the new policy already makes the next decision, for tools and for commands.
    versions.put(&versions.second)?;
    ensure!(reads(&mut host, scene, FIRST_FILE)? && !reads(&mut host, scene, SECOND_FILE)?);
    let second = hex(&versions.file(), scene)?;
    ensure!(first != second && digest_in_log(scene, "one")? == second);
    let (_, output) = host.run(&format!("cat {FIRST_FILE} {SECOND_FILE}"))?;
    ensure!(output.contains("text of secret") && !output.contains("text of public"), "{output}");

    // A file that does not load changes nothing, and the fault is reported.
    for (broken, said) in [
        (b"hello".to_vec(), "WebAssembly"),
        (versions.first.get(..5_000).context("long")?.to_vec(), "policy"),
    ] {
        versions.put(&broken)?;
        ensure!(reads(&mut host, scene, FIRST_FILE)? && !reads(&mut host, scene, SECOND_FILE)?);
        let notice = host.wait("notice", |message| {
            let text = message.to_string();
            text.contains("The new policies cannot be used") && text.contains("\"error\"")
        })?;
        ensure!(notice.to_string().contains(said), "{notice}");
        ensure!(digest_in_log(scene, "one")? == second);
    }
    fs::remove_file(versions.file())?;
    ensure!(!reads(&mut host, scene, SECOND_FILE)?, "a file that is gone takes nothing away");
    versions.put(&versions.first)?;
    ensure!(!reads(&mut host, scene, FIRST_FILE)? && reads(&mut host, scene, SECOND_FILE)?);
    host.close()?;

    // The same at the start of a session: nothing is permitted.
    versions.put(b"hello")?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(125)?;
    Ok(())
}

fn under_pi(version: PiVersion, user: User) -> Result<()> {
    let versions = Versions::new(user)?;
    let scene = &versions.scene;
    let at = |name: &str| scene.project().join(name).display().to_string();
    let both = format!("cat {FIRST_FILE} {SECOND_FILE}");
    let script = turns([
        ("alpha", vec![read(&at(FIRST_FILE)), expecting_no("text of secret", say("alpha over"))]),
        (
            "beta",
            vec![
                read(&at(FIRST_FILE)),
                expecting("text of secret", read(&at(SECOND_FILE))),
                expecting_no("text of public", bash(&both)),
                expecting("text of secret", expecting_no("text of public", say("beta over"))),
            ],
        ),
        ("gamma", vec![read(&at(SECOND_FILE)), expecting_no("text of public", say("gamma over"))]),
    ]);
    let screen = Launch::guarded(scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on")?;
    screen.enter("alpha")?;
    screen.wait_for("alpha over")?;
    versions.put(&versions.second)?;
    screen.wait_for("policy one is sha256:")?;
    screen.enter("beta")?;
    screen.wait_for("beta over")?;
    versions.put(b"hello")?;
    screen.wait_for("The new policies cannot be used")?;
    screen.wait_for("1 warning")?;
    screen.enter("gamma")?;
    screen.wait_for("gamma over")?;
    let second = digest_in_log(scene, "one")?;
    versions.put(&versions.second)?;
    screen.wait("no warning", |text| !text.contains("1 warning"))?;
    ensure!(second == hex(&versions.file(), scene)?, "the log names what was in force");
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}
