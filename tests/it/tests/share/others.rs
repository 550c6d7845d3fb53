//! Interoperation with the program that others use for components in registries: it fetches the packs that we publish,
//! and we accept the ones that it publishes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Registry, Scene, Tools, User};

use super::author::{Author, Build, FIRST_FILE};
use super::{REFUSED, lock, machine};

as_each_user!(wkg_gets_what_we_publish, we_take_what_wkg_publishes);

/// `wkg`, on the machine of a scene.
struct Wkg<'a> {
    scene: &'a Scene,
    host: String,
}

impl<'a> Wkg<'a> {
    fn new(scene: &'a Scene, registry: &Registry) -> Result<Self> {
        let host = registry.host();
        let config = format!(
            "default_registry = '{host}'\n[registry.'{host}']\ntype = 'oci'\n\
             [registry.'{host}'.oci]\nprotocol = 'http'\n"
        );
        scene.write(&scene.home().join("wkg.toml"), &config)?;
        Ok(Self { scene, host })
    }

    fn run(&self, arguments: &[&str]) -> Result<Finished> {
        let program = Tools::find()?.helper("wkg", self.scene.user())?;
        let mut command = self.scene.user().command(&program);
        self.scene.enter(&mut command);
        let home = self.scene.home();
        command.env("WKG_CONFIG_FILE", home.join("wkg.toml")).env("WKG_CACHE_DIR", home.join("wkg-cache"));
        // In both ways that it has: artifacts, and names of packages.
        command.env("WKG_OCI_INSECURE", &self.host).args(arguments);
        Finished::run(&mut command)
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is text")
}

fn wkg_gets_what_we_publish(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let file = author.build(&Build::new("0.1.0"))?;
    author.sign(&file)?;
    let place = format!("{}/acme/deny-one", registry.host());
    author.scene().portcullis(&["policy", "push", text(&file)?, &format!("oci://{place}")])?.ended_with(0)?;

    let scene = Scene::new(user)?;
    let wkg = Wkg::new(&scene, &registry)?;
    let (one, two) = (scene.project().join("one.wasm"), scene.project().join("two.wasm"));
    wkg.run(&["oci", "pull", &format!("{place}:0.1.0"), "-o", text(&one)?])?.ended_with(0)?;
    // The newest version of a name; the signatures beside it do not count as versions.
    wkg.run(&["get", "acme:deny-one", "-o", text(&two)?])?.ended_with(0)?;
    for got in [&one, &two] {
        ensure!(fs::read(got)? == fs::read(&file)?, "`{}` is another component", got.display());
    }
    // The pack is still signed.
    let key = author.public_key()?;
    scene.portcullis(&["policy", "trust", "publisher", "acme", "--key", &key])?.ended_with(0)?;
    scene.portcullis(&["policy", "verify", text(&one)?])?.ended_with(REFUSED)?;
    fs::copy(author.beside(&file, "sig"), author.beside(&one, "sig"))?;
    scene.user().own(&author.beside(&one, "sig"))?;
    scene.portcullis(&["policy", "verify", text(&one)?])?.ended_with(0)?;
    Ok(())
}

fn we_take_what_wkg_publishes(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let wkg = Wkg::new(author.scene(), &registry)?;
    let artifact = format!("{}/packs/acme/deny-one", registry.host());
    let first = author.build(&Build::new("0.1.0"))?;
    wkg.run(&["oci", "push", &format!("{artifact}:0.1.0"), text(&first)?])?.ended_with(0)?;

    // The pack is unsigned. Its name is refused if it belongs to a publisher; otherwise an option accepts it.
    let team = machine(user, &author, &registry)?;
    let told = team.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("there is no signature") && lock(&team)?.is_empty(), "{told:#?}");
    let stranger = Scene::new(user)?;
    stranger.write(&stranger.project().join(FIRST_FILE), "the text of it")?;
    let reference = format!("oci://{artifact}:0.1.0");
    let told = stranger.portcullis(&["policy", "add", &reference])?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("--unsigned") && lock(&stranger)?.is_empty(), "{told:#?}");
    stranger.portcullis(&["policy", "add", &reference, "--unsigned"])?.ended_with(0)?;
    holds(&stranger, FIRST_FILE)?;

    // The publisher signs these bytes: a push finds that they exist already, and adds the signature.
    author.sign(&first)?;
    author.push(&first)?.ended_with(0)?;
    team.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    holds(&team, FIRST_FILE)?;
    Ok(())
}

/// Checks that the pack is used and denies the file.
fn holds(scene: &Scene, file: &str) -> Result<()> {
    scene.portcullis(&["policy", "lock"])?.ended_with(0)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), super::SETTINGS)?;
    let told = scene.portcullis(&["run", "--", "cat", file])?;
    ensure!(told.code() != 0 && !told.stdout.contains("the text"), "{told:#?}");
    scene.portcullis(&["check", "read", file])?.ended_with(20)?;
    Ok(())
}
