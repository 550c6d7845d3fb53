//! A publisher: a key, a folder of a policy, and versions of the policy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Registry, Scene, Tools, User, guest};

/// The file that the unchanged guest denies.
pub(super) const FIRST_FILE: &str = "secret.txt";
/// The file that a build denies instead if it says so.
pub(super) const SECOND_FILE: &str = "public.txt";
/// The id and version of the unchanged guest.
const GUEST: (&str, &str) = ("test:deny-one", "0.1.0");

/// A version of a policy.
#[derive(Debug, Clone)]
pub(super) struct Build {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) denied: &'static str,
    /// Additional lines of the manifest.
    pub(super) more: String,
}

impl Build {
    pub(super) fn new(version: &str) -> Self {
        Self {
            id: "acme:deny-one".to_owned(),
            version: version.to_owned(),
            denied: FIRST_FILE,
            more: String::new(),
        }
    }

    pub(super) fn denying(self, denied: &'static str) -> Self {
        Self { denied, ..self }
    }

    pub(super) fn named(self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self }
    }

    pub(super) fn wanting(self, more: &str) -> Self {
        Self { more: more.to_owned(), ..self }
    }
}

/// A publisher with a key.
pub(super) struct Author {
    scene: Scene,
    host: String,
}

impl Author {
    pub(super) fn new(user: User, registry: &Registry) -> Result<Self> {
        let author = Self { scene: Scene::new(user)?, host: registry.host() };
        author.make_key("id")?;
        Ok(author)
    }

    pub(super) fn scene(&self) -> &Scene {
        &self.scene
    }

    pub(super) fn make_key(&self, name: &str) -> Result<()> {
        let key = self.scene.home().join(name);
        let key = key.to_str().context("a path is text")?;
        self.tool("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "author", "-f", key])?
            .ended_with(0)?;
        Ok(())
    }

    pub(super) fn public_key(&self) -> Result<String> {
        self.public_key_of("id")
    }

    pub(super) fn public_key_of(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(self.scene.home().join(name).with_extension("pub"))?.trim().to_owned())
    }

    /// Builds a pack of the guest, with another name, version and denied file.
    pub(super) fn build(&self, build: &Build) -> Result<PathBuf> {
        let folder = self.scene.project().join(format!("v{}", build.version));
        let manifest = format!(
            "[policy]\nid = \"{}\"\nversion = \"{}\"\ntitle = \"One file\"\n[contract]\nversion = \"0.1\"\n{}\n",
            build.id, build.version, build.more
        );
        self.scene.write(&folder.join("policy.toml"), &manifest)?;
        let bytes = fs::read(guest("deny-one", User::Caller)?)?;
        let said = format!("{}{}", GUEST.0, GUEST.1);
        let says = format!("{}{}", build.id, build.version);
        let bytes = replaced(bytes, said.as_bytes(), says.as_bytes())?;
        let bytes = replaced(bytes, FIRST_FILE.as_bytes(), build.denied.as_bytes())?;
        fs::write(folder.join("component.wasm"), bytes)?;
        self.scene.user().own(&folder.join("component.wasm"))?;
        let output = folder.join("pack.wasm");
        let (folder, file) = (folder.to_str().context("text")?, output.to_str().context("text")?);
        self.scene.portcullis(&["policy", "build", folder, "-o", file])?.ended_with(0)?;
        Ok(output)
    }

    pub(super) fn sign(&self, file: &Path) -> Result<()> {
        self.sign_with(file, "id")
    }

    pub(super) fn sign_with(&self, file: &Path, key: &str) -> Result<()> {
        let key = self.scene.home().join(key);
        let (file, key) = (file.to_str().context("text")?, key.to_str().context("text")?);
        self.scene.portcullis(&["policy", "sign", file, "--key", key])?.ended_with(0)?;
        Ok(())
    }

    /// Pushes a file to the place of its name.
    pub(super) fn push(&self, file: &Path) -> Result<Finished> {
        let to = format!("oci://{}/packs/acme/deny-one", self.host);
        self.scene.portcullis(&["policy", "push", file.to_str().context("text")?, &to, "--unsigned"])
    }

    /// Builds, signs and pushes; returns the digest.
    pub(super) fn publish(&self, build: &Build) -> Result<String> {
        let file = self.build(build)?;
        self.sign(&file)?;
        let told = self.push(&file)?.ended_with(0)?;
        let place = told.stdout.find("sha256:").context("a digest")?;
        Ok(told.stdout.get(place..place + 71).context("a whole digest")?.to_owned())
    }

    pub(super) fn beside(&self, file: &Path, ending: &str) -> PathBuf {
        PathBuf::from(format!("{}.{ending}", file.display()))
    }

    /// Verifies the signature with ssh itself.
    pub(super) fn ssh_verifies(&self, file: &Path) -> Result<()> {
        let signers = self.scene.home().join("allowed_signers");
        self.scene.write(&signers, &format!("author {}\n", self.public_key()?))?;
        let signature = self.beside(file, "sig");
        let script = format!(
            "ssh-keygen -Y verify -f '{}' -I author -n portcullis-policy -s '{}' < '{}'",
            signers.display(),
            signature.display(),
            file.display()
        );
        let told = self.tool("sh", &["-c", &script])?.ended_with(0)?;
        ensure!(told.stdout.contains("Good"), "{told:#?}");
        Ok(())
    }

    /// Signs with minisign; returns the public key.
    pub(super) fn minisign(&self, file: &Path) -> Result<String> {
        let program = Tools::find()?.helper("minisign", User::Caller)?;
        let folder = tempfile::tempdir()?;
        let (public, secret) = (folder.path().join("key.pub"), folder.path().join("key"));
        let run = |arguments: &[&std::ffi::OsStr]| {
            Finished::run(std::process::Command::new(&program).args(arguments))?.ended_with(0)
        };
        run(&["-G".as_ref(), "-W".as_ref(), "-p".as_ref(), public.as_ref(), "-s".as_ref(), secret.as_ref()])?;
        let signature = self.beside(file, "minisig");
        run(&[
            "-S".as_ref(),
            "-W".as_ref(),
            "-s".as_ref(),
            secret.as_ref(),
            "-m".as_ref(),
            file.as_ref(),
            "-x".as_ref(),
            signature.as_ref(),
        ])?;
        self.scene.user().own(&signature)?;
        let text = fs::read_to_string(public)?;
        Ok(text.lines().last().context("a key")?.to_owned())
    }

    fn tool(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        let mut command = self.scene.user().command(program.as_ref());
        self.scene.enter(&mut command);
        command.args(arguments);
        Finished::run(&mut command)
    }
}

/// Replaces `old`, which must occur exactly once, by other bytes of the same length.
fn replaced(bytes: Vec<u8>, old: &[u8], new: &[u8]) -> Result<Vec<u8>> {
    ensure!(old.len() == new.len(), "{old:?} and {new:?} have the same length");
    let mut made = bytes;
    let places: Vec<usize> = made
        .windows(old.len())
        .enumerate()
        .filter(|(_, part)| *part == old)
        .map(|(place, _)| place)
        .collect();
    ensure!(!places.is_empty(), "{} is in the guest", String::from_utf8_lossy(old));
    for place in places {
        made.get_mut(place..place + new.len()).context("it was found")?.copy_from_slice(new);
    }
    Ok(made)
}
