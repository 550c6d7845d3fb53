//! Debian packages without installing them: fetched with apt, unpacked into the cache.
//!
//! This needs no privilege and changes nothing on the system. apt reads the system's list of sources
//! and of installed packages; its own lists lie in the cache.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::run::{find_program, quiet};

/// A program of a Debian package.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is called by those who look for it.
    pub(super) name: &'static str,
    /// The package to ask for.
    pub(super) package: &'static str,
    /// How packages begin that hold the program itself, where `package` only stands for the current one of several.
    pub(super) stands_for: Option<&'static str>,
    /// The program's path in the package; one component may be a `*`, for a version.
    pub(super) path: &'static str,
    pub(super) start: Start,
}

/// How an unpacked program is started. In the script `$root` is where the package lies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// With the libraries that were unpacked with it.
    Plain,
    /// By these lines.
    Script(&'static str),
}

/// Where the scripts lie that start what is unpacked beside them.
const SCRIPTS: &str = "scripts";

impl Program {
    /// Unpacks it and returns a script that starts it. The directory may be copied as a whole.
    pub(super) fn provide(&self, cache: &Cache) -> Result<PathBuf> {
        let stands_for = |name: &str| self.stands_for.is_some_and(|start| name.starts_with(start));
        let directory = format!("debian-{}", self.package);
        let root =
            unpack(cache, &directory, &[self.package], |name| name == self.package || stands_for(name))?;
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

/// Finds a path with at most one `*` in it below `root`; the last of several.
fn found(root: &Path, path: &str) -> Option<String> {
    let Some((before, after)) = path.split_once('*') else {
        return root.join(path).exists().then(|| path.to_owned());
    };
    let entries = fs::read_dir(root.join(before)).ok()?.flatten();
    let paths = entries.map(|entry| format!("{before}{}{after}", entry.file_name().to_string_lossy()));
    paths.filter(|path| root.join(path).exists()).max()
}

/// Returns a directory with the `packages` unpacked, and with what they need that the system lacks.
///
/// Those that `always` picks are unpacked even if the system has them.
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

/// Makes links to what was unpacked with them, by a path of the whole system, lead there.
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

/// Returns the line of a script that lets programs find the libraries unpacked below `root`.
pub(super) fn library_path(root: &Path) -> String {
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    format!("export LD_LIBRARY_PATH='{}'\n", libraries.display())
}

/// Writes a script, unless it says that already: who copies it looks at its time.
pub(super) fn write_script(path: &Path, body: &str) -> Result<()> {
    let text = format!("#!/bin/sh\n{body}");
    if fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("writing `{}`", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context("making the script executable")
}

/// Whether the package lists were fetched in this run.
static FETCHED: AtomicBool = AtomicBool::new(false);

/// Fetches the package lists into the cache, once for each run that needs them.
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

/// Returns the packages and all that they depend on, installed or not.
fn needed(lists: &Path, packages: &[&str]) -> Result<Vec<String>> {
    let mut command = apt("apt-cache", lists);
    command.args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-enhances"]);
    command.args(["--no-conflicts", "--no-breaks", "--no-replaces"]).args(packages);
    // A package stands at the start of a line, its dependencies are indented, virtual ones in brackets.
    let text = quiet(&mut command)?;
    Ok(text.lines().filter(|line| !line.starts_with([' ', '|', '<'])).map(str::to_owned).collect())
}

fn apt(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--quiet").arg("--option").arg(format!("Dir::State::lists={}", root.join("lists").display()));
    command.arg("--option").arg(format!("Dir::Cache={}", root.display()));
    // Reading as the package manager's own user is pointless here and fails in private directories.
    command.args(["--option", "APT::Sandbox::User=root"]).env("LC_ALL", "C");
    command
}

/// Reads `Inst NAME (VERSION ...)` from a simulated installation.
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
