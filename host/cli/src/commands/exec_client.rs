//! `portcullis exec-client`: replaces a command that a tool of another extension starts.
//!
//! pi's extension knows the command; this process only passes on its working directory and environment. The command
//! runs in the session's sandbox, and its output is returned to the process that started this one.

use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::ExecClient;
use portcullis_command_line::exit::{self, Exit, RUN_REFUSED};
use serde_json::json;

/// Maximum length of one part from the extension.
const LONGEST_PART: u32 = 1 << 20;

/// A message from the extension: its kind, the length of the content (big-endian), and the content.
enum Part {
    /// Part of the command's output.
    Output(Vec<u8>),
    /// The exit status.
    Status(u8),
    /// Why the command did not run.
    Refused(String),
}

/// Has the command run, and exits with its status.
pub(crate) fn run(client: &ExecClient) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut stream = UnixStream::connect(&client.socket).context("reaching pi; its session may be over")?;
    let environment: std::collections::BTreeMap<_, _> = around.variables.into_iter().collect();
    let request = json!({ "ticket": client.ticket, "cwd": around.cwd, "env": environment });
    writeln!(stream, "{request}").context("telling pi what to run")?;
    let mut output = portcullis_bootstrap::streams::output().lock();
    loop {
        match part(&mut stream).context("reading the output of the command from pi")? {
            Part::Output(bytes) => {
                output.write_all(&bytes)?;
                output.flush()?;
            }
            Part::Status(status) => return Ok(Exit::Command(status)),
            Part::Refused(why) => {
                say(&why);
                return Ok(Exit::Command(RUN_REFUSED));
            }
        }
    }
}

fn part(from: &mut impl Read) -> anyhow::Result<Part> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = u32::from_be_bytes(length);
    if length > LONGEST_PART {
        bail!("a part of {length} bytes is longer than {LONGEST_PART}");
    }
    let mut bytes = vec![0; usize::try_from(length)?];
    from.read_exact(&mut bytes)?;
    Ok(match (kind, bytes.as_slice()) {
        (b'o', _) => Part::Output(bytes),
        (b's', [status]) => Part::Status(*status),
        (b'r', _) => Part::Refused(String::from_utf8_lossy(&bytes).into_owned()),
        (kind, _) => bail!("parts of the kind {kind} are unknown"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let read = |bytes: &[u8]| part(&mut &*bytes);
        assert!(matches!(read(b"o\0\0\0\x02hi"), Ok(Part::Output(bytes)) if bytes == b"hi"));
        assert!(matches!(read(b"s\0\0\0\x01\x07"), Ok(Part::Status(7))));
        assert!(matches!(read(b"r\0\0\0\x02no"), Ok(Part::Refused(why)) if why == "no"));
        for bad in [&b"s\0\0\0\x02ab"[..], b"x\0\0\0\0", b"o\0\0\0\x05ab", b"o\xff\xff\xff\xff", b""] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
