//! Attacks on a sandbox from inside, with controls: a sandbox that has not passed them runs no command.
//!
//! One script makes all attacks. It first runs without the sandbox, where each attack must succeed: one that fails
//! there proves nothing. Then it runs in the sandbox, where each must fail, and where ordinary work must succeed.

mod scene;
mod script;

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use portcullis_sandbox::{Command, Limits, Terminal};

use crate::error::ProfileError;
use crate::launcher::Launcher;

pub use crate::findings::{Finding, Findings, Outcome};
pub use scene::Scene;
use script::{ATTACKS, CONTROLS, END, Variables};

/// How long the script may take; without a fault it takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the test. `scene` holds the files that are attacked.
pub(crate) fn run(launcher: &Launcher, scene: &Scene<'_>) -> Result<Findings, ProfileError> {
    let failed = |doing| move |source| ProfileError::Test { doing, source };
    // It accepts nothing: the kernel completes connections that wait.
    let server = TcpListener::bind("127.0.0.1:0").map_err(failed("listening on a port"))?;
    let port = server.local_addr().map_err(failed("listening on a port"))?.port();
    let victim = Victim::start().map_err(failed("starting a process to attack"))?;
    let variables = Variables { scene, server: port, victim: victim.0.id() };
    scene.prepare().map_err(failed("making files to attack"))?;
    let free = without(&variables).map_err(failed("attacking without the sandbox"))?;
    scene.prepare().map_err(failed("making files to attack"))?;
    let confined = within(launcher, &variables).map_err(failed("attacking in the sandbox"))?;
    Ok(judge(&free, &confined))
}

/// Judges what succeeded without the sandbox and in it.
fn judge(free: &BTreeSet<String>, confined: &BTreeSet<String>) -> Findings {
    let attacks = ATTACKS.iter().map(|&(what, _)| {
        let outcome = match (free.contains(what), confined.contains(what)) {
            (_, true) => Outcome::CameThrough,
            (true, false) => Outcome::Good,
            (false, false) => Outcome::Untried,
        };
        Finding { what, is_attack: true, outcome }
    });
    let controls = CONTROLS.iter().map(|&(what, _)| {
        let outcome = if confined.contains(what) { Outcome::Good } else { Outcome::NotWorking };
        Finding { what, is_attack: false, outcome }
    });
    // A script that has not come to its end has not tried everything.
    let end = Finding {
        what: END,
        is_attack: false,
        outcome: if confined.contains(END) { Outcome::Good } else { Outcome::NotWorking },
    };
    Findings { list: attacks.chain(controls).chain([end]).collect() }
}

fn without(variables: &Variables<'_>) -> std::io::Result<BTreeSet<String>> {
    let [program, arguments @ ..] = script::argv();
    let mut shell = std::process::Command::new(program);
    shell.args(arguments).env_clear().envs(variables.list()).current_dir(&variables.scene.open);
    let output = shell.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    Ok(lines(&String::from_utf8_lossy(&output.stdout)))
}

fn within(launcher: &Launcher, variables: &Variables<'_>) -> std::io::Result<BTreeSet<String>> {
    // A file, and not a pipe: a process that stays behind cannot keep its reader waiting.
    let results = variables.scene.closed.join("results");
    let null = |path: &Path| File::options().read(true).write(true).open(path);
    let streams = [null(Path::new("/dev/null"))?, File::create(&results)?, null(Path::new("/dev/null"))?];
    let command = Command {
        argv: script::argv().map(Into::into).to_vec(),
        env: variables.list().into_iter().map(|(name, value)| (name.into(), value)).collect(),
        cwd: variables.scene.open.clone(),
        limits: Limits::default(),
        terminal: Terminal::None,
    };
    let running = launcher.launch(command, streams.map(Into::into)).map_err(std::io::Error::other)?;
    if running.wait_timeout(PATIENCE).is_none() {
        running.kill();
    }
    drop(running);
    Ok(lines(&std::fs::read_to_string(results)?))
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// A process outside of the sandbox.
struct Victim(std::process::Child);

impl Victim {
    fn start() -> std::io::Result<Self> {
        let mut sleep = std::process::Command::new("/bin/sleep");
        sleep.arg("120").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sleep.spawn().map(Self)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // The attack may have ended it; it only must not stay behind.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
        names.into_iter().map(str::to_owned).collect()
    }

    fn attacks() -> impl Iterator<Item = &'static str> {
        ATTACKS.iter().map(|(what, _)| *what)
    }

    fn controls() -> impl Iterator<Item = &'static str> {
        CONTROLS.iter().map(|(what, _)| *what).chain([END])
    }

    #[test]
    fn one_fault_of_any_kind_is_enough() {
        let (free, good) = (set(attacks()), set(controls()));
        assert!(judge(&free, &good).are_good());
        for attack in attacks() {
            let through = judge(&free, &set(controls().chain([attack])));
            assert!(!through.are_good() && through.to_string().contains(&format!("not stopped: {attack}")));
            let untried = judge(&set(attacks().filter(|other| *other != attack)), &good);
            assert!(!untried.are_good() && untried.to_string().contains(attack), "{untried}");
        }
        for control in controls() {
            let found = judge(&free, &set(controls().filter(|other| *other != control)));
            assert!(!found.are_good() && found.to_string().contains(control), "{found}");
        }
        assert!(!Findings { list: Vec::new() }.are_good());
    }
}
