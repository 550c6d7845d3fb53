//! Makes programs reachable for an ordinary user when the tests run as root.
//!
//! Tools and build results are often below `/root`, which other users cannot enter. Programs for an ordinary user are
//! then copied (by hard links where the file system allows) to a folder of root's that all users can read, once for
//! each state of the original.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::User;

/// Where copies are made: the first of these that can be written. Commands do not see the machine's `/var/tmp`.
const PLACES: [&str; 2] = ["/opt", "/var/tmp"];
/// The folder of root's copies; those of other users have the user id appended.
const COPIES: &str = "portcullis-it-tools";
const ANYBODY_ENTERS: u32 = 0o001;
const ANYBODY_READS: u32 = 0o004;

/// Returns a path under which `user` can run the single file `program`.
pub(crate) fn program(program: &Path, user: User) -> Result<PathBuf> {
    if !user.is_stranger() || anybody_reads(program)? {
        return Ok(program.to_path_buf());
    }
    let name = program.file_name().context("a program has a name")?;
    Ok(copy(program)?.join(name))
}

/// Returns a path under which `user` can run `entry`, together with everything installed around it: the folder that
/// holds the outermost `node_modules` above it.
pub(crate) fn within_tree(entry: &Path, user: User) -> Result<PathBuf> {
    if !user.is_stranger() || anybody_reads(entry)? {
        return Ok(entry.to_path_buf());
    }
    let modules = entry.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
    let tree = modules.with_context(|| format!("`{}` lies in no `node_modules`", entry.display()))?;
    let inside = entry.strip_prefix(tree)?;
    Ok(copy(tree)?.join("node_modules").join(inside))
}

/// Returns a path under which `user` can read the small folder `tree`.
pub(crate) fn tree(tree: &Path, user: User) -> Result<PathBuf> {
    if !user.is_stranger() || anybody_reads(tree)? {
        return Ok(tree.to_path_buf());
    }
    let name = tree.file_name().context("a folder has a name")?;
    Ok(copy(tree)?.join(name))
}

/// Returns a path of the folder `tree` that all users can read, including commands in a sandbox: outside all homes.
pub(crate) fn outside_homes(tree: &Path) -> Result<PathBuf> {
    let name = tree.file_name().context("a folder has a name")?;
    Ok(copy(tree)?.join(name))
}

fn anybody_reads(path: &Path) -> Result<bool> {
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode());
    let entered = path.ancestors().skip(1).map(mode).collect::<Result<Vec<_>, _>>()?;
    Ok(entered.iter().all(|mode| mode & ANYBODY_ENTERS != 0) && mode(path)? & ANYBODY_READS != 0)
}

/// Returns the folder that holds a copy of `original` under its own name.
fn copy(original: &Path) -> Result<PathBuf> {
    let user = rustix::process::geteuid();
    let folder = if user.is_root() { COPIES.to_owned() } else { format!("{COPIES}-{}", user.as_raw()) };
    let is_writable = |place: &&&str| rustix::fs::access(**place, rustix::fs::Access::WRITE_OK).is_ok();
    let place = PLACES.iter().find(is_writable).context("no place for copies of programs")?;
    let folder = &Path::new(place).join(folder);
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    // Any user can create a folder in `/var/tmp`; programs may only be run from one's own.
    let own = fs::symlink_metadata(folder)?;
    let is_own = own.is_dir() && own.uid() == user.as_raw();
    ensure!(is_own, "`{}` is not a folder of your own; remove it", folder.display());
    let finished = folder.join(format!("{:016x}", state_of(original)?));
    if finished.exists() {
        return Ok(finished);
    }
    let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(folder)?;
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755))?;
    let done = cp("-al", original, fresh.path())? || cp("-a", original, fresh.path())?;
    ensure!(done, "copying `{}` for an ordinary user failed", original.display());
    match fs::rename(fresh.path(), &finished) {
        // Another test was faster; its copy is equivalent, and this one is dropped.
        Err(_) if finished.exists() => Ok(finished),
        Err(error) => Err(error).context("putting the copy into place"),
        Ok(()) => {
            // The folder was renamed: there is nothing to remove under its old name.
            let _moved = fresh.keep();
            Ok(finished)
        }
    }
}

fn cp(how: &str, original: &Path, into: &Path) -> Result<bool> {
    let result = Command::new("cp").arg(how).arg("--").args([original, into]).output();
    Ok(result.context("running `cp`")?.status.success())
}

/// The depth to which a folder is checked for changes: enough for small folders of sources, and for the packages of a
/// `node_modules`, whose contents installers never change alone.
const DEPTH: usize = 3;

/// Computes a digest that distinguishes states of `original`.
fn state_of(original: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    stamp(original, DEPTH, &mut hasher)?;
    Ok(hasher.finish())
}

fn stamp(path: &Path, depth: usize, hasher: &mut DefaultHasher) -> Result<()> {
    let found = fs::symlink_metadata(path)?;
    (path, found.ino(), found.len(), found.mtime(), found.mtime_nsec()).hash(hasher);
    if depth == 0 || !found.is_dir() {
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| stamp(entry, depth - 1, hasher))
}
