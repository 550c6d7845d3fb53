//! The program inside the sandbox that git uses in the place of `ssh`, and to sign, of `ssh-keygen` and `gpg`.
//!
//! It tells the gate the command of git and passes the bytes of git's protocol on; the gate runs the user's own `ssh`
//! outside. For a host that is not declared, it runs the `ssh` of the sandbox with the same arguments. It decides
//! nothing: a changed or replaced client can send the gate only what this one can send.
//!
//! `portcullis-bootstrap` builds it as one file without dependencies, and puts it into the program.

mod arguments;
mod program;
mod sign;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::ExitCode;

use arguments::Arguments;
use program::{FAILED, become_program, say};

/// The first bytes of a request to the gate.
const GREETING: &[u8] = b"portcullis-git/1";
/// The variable with the declared hosts, as `host:port` with spaces between them.
const HOSTS: &str = "PORTCULLIS_SSH_HOSTS";
/// The kinds of messages from the gate.
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
const END: u8 = 3;
/// The longest message of the gate, in bytes.
const MESSAGE_MAX: usize = 1 << 20;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    let name = Path::new(&own).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The host gives the file a name that begins with the role.
    match name {
        name if name.starts_with("git-ssh-keygen-") => sign::ssh_keygen(&words),
        name if name.starts_with("git-gpg-") => sign::gpg(&words),
        _ => ssh(&words),
    }
}

/// Does the work of `ssh`.
fn ssh(words: &[OsString]) -> ExitCode {
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let declared = std::env::var(HOSTS).unwrap_or_default();
    let arguments = Arguments::parse(&texts).filter(|arguments| arguments.is_for_one_of(&declared));
    let Some(arguments) = arguments else { return become_program("ssh", words) };
    let ended = carry(&arguments).unwrap_or_else(|error| {
        let host = &arguments.host;
        say(&format!(
            "portcullis: the connection to {host} is closed: {error}; the sandbox says why at the end"
        ));
        FAILED
    });
    ExitCode::from(ended)
}

/// Has the gate run the command, and returns its exit status.
fn carry(arguments: &Arguments) -> io::Result<u8> {
    let mut gate = TcpStream::connect((arguments.host.as_str(), arguments.port))?;
    // Latency only.
    drop(gate.set_nodelay(true));
    let protocol = std::env::var("GIT_PROTOCOL").unwrap_or_default();
    let parts = [arguments.user.as_str(), protocol.as_str(), arguments.command.as_str()];
    let mut request = GREETING.to_vec();
    for part in parts {
        request.push(0);
        request.extend_from_slice(part.as_bytes());
    }
    request.push(0);
    gate.write_all(&request)?;
    let mut sending = gate.try_clone()?;
    std::thread::spawn(move || {
        // If the gate has closed the connection, the other direction says so.
        drop(io::copy(&mut io::stdin().lock(), &mut sending));
        drop(sending.shutdown(Shutdown::Write));
    });
    receive(&mut gate)
}

/// Passes the messages of the gate on, up to the exit status.
fn receive(gate: &mut impl Read) -> io::Result<u8> {
    let mut message = Vec::new();
    loop {
        let mut front = [0; 5];
        gate.read_exact(&mut front)?;
        let [kind, length @ ..] = front;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
        if length > MESSAGE_MAX {
            return Err(io::Error::other("it sent no message"));
        }
        message.resize(length, 0);
        gate.read_exact(&mut message)?;
        match kind {
            OUTPUT => {
                let mut output = io::stdout().lock();
                output.write_all(&message)?;
                output.flush()?;
            }
            ERRORS => io::stderr().lock().write_all(&message)?,
            END => return Ok(message.first().copied().unwrap_or(FAILED)),
            _ => return Err(io::Error::other("it sent no message")),
        }
    }
}
