//! Has the user's own `ssh-keygen` or `gpg` sign a commit or a tag.

use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use portcullis_sys::terminal_free::without_terminal;
use portcullis_text::escape;

use crate::own_programs::ended;

/// The namespace of signatures in git.
const NAMESPACE: &str = "git";
/// The most bytes of output.
const OUTPUT_MAX: u64 = 64 * 1024;
/// The beginnings of signatures.
const ARMOR: [&[u8]; 2] = [b"-----BEGIN SSH SIGNATURE-----", b"-----BEGIN PGP SIGNATURE-----"];

/// Gives `ssh-keygen` its arguments; the object comes on standard input.
pub(crate) fn with_ssh(command: &mut Command, public_key: &std::path::Path) {
    command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(public_key).env("SSH_ASKPASS_REQUIRE", "never");
}

/// Gives `gpg` its arguments.
pub(crate) fn with_gpg(command: &mut Command, key: &str) {
    command.args(["--batch", "--status-fd=2", "-bsau", key]).env_remove("GPG_TTY");
}

/// Runs the program, and returns the signature. `remedy` says what to do if it fails.
pub(crate) fn sign(mut command: Command, object: &[u8], remedy: &str) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = escape(name.rsplit('/').next().unwrap_or_default());
    let failed = |error: io::Error| format!("running `{name}`: {error}");
    // Otherwise it could ask for a passphrase at the user's terminal, in the middle of pi's screen.
    without_terminal(&mut command);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.current_dir("/").spawn().map_err(failed)?;
    let output = child.stdout.take().map(read);
    let errors = child.stderr.take().map(read);
    if let Some(mut input) = child.stdin.take() {
        let object = object.to_vec();
        // If the program has ended, its own words say why.
        std::thread::spawn(move || drop(input.write_all(&object)));
    }
    let status = ended(&mut child).map_err(failed)?;
    let status = status.ok_or_else(|| format!("`{name}` did not end in time; {remedy}"))?;
    let gathered =
        |reading: Option<JoinHandle<Vec<u8>>>| reading.and_then(|one| one.join().ok()).unwrap_or_default();
    let (output, errors) = (gathered(output), gathered(errors));
    if status.success() && ARMOR.iter().any(|armor| output.starts_with(armor)) {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&errors);
    let said = said
        .lines()
        .rfind(|line| !line.trim().is_empty() && !line.starts_with("[GNUPG:]"))
        .unwrap_or_default();
    Err(format!("`{name}` failed ({}); {remedy}", escape(said.trim())))
}

fn read(from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is shown.
        drop(from.take(OUTPUT_MAX).read_to_end(&mut bytes));
        bytes
    })
}
