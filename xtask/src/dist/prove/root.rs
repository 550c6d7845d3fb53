//! A plain Debian in a directory, in which scripts run as if it were the machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::dist::tools;
use crate::project;
use crate::run::{quiet, show};

const ENTER: &str = include_str!("enter.sh");
/// The user of the proofs.
pub(super) const USER: Who = Who { id: 1000, home: "/home/user" };
/// Root of the new root.
pub(super) const ROOT: Who = Who { id: 0, home: "/root" };

/// A user there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who {
    id: u32,
    home: &'static str,
}

/// The directory; it is removed with this value.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
}

impl Root {
    /// Unpacks a base system of Debian with one user and no more than its essential packages.
    pub(super) fn fresh() -> Result<Self> {
        if quiet(Command::new("id").arg("-u"))?.trim() != "0" {
            bail!("the proof changes into other roots, so it needs to be root");
        }
        let root = Self { path: project::target_directory()?.join("dist-root") };
        root.clear()?;
        fs::create_dir_all(&root.path).context("making a directory for the root")?;
        quiet(Command::new("tar").arg("-xf").arg(tools::debian_base()?).arg("-C").arg(&root.path))?;
        let passwd = root.path.join("etc/passwd");
        let users = fs::read_to_string(&passwd).context("reading the users")?;
        let Who { id, home } = USER;
        fs::write(passwd, format!("{users}user:x:{id}:{id}::{home}:/bin/bash\n")).context("adding a user")?;
        for directory in [home.to_owned(), format!("{home}/project")] {
            let directory = root.path.join(directory.trim_start_matches('/'));
            fs::create_dir(&directory)?;
            chown(&directory, Some(id), Some(id))?;
        }
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a command into `/opt/bin`: a copy of the program, or a script that starts it with a first argument.
    pub(super) fn command(&self, name: &str, program: &Path, argument: Option<&Path>) -> Result<()> {
        let directory = self.path.join("opt/bin");
        fs::create_dir_all(&directory)?;
        let file = directory.join(name);
        match argument {
            None => fs::copy(program, &file).map(drop).context("copying a program")?,
            Some(argument) => {
                let text = format!("#!/bin/sh\nexec {} {} \"$@\"\n", program.display(), argument.display());
                fs::write(&file, text)?;
            }
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).context("making it executable")
    }

    /// Runs a script of bash there, with directories of this machine bound to it, read-only.
    pub(super) fn run(&self, who: Who, binds: &[(&Path, &str)], script: &str) -> Result<()> {
        let binds: String = binds.iter().map(|(from, to)| format!("{} {to}\n", from.display())).collect();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "sh",
            "-c",
            ENTER,
        ]);
        command.arg("enter").arg(&self.path).arg(who.id.to_string()).args([who.home, &binds, script]);
        show(&mut command).map_err(|_| anyhow::anyhow!("the script failed; its last line above says where"))
    }

    fn clear(&self) -> Result<()> {
        if self.path.exists() {
            fs::remove_dir_all(&self.path).with_context(|| format!("removing `{}`", self.path.display()))?;
        }
        Ok(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            crate::run::say(format_args!("{error:#}"));
        }
    }
}
