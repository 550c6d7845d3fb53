//! Probes of this machine: each mechanism is tried by itself, in a throwaway process.
//!
//! A setting of the system only states an intention; trying shows the truth. Settings serve to explain the result.

#[cfg(target_os = "linux")]
mod child;

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use portcullis_sandbox::{Facts, Finding, Primitive, Refused};

use crate::arguments::PROBE_ARGUMENT;

#[cfg(target_os = "linux")]
pub use child::probe_main;

/// The main function of a probing process; on this system there is nothing to probe.
#[cfg(not(target_os = "linux"))]
pub fn probe_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}

/// Reads the facts that the system reports about itself.
#[must_use]
pub fn read_facts() -> Facts {
    #[cfg(target_os = "linux")]
    let no_group = crate::group::parent::outlook();
    #[cfg(not(target_os = "linux"))]
    let no_group = None;
    Facts::read(no_group)
}

/// Probes every mechanism; `executable` is a program that calls [`probe_main`] when its first argument is
/// [`PROBE_ARGUMENT`], usually the running one.
#[must_use]
pub fn probe(executable: &Path) -> Vec<Finding> {
    let find = |primitive| Finding { primitive, outcome: attempt(executable, primitive) };
    Primitive::ALL.into_iter().map(find).collect()
}

fn attempt(executable: &Path, primitive: Primitive) -> Result<String, Refused> {
    let broken = |doing: &str, error: &std::io::Error| Refused {
        doing: doing.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
    };
    let mut child = Command::new(executable)
        .args([PROBE_ARGUMENT, primitive.name()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| broken("starting a process to try it in", &error))?;
    let mut answer = String::new();
    // Reads until every process that inherited the pipe has ended.
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    child.wait().map_err(|error| broken("waiting for the process that tried it", &error))?;
    if let Some(Err(error)) = read {
        return Err(broken("reading its result", &error));
    }
    parse(&answer)
}

/// Parses `ok` or an errno, followed by a text.
fn parse(answer: &str) -> Result<String, Refused> {
    match answer.trim_end_matches('\n').split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some((errno, doing)) => {
            Err(Refused { doing: doing.to_owned(), errno: errno.parse().unwrap_or_default() })
        }
        None => Err(Refused { doing: "the process that tried it died".to_owned(), errno: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        assert_eq!(parse("ok version 7\n"), Ok("version 7".to_owned()));
        let refused = parse("1 making namespaces\n").expect_err("refused");
        assert_eq!((refused.errno, refused.doing.as_str()), (1, "making namespaces"));
        assert!(refused.to_string().starts_with("making namespaces: Operation not permitted"));
        assert_eq!(parse("").expect_err("died").errno, 0);
    }
}
