//! The programs in the place of `ssh-keygen` and `gpg`, with which git signs: the host signs outside, if it may.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use crate::program::{become_program, say};

/// The variable with the socket of the host.
const SIGNER: &str = "PORTCULLIS_SIGNER";
/// The first bytes of a request to the host.
const GREETING: &str = "portcullis-sign/1";
/// The first byte of the answer with a signature.
const SIGNED: u8 = b'S';
/// The longest answer, in bytes.
const ANSWER_MAX: u64 = 1 << 20;

/// Does the work of `ssh-keygen -Y sign -n git -f KEY FILE`, and leaves everything else to the program itself, also
/// signatures of another namespace.
pub(crate) fn ssh_keygen(words: &[OsString]) -> ExitCode {
    let has = |two: [&str; 2]| words.windows(2).any(|words| words == two);
    let is_of_git = has(["-Y", "sign"]) && has(["-n", "git"]);
    let Some(file) = words.last().filter(|_| is_of_git) else { return become_program("ssh-keygen", words) };
    let mut place = file.clone();
    place.push(".sig");
    let signed = std::fs::read(Path::new(file)).and_then(|buffer| signature("ssh", &buffer));
    ended(signed.and_then(|signature| std::fs::write(place, signature)))
}

/// Does the work of `gpg -bsau KEY`, and leaves everything else to the program itself.
pub(crate) fn gpg(words: &[OsString]) -> ExitCode {
    if !words.iter().any(|word| word == "-bsau") {
        return become_program("gpg", words);
    }
    let mut buffer = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut buffer);
    ended(read.and_then(|_| signature("gpg", &buffer)).and_then(|signature| {
        io::stdout().lock().write_all(&signature)?;
        // Git looks for this line.
        io::stderr().lock().write_all(b"\n[GNUPG:] SIG_CREATED D\n")
    }))
}

/// Has the host sign a commit or a tag.
fn signature(form: &str, buffer: &[u8]) -> io::Result<Vec<u8>> {
    let missing = || io::Error::other("the settings have no key to sign with");
    let mut host = UnixStream::connect(std::env::var_os(SIGNER).ok_or_else(missing)?)?;
    host.write_all(format!("{GREETING}\0{form}\0{}\0", buffer.len()).as_bytes())?;
    host.write_all(buffer)?;
    let mut answer = Vec::new();
    host.take(ANSWER_MAX).read_to_end(&mut answer)?;
    match answer.split_first() {
        Some((&SIGNED, signature)) => Ok(signature.to_vec()),
        Some((_, why)) => Err(io::Error::other(String::from_utf8_lossy(why).into_owned())),
        None => Err(io::Error::other("the sandbox has ended the connection")),
    }
}

fn ended(signed: io::Result<()>) -> ExitCode {
    match signed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("portcullis: not signed: {error}"));
            ExitCode::FAILURE
        }
    }
}
