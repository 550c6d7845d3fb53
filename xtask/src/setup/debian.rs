//! Unpacks Debian packages into the cache with apt, without installing them.
//!
//! This needs no privileges and changes nothing on the system. apt reads the system's source list and the
//! list of installed packages; its own lists are in the cache.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::run::{find_program, quiet};

/// A program in a Debian package.
#[derive(Debug)]
pub(super) struct Program {
    /// The command name.
    pub(super) name: &'static str,
    /// The package to request.
    pub(super) package: &'static str,
    /// Start of the names of packages that are unpacked even if the system has them: those for which `package` is only
    /// an alias, and those whose files the program looks for beside its own.
    pub(super) with: Option<&'static str>,
    /// The program's path in the package. One component may be a `*` that stands for a version.
    pub(super) path: &'static str,
    pub(super) start: Start,
}

/// How to start an unpacked program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// Directly, with the libraries that were unpacked with it.
    Plain,
    /// By these shell lines, where `$root` is the directory of the package.
    Script(&'static str),
}

/// Directory of the start scripts, inside the unpacked package.
const SCRIPTS: &str = "scripts";

impl Program {
    /// Unpacks the program and returns a script that starts it. The directory can be copied as a whole.
    pub(super) fn provide(&self, cache: &Cache) -> Result<PathBuf> {
        let belongs = |name: &str| self.with.is_some_and(|start| name.starts_with(start));
        let directory = format!("debian-{}", self.package);
        let root = unpack(cache, &directory, &[self.package], |name| name == self.package || belongs(name))?;
        let lines = match self.start {
            Start::Plain => {
                let path = found(&root, self.path)
                    .with_context(|| format!("`{}` is not in the package {}", self.path, self.package))?;
                format!("exec \"$root/{path}\" \"$@\"")
            }
            Start::Script(lines) => lines.to_owned(),
        };
        let body = format!(
            "root=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\n\
             libraries=$root/usr/lib/{}-linux-gnu\n\
             export LD_LIBRARY_PATH=\"$libraries\"\n{lines}\n",
            std::env::consts::ARCH
        );
        let script = root.join(SCRIPTS).join(self.name);
        fs::create_dir_all(root.join(SCRIPTS)).context("creating the directory for scripts")?;
        write_script(&script, &body)?;
        Ok(script)
    }
}

/// Returns the path that matches a pattern with at most one `*`, relative to `root`.
///
/// Prefers the last of several matches.
fn found(root: &Path, path: &str) -> Option<String> {
    let Some((before, after)) = path.split_once('*') else {
        return root.join(path).exists().then(|| path.to_owned());
    };
    let entries = fs::read_dir(root.join(before)).ok()?.flatten();
    let paths = entries.map(|entry| format!("{before}{}{after}", entry.file_name().to_string_lossy()));
    paths.filter(|path| root.join(path).exists()).max()
}

/// Returns a directory with the `packages` unpacked, with all dependencies that the system lacks.
///
/// Packages that `always` selects are unpacked even if they are installed.
pub(super) fn unpack(
    cache: &Cache,
    name: &str,
    packages: &[&str],
    always: impl Fn(&str) -> bool,
) -> Result<PathBuf> {
    cache.directory(name, |root| {
        let hint = || {
            format!("fetching the Debian packages {packages:?}; where apt is absent, install them yourself")
        };
        find_program("apt-get").with_context(hint)?;
        let lists = lists(cache)?;
        let plan = quiet(
            apt("apt-get", &lists).args(["install", "--simulate", "--no-install-recommends"]).args(packages),
        )
        .with_context(hint)?;
        let mut wanted: Vec<String> = plan.lines().filter_map(new_package).collect();
        wanted.extend(needed(&lists, packages).with_context(hint)?.into_iter().filter(|name| always(name)));
        wanted.sort();
        wanted.dedup();
        let archives = root.join("archives");
        fs::create_dir(&archives).context("creating the directory for archives")?;
        quiet(apt("apt-get", &lists).arg("download").args(&wanted).current_dir(&archives))
            .with_context(hint)?;
        for archive in fs::read_dir(&archives)? {
            quiet(Command::new("dpkg").arg("--extract").arg(archive?.path()).arg(root))?;
        }
        fs::remove_dir_all(&archives).context("removing the archives")?;
        keep_links_inside(root, root)
    })
}

/// Turns absolute symlinks to unpacked files into relative ones that stay inside `root`.
fn keep_links_inside(root: &Path, directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            keep_links_inside(root, &path)?;
        }
        let target = if kind.is_symlink() { fs::read_link(&path)? } else { continue };
        let Ok(inside) = target.strip_prefix("/") else { continue };
        if root.join(inside).symlink_metadata().is_ok() {
            let depth = directory.strip_prefix(root)?.components().count();
            fs::remove_file(&path)?;
            symlink(Path::new(&"../".repeat(depth)).join(inside), &path)?;
        }
    }
    Ok(())
}

/// Returns a script line that lets programs find the libraries unpacked below `root`.
pub(super) fn library_path(root: &Path) -> String {
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    format!("export LD_LIBRARY_PATH='{}'\n", libraries.display())
}

/// Writes a script.
///
/// Leaves a file with the same content alone, because copies are refreshed by modification time.
pub(super) fn write_script(path: &Path, body: &str) -> Result<()> {
    let text = format!("#!/bin/sh\n{body}");
    if fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("writing `{}`", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context("making the script executable")
}

/// True if the package lists were fetched in this run.
static FETCHED: AtomicBool = AtomicBool::new(false);

/// Fetches the package lists into the cache, at most once per run.
fn lists(cache: &Cache) -> Result<PathBuf> {
    let root = cache.path("apt");
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(root.join(part)).context("creating apt's directories")?;
    }
    if !FETCHED.load(Ordering::Relaxed) {
        quiet(apt("apt-get", &root).arg("update"))
            .context("fetching Debian's package lists; look at /etc/apt and the network")?;
        FETCHED.store(true, Ordering::Relaxed);
    }
    Ok(root)
}

/// Returns the packages and all their dependencies, installed or not.
fn needed(lists: &Path, packages: &[&str]) -> Result<Vec<String>> {
    let mut command = apt("apt-cache", lists);
    command.args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-enhances"]);
    command.args(["--no-conflicts", "--no-breaks", "--no-replaces"]).args(packages);
    // Package names start at the beginning of a line. Dependencies are indented, and virtual packages are in
    // angle brackets.
    let text = quiet(&mut command)?;
    Ok(text.lines().filter(|line| !line.starts_with([' ', '|', '<'])).map(str::to_owned).collect())
}

fn apt(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--quiet").arg("--option").arg(format!("Dir::State::lists={}", root.join("lists").display()));
    command.arg("--option").arg(format!("Dir::Cache={}", root.display()));
    // apt's own user cannot read private directories, and dropping privileges has no use here.
    command.args(["--option", "APT::Sandbox::User=root"]).env("LC_ALL", "C");
    command
}

/// Parses a line `Inst NAME (VERSION ...)` of a simulated installation.
fn new_package(line: &str) -> Option<String> {
    line.strip_prefix("Inst ")?.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_packages_of_a_simulation_are_fetched() {
        assert_eq!(new_package("Inst lld-14 (1:14.0.6-12 Debian:12 [amd64])").as_deref(), Some("lld-14"));
        assert_eq!(new_package("Conf lld-14 (1:14.0.6-12 Debian:12 [amd64])"), None);
        assert_eq!(new_package("Reading package lists..."), None);
    }

    #[test]
    fn what_was_unpacked_is_found_and_its_links_stay_inside() {
        let root = std::env::temp_dir().join(format!("xtask-debian-{}", std::process::id()));
        for version in ["13", "15"] {
            fs::create_dir_all(root.join("usr/lib/db").join(version)).unwrap();
        }
        fs::create_dir_all(root.join("etc/db")).unwrap();
        fs::write(root.join("usr/lib/db/13/run"), "").unwrap();
        fs::write(root.join("etc/db/settings"), "inside").unwrap();
        symlink("/etc/db/settings", root.join("usr/lib/db/15/settings")).unwrap();
        symlink("/etc/nothing", root.join("usr/lib/db/15/other")).unwrap();
        keep_links_inside(&root, &root).unwrap();
        assert_eq!(found(&root, "usr/lib/db/*/run").as_deref(), Some("usr/lib/db/13/run"));
        assert_eq!(found(&root, "usr/lib/db/*/none"), None);
        assert_eq!(found(&root, "etc/db/settings").as_deref(), Some("etc/db/settings"));
        assert_eq!(fs::read_to_string(root.join("usr/lib/db/15/settings")).unwrap(), "inside");
        assert_eq!(fs::read_link(root.join("usr/lib/db/15/other")).unwrap(), Path::new("/etc/nothing"));
        fs::remove_dir_all(root).unwrap();
    }
}
