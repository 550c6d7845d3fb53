//! The Landlock rules for sandboxes without mounts: a path is hidden if no rule allows it.
//!
//! Landlock rules only add rights. If something is hidden inside a visible tree, the tree is not allowed as a whole but
//! name by name, as far down as needed: names that appear beside a hidden one later are not allowed, and neither are
//! the listings of the directories on the way.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use portcullis_sandbox::kernel_files::{DEVICES, is_for_root_alone};
use portcullis_sandbox::{Access, Places, Stage};
use portcullis_sys::landlock::{Others, Rights, create, restrict_self};
use portcullis_sys::process::{Fenced, SingleThread};
use rustix::io::Errno;

use super::super::failure::{During, Failure};
use super::{FIRST_VERSION_WITH_SCOPES, Landlock, usable_version};

impl Landlock {
    /// Makes the rules for places without mounts. Only the broker writes in writable places, except in the session's
    /// temporary directory.
    pub(crate) fn prepare_alone(places: &Places) -> Result<Self, Failure> {
        let version = version_with_scopes().during(Stage::Landlock)?;
        Self::make(&wanted(places), version)
    }
}

/// Restricts the signals of the calling process to its Landlock domain, and verifies that with a signal to `outside`, a
/// living process of the same user, which must fail.
pub(crate) fn fence(single: &SingleThread, outside: i32) -> Result<Fenced, Failure> {
    let rules = scopes()?;
    restrict_self(&rules).during(Stage::Landlock)?;
    Fenced::check(single, outside).during(Stage::Landlock)
}

/// Makes rules that only contain signals and abstract sockets.
pub(crate) fn scopes() -> Result<OwnedFd, Failure> {
    version_with_scopes().during(Stage::Landlock)?;
    create(Rights::NONE, Others::Unreachable).during(Stage::Landlock)
}

fn version_with_scopes() -> Result<u32, Errno> {
    usable_version().filter(|version| *version >= FIRST_VERSION_WITH_SCOPES).ok_or(Errno::OPNOTSUPP)
}

/// Returns the rights at each path.
fn wanted(places: &Places) -> Vec<(PathBuf, Rights)> {
    let read = Rights::EXECUTE | Rights::READ_FILE | Rights::READ_DIRECTORY;
    let use_device = Rights::WRITE_FILE | Rights::DEVICE_REQUESTS;
    let change = use_device | Rights::CHANGE_NAMES | Rights::MOVE | Rights::TRUNCATE;
    let mut shown = Vec::new();
    show(places, Path::new("/"), &mut shown);
    for (path, access) in places.iter() {
        match access {
            // Hidden paths inside are enforced by the broker.
            Access::ReadWrite => shown.push(path.to_owned()),
            Access::ReadOnly | Access::Unwritable => show(places, path, &mut shown),
            Access::Hidden => {}
        }
    }
    let mut wanted: Vec<_> = shown.into_iter().map(|path| (path, read)).collect();
    wanted.push((places.temp().to_owned(), read | change));
    wanted.extend(DEVICES.map(|device| (device.into(), Rights::READ_FILE | use_device)));
    wanted.extend(of_the_system().map(|path| (path, Rights::READ_FILE | Rights::READ_DIRECTORY)));
    wanted
}

/// Adds the visible paths of a read-only tree.
fn show(places: &Places, path: &Path, shown: &mut Vec<PathBuf>) {
    if !places.hides_below(path) {
        return shown.push(path.to_owned());
    }
    for name in names(path) {
        let below = path.join(name);
        // Another place has rules of its own.
        if !places.begins_at(&below) {
            show(places, &below, shown);
        }
    }
}

/// Returns the names in `/proc` that are about the system and not about a process.
fn of_the_system() -> impl Iterator<Item = PathBuf> {
    let is_a_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = names(Path::new("/proc")).filter(move |name| {
        name.to_str().is_some_and(|name| !is_a_process(name) && !is_for_root_alone(name))
    });
    names.map(|name| Path::new("/proc").join(name))
}

/// Returns the names in a directory without links, whose targets have rules of their own. An unreadable directory
/// yields none.
fn names(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    plain.map(|entry| entry.file_name().into())
}
