//! `policy try`: asks a policy about requests, one a line.

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use clap::Parser;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::{complain, say};
use portcullis_command_line::args::action::Action;
use portcullis_command_line::args::policy::Try;
use portcullis_command_line::exit::{self, Exit};
use portcullis_policy_runtime::ComponentPolicy;
use portcullis_policy_tools::Component;

use super::once::{ask, load};

/// The longest line, in bytes: as long as a script may be.
const LONGEST: u64 = 1 << 20;

/// A line.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    action: Action,
}

pub(super) fn run(args: &Try) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let mut loaded = Loaded::new(&args.policy, &args.config)?;
    if stdin().is_terminal() {
        say("A request a line, as `exec npm publish` or `read ~/.ssh/id_ed25519`; Ctrl+D ends.");
    }
    let mut exit = Exit::Done;
    let mut input = stdin().lock();
    loop {
        let mut line = String::new();
        let read = std::io::Read::take(&mut input, LONGEST).read_line(&mut line);
        if read.context("reading a request")? == 0 {
            return Ok(exit);
        }
        if line.trim().is_empty() {
            continue;
        }
        let asked = action(line.trim()).and_then(|action| {
            loaded.renew(args)?;
            ask(&around, Arc::clone(&loaded.policy), action, args.json)
        });
        if let Err(error) = asked {
            complain(&error);
            exit = Exit::Bad;
        }
    }
}

/// Reads a request.
fn action(line: &str) -> anyhow::Result<Action> {
    let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let mut words = vec![verb];
    match rest.split_once(char::is_whitespace) {
        Some((name, input)) if verb == "tool" => words.extend([name, input.trim()]),
        _ if rest.is_empty() => {}
        // A path or a script may begin with a dash.
        _ => words.extend(["--", rest]),
    }
    let line = Line::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        anyhow::anyhow!("{first}; write `exec SCRIPT`, `read PATH`, `connect HOST:PORT` or `tool NAME JSON`")
    })?;
    Ok(line.action)
}

/// A policy, and when its component was written.
struct Loaded {
    policy: Arc<ComponentPolicy>,
    written: Option<SystemTime>,
}

impl Loaded {
    fn new(policy: &Path, config: &str) -> anyhow::Result<Self> {
        let component = Component::open(policy)?;
        Ok(Self { written: written(&component.file), policy: load(&component, config)? })
    }

    /// Loads the policy again if its component was written since.
    fn renew(&mut self, args: &Try) -> anyhow::Result<()> {
        let component = Component::open(&args.policy)?;
        if written(&component.file) != self.written {
            *self = Self::new(&args.policy, &args.config)?;
        }
        Ok(())
    }
}

fn written(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_is_not_quoted() {
        let script = |line: &str| {
            let Action::Exec { script } = action(line).unwrap() else { panic!("{line}") };
            script
        };
        assert_eq!(script("exec git commit -m 'a  b'"), "git commit -m 'a  b'");
        assert_eq!(script("exec --version"), "--version");
        let tool = action("tool fetch {\"url\": \"https://a.test\"}").unwrap();
        assert!(matches!(tool, Action::Tool { name, .. } if name == "fetch"));
        for wrong in ["run x", "read", "connect a.test", "tool fetch", "tool fetch {"] {
            let told = action(wrong).unwrap_err().to_string();
            assert!(told.contains("exec SCRIPT") && !told.contains('\n'), "{told}");
        }
    }
}
