//! The resources of the machine: programs, hosts, and the variables that tell programs about certificates.

use std::env;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use portcullis_it::{Deadline, Finished, User, for_commands};

use crate::Task;
use crate::home::Home;

/// Holds folders of further programs, separated by colons; `cargo xtask everyday` sets it.
const PROGRAMS: &str = "PORTCULLIS_EVERYDAY_PROGRAMS";
/// Parts of the names of variables that say which certificates are trusted and how the network is reached.
const KEPT: [&str; 7] = ["CERT", "SSL", "CA_BUNDLE", "CAINFO", "_proxy", "_PROXY", "PIP_DEFAULT_TIMEOUT"];
/// The time that a host has to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The programs and hosts that tasks may need.
#[derive(Debug)]
pub struct Machine {
    programs: Vec<PathBuf>,
    variables: Vec<(String, String)>,
}

impl Machine {
    /// Looks at the machine.
    ///
    /// # Errors
    ///
    /// If a folder of programs cannot be made reachable for commands of any user.
    pub fn look() -> Result<Self> {
        let mut programs = vec![toolchain()?.join("bin")];
        let named = env::var_os(PROGRAMS).unwrap_or_default();
        for folder in env::split_paths(&named).filter(|folder| folder.is_dir()) {
            // Programs need what was unpacked beside them.
            let root = folder.parent().context("a folder of programs lies in another one")?;
            let name = folder.file_name().context("a folder has a name")?;
            programs.push(for_commands(root)?.join(name));
        }
        let kept = |name: &str| KEPT.iter().any(|part| name.contains(part));
        let variables = env::vars().filter(|(name, _)| kept(name)).collect();
        Ok(Self { programs, variables })
    }

    /// Returns folders of programs outside those of the system.
    #[must_use]
    pub fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// Returns the variables that each command gets beside those of the home.
    #[must_use]
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Returns what a task needs and this machine does not have for a user.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn missing(&self, task: &Task, user: User) -> Result<Vec<String>> {
        let home = Home::new(self, user)?;
        let mut missing = Vec::new();
        for program in &task.needs {
            let script = format!("command -v '{program}' > /dev/null");
            if home.run_script(&script, Deadline::start())?.code() != 0 {
                missing.push(program.clone());
            }
        }
        if let Some(probe) = task.probe.as_ref().filter(|_| missing.is_empty())
            && home.run_script(probe, Deadline::start())?.code() != 0
        {
            missing.push(format!("`{probe}`"));
        }
        missing.extend(task.hosts.iter().filter(|host| !is_reachable(host)).cloned());
        Ok(missing)
    }
}

/// Returns the Rust toolchain in use, at a path for commands of any user: rustup's own programs only work in the home
/// that they were installed in.
fn toolchain() -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    let printed = Finished::run(rustc.args(["--print", "sysroot"]).current_dir("/"))?.ended_with(0)?;
    for_commands(Path::new(printed.stdout.trim()))
}

fn is_reachable(host: &str) -> bool {
    let mut addresses = (host, 443).to_socket_addrs().into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}
