//! Signs packs with the user's keys.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_packs::{COMPONENT_MAX, PURPOSE, Pack, beside, digest, read, signatures_beside, write};

/// A pack that was signed.
#[derive(Debug)]
pub struct SignedFile {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// `sha256:...` of the component.
    pub digest: String,
    /// The files with the signatures.
    pub signatures: Vec<PathBuf>,
}

/// Signs a pack with a key of ssh, of minisign, or both.
///
/// # Errors
/// If the file is no pack, or a signature cannot be made or written.
pub fn sign(
    around: &ProcessEnv,
    file: &Path,
    key: Option<&Path>,
    minisign: Option<&Path>,
) -> anyhow::Result<SignedFile> {
    let file = around.absolute(file);
    let bytes = read(&file, COMPONENT_MAX)?;
    let pack = Pack::read(&bytes).with_context(|| format!("reading the metadata of `{}`", file.display()))?;
    let pack = pack.context("only packs are signed; `portcullis policy build` makes one of a component")?;
    let mut signed = Vec::new();
    if let Some(key) = key {
        let mut signatures = signatures_beside(&file)?;
        signatures.add_ssh(&ssh_signature(around, &around.absolute(key), PURPOSE, &bytes)?, &bytes)?;
        let to = beside(&file, "sig");
        write(&to, signatures.ssh_text().as_bytes())?;
        signed.push(to);
    }
    if let Some(key) = minisign {
        let to = beside(&file, "minisig");
        with_minisign(around, &around.absolute(key), &file, &to)?;
        signed.push(to);
    }
    let about = pack.manifest.policy;
    let digest = format!("sha256:{}", digest(&bytes));
    Ok(SignedFile { id: about.id, version: about.version, digest, signatures: signed })
}

/// Signs with `ssh-keygen`, so that agents and hardware tokens work too; it asks for a passphrase on the terminal.
///
/// # Errors
/// If the program is missing, or cannot use the key.
pub fn ssh_signature(around: &ProcessEnv, key: &Path, purpose: &str, bytes: &[u8]) -> anyhow::Result<String> {
    let program = program(around, "ssh-keygen", "openssh-client")?;
    let mut child = Command::new(program)
        .args(["-Y", "sign", "-n", purpose, "-f"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting `ssh-keygen`")?;
    if let Some(mut input) = child.stdin.take() {
        // It exits early if it cannot use the key, and prints why.
        drop(input.write_all(bytes));
    }
    let output = child.wait_with_output().context("waiting for `ssh-keygen`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("`ssh-keygen` did not sign with `{}`: {said}", key.display());
    }
    String::from_utf8(output.stdout).context("reading the signature")
}

fn with_minisign(around: &ProcessEnv, key: &Path, file: &Path, to: &Path) -> anyhow::Result<()> {
    let program = program(around, "minisign", "minisign")?;
    let status = Command::new(program)
        .arg("-S")
        .arg("-s")
        .arg(key)
        .arg("-m")
        .arg(file)
        .arg("-x")
        .arg(to)
        .stdout(Stdio::null())
        .status()
        .context("starting `minisign`")?;
    if !status.success() {
        bail!("`minisign` did not sign with `{}`", key.display());
    }
    Ok(())
}

fn program(around: &ProcessEnv, name: &str, package: &str) -> anyhow::Result<PathBuf> {
    around
        .find_program(OsStr::new(name), &UntrustedPaths::of_project(&around.cwd, &around.homes()))
        .with_context(|| format!("`{name}` is not in PATH; Debian has it in the package `{package}`"))
}
