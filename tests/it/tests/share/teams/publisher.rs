//! A team with two of three keys, and its folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use portcullis_it::{Finished, Registry, Scene, User};

use super::super::author::{Author, Build};
use super::printed;

/// The keys of the team. `thief` is none of them.
pub(super) const KEYS: [&str; 3] = ["ann", "bob", "carol"];

/// A team.
pub(super) struct Team {
    author: Author,
    pub(super) repository: String,
    /// The digest of the first root.
    pub(super) root: String,
}

impl Team {
    /// Makes the keys and the folder.
    pub(super) fn new(user: User, registry: &Registry) -> Result<Self> {
        let author = Author::new(user, registry)?;
        for name in KEYS.iter().chain(&["thief"]) {
            author.make_key(name)?;
        }
        let repository = format!("oci://{}/acme/team", registry.host());
        let mut team = Self { author, repository, root: String::new() };
        let public = KEYS.map(|name| format!("{}.pub", team.key(name)));
        let [one, two, three] = &public;
        let folder = team.folder();
        let made = team.run(&[
            "team",
            "new",
            &folder,
            "--team",
            "acme",
            "--threshold",
            "2",
            "--json",
            "--key",
            one,
            "--key",
            two,
            "--key",
            three,
        ])?;
        team.root = text(&printed(&made.ended_with(0)?)?, "root")?;
        Ok(team)
    }

    pub(super) fn run(&self, words: &[&str]) -> Result<Finished> {
        self.author.scene().portcullis(words)
    }

    /// Returns the team's folder.
    pub(super) fn folder(&self) -> String {
        self.path("team").display().to_string()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.author.scene().project().join(name)
    }

    pub(super) fn key(&self, name: &str) -> String {
        self.author.scene().home().join(name).display().to_string()
    }

    /// Writes a file of the folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        self.author.scene().write(&self.path("team").join(name), text)
    }

    /// Puts a pack that denies a file into the bundle. Returns its digest.
    pub(super) fn require_pack(&self, build: &Build, more: &str) -> Result<()> {
        let name = format!("guard-{}.wasm", build.version);
        let pack = fs::read(self.author.build(build)?)?;
        fs::write(self.path("team").join(&name), pack)?;
        self.author.scene().user().own(&self.path("team").join(&name))?;
        self.write("bundle.toml", &format!("[[pack]]\nfile = \"{name}\"\n{more}\n"))
    }

    /// Publishes with these keys.
    pub(super) fn publish_with(&self, folder: &str, keys: &[&str], more: &[&str]) -> Result<Finished> {
        let keys: Vec<String> = keys.iter().map(|name| self.key(name)).collect();
        let mut words = vec!["team", "publish", folder, &self.repository];
        words.extend(more);
        keys.iter().for_each(|key| words.extend(["--key", key.as_str()]));
        self.run(&words)
    }

    /// Publishes as the team does.
    pub(super) fn publish(&self) -> Result<()> {
        self.publish_with(&self.folder(), &["ann", "bob"], &[])?.ended_with(0)?;
        Ok(())
    }

    /// Copies the folder.
    pub(super) fn copy(&self, name: &str) -> Result<String> {
        let (from, to) = (self.folder(), self.path(name).display().to_string());
        let mut command = self.author.scene().user().command("cp".as_ref());
        self.author.scene().enter(&mut command);
        Finished::run(command.args(["-a", &from, &to]))?.ended_with(0)?;
        Ok(to)
    }

    /// Changes a document in a folder, which loses its signatures.
    pub(super) fn edit(&self, folder: &str, document: &str, change: impl Fn(&str) -> String) -> Result<()> {
        let file = Path::new(folder).join("metadata").join(document);
        let text = change(&fs::read_to_string(&file)?);
        self.author.scene().write(&file, &text)?;
        let signatures = file.with_file_name(format!("{document}.sig"));
        if signatures.exists() {
            fs::remove_file(signatures)?;
        }
        Ok(())
    }

    /// Makes a member that has joined.
    pub(super) fn member(&self, user: User) -> Result<Scene> {
        let scene = Scene::new(user)?;
        self.join(&scene)?.ended_with(0)?;
        Ok(scene)
    }

    pub(super) fn join(&self, scene: &Scene) -> Result<Finished> {
        scene.portcullis(&["team", "join", &self.repository, "--root", &self.root])
    }
}

/// Returns a text of a JSON object.
pub(super) fn text(value: &serde_json::Value, key: &str) -> Result<String> {
    let text = value.get(key).and_then(serde_json::Value::as_str);
    Ok(text.with_context(|| format!("no `{key}` in {value}"))?.to_owned())
}
