//! Unix sockets of the host that have a name in the file system.
//!
//! No mount and no Landlock rule keeps a command from connecting to a visible socket, read-only or not (the kernel only
//! asks for write permission on the inode), so existing sockets are hidden one by one.

use std::collections::BTreeSet;
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::mounts::local_mount_points;
#[cfg(target_os = "linux")]
use crate::unix_diag;

/// Sockets of programs that act with the rights of root or of the user. A container can have them from outside, where
/// the kernel lists their names to other network namespaces only.
const KNOWN: [&str; 6] = [
    "/nix/var/nix/daemon-socket/socket",
    "/var/lib/containerd/containerd.sock",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/mysql/mysql.sock",
];

/// A socket of the host with a name.
struct Bound {
    /// The absolute path that it was bound to.
    name: PathBuf,
    /// The lower half of the inode number of its file, if it is known.
    inode: Option<u32>,
}

/// Returns the absolute paths to which the host's sockets are bound, those that are mounted, and those of all sockets
/// in the same directories: programs bind a temporary name and then rename or link it to the public one.
///
/// In a mounted directory below `workspace`, where commands leave sockets of their own, only bound ones are found, by
/// all their names. Unreadable sources yield nothing: the kernel has no unix sockets, or `/proc` is not mounted.
#[must_use]
pub fn bound_sockets(workspace: &[PathBuf]) -> Vec<PathBuf> {
    let bound = bound();
    let mut names: BTreeSet<PathBuf> = bound.iter().map(|socket| socket.name.clone()).collect();
    let mut around: BTreeSet<PathBuf> =
        names.iter().filter_map(|name| name.parent()).map(Path::to_owned).collect();
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    for mount in local_mount_points(&String::from_utf8_lossy(&mounts)) {
        // Programs bind nothing there, and `/proc` has a directory for each process.
        if mount.starts_with("/proc") || mount.starts_with("/sys") {
            continue;
        }
        match mount.symlink_metadata() {
            Ok(found) if found.file_type().is_socket() => {
                names.insert(mount);
            }
            Ok(found) if found.is_dir() && !workspace.iter().any(|root| mount.starts_with(root)) => {
                around.insert(mount);
            }
            Ok(_) | Err(_) => {}
        }
    }
    around.extend(KNOWN.iter().filter_map(|known| Path::new(known).parent()).map(Path::to_owned));
    names.extend(around.iter().flat_map(|directory| sockets_in(directory)));
    names.extend(renamed(&bound, workspace));
    names.into_iter().collect()
}

/// Returns the absolute paths to which the host's sockets are bound in directories for which `is_wanted` returns true,
/// those of all sockets in the same directories, and other names of bound sockets below `workspace`.
#[must_use]
pub fn bound_sockets_where(is_wanted: impl Fn(&Path) -> bool, workspace: &[PathBuf]) -> Vec<PathBuf> {
    let bound = bound();
    let mut names: BTreeSet<PathBuf> = bound.iter().map(|socket| socket.name.clone()).collect();
    let around: BTreeSet<PathBuf> =
        names.iter().filter_map(|name| name.parent()).map(Path::to_owned).collect();
    let wanted: BTreeSet<PathBuf> = around.into_iter().filter(|directory| is_wanted(directory)).collect();
    names.retain(|name| name.parent().is_some_and(|parent| wanted.contains(parent)));
    names.extend(wanted.iter().flat_map(|directory| sockets_in(directory)));
    names.extend(renamed(&bound, workspace));
    names.into_iter().collect()
}

/// Returns further names below `workspace` of sockets that were bound there. A command can give a socket that is bound
/// while it runs another name, by a hard link or by renaming a directory around it.
fn renamed(bound: &[Bound], workspace: &[PathBuf]) -> Vec<PathBuf> {
    let is_elsewhere = |socket: &&Bound| {
        let found = socket.name.symlink_metadata();
        !found.is_ok_and(|found| half_of(found.ino()) == socket.inode && found.nlink() == 1)
    };
    let inside = bound.iter().filter(|socket| {
        let name = real(&socket.name);
        workspace.iter().any(|root| name.starts_with(root))
    });
    let wanted: BTreeSet<u32> = inside.filter(is_elsewhere).filter_map(|socket| socket.inode).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = workspace.to_vec();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_socket() && half_of(entry.ino()).is_some_and(|inode| wanted.contains(&inode)) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Returns the half of an inode number that the kernel tells of a socket.
fn half_of(inode: u64) -> Option<u32> {
    u32::try_from(inode & u64::from(u32::MAX)).ok()
}

/// Returns the sockets of the host that have a name. Without an answer of the kernel about their files, other names of
/// them are not found.
fn bound() -> Vec<Bound> {
    #[cfg(target_os = "linux")]
    if let Ok(bound) = unix_diag::bound() {
        return bound.into_iter().map(|(name, inode)| Bound { name, inode }).collect();
    }
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let names = table.split(|byte| *byte == b'\n').filter_map(name);
    names.map(|name| Bound { name, inode: None }).collect()
}

fn sockets_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket())).map(|entry| entry.path())
}

/// Returns a path with the links in its existing part followed.
fn real(path: &Path) -> PathBuf {
    let existing = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    existing.map_or_else(
        || path.to_owned(),
        |(above, real)| path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest)),
    )
}

/// Parses a line of seven fields and the name, which may contain spaces; abstract names begin with `@`.
fn name(line: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let mut rest = line;
    for _ in 0..7 {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let skipped = rest.get(end..)?;
        rest = skipped.get(skipped.iter().position(|byte| *byte != b' ')?..)?;
    }
    (rest.first() == Some(&b'/')).then(|| std::ffi::OsString::from_vec(rest.to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are() {
        let read = |line: &str| name(line.as_bytes()).map(|path| path.display().to_string());
        let line = |path: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 17  {path}");
        assert_eq!(read(&line("/run/a b.sock")), Some("/run/a b.sock".to_owned()));
        for other in ["@/tmp/.X11-unix/X0", "relative", ""] {
            assert_eq!(read(&line(other)), None, "{other}");
        }
        assert_eq!(read("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_of_this_process_is_found() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        assert!(bound_sockets(&[]).contains(&path));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn other_names_in_the_project_are_found() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().canonicalize().expect("a path");
        let path = |name: &str| root.join(name);
        let bind = |name: &str| std::os::unix::net::UnixListener::bind(path(name)).expect("a socket");
        for directory in ["run", "kept", "away"] {
            std::fs::create_dir(path(directory)).expect("a directory");
        }
        let _linked = bind("run/linked");
        std::fs::hard_link(path("run/linked"), path("kept/linked")).expect("linked");
        drop(bind("kept/of-a-command"));
        let project = [root.clone()];
        let found = bound_sockets(&project);
        assert!(found.contains(&path("kept/linked")), "{found:?}");
        assert!(!found.contains(&path("kept/of-a-command")), "{found:?}");
        let _moved = bind("away/moved");
        std::fs::rename(path("away"), path("kept/away")).expect("renamed");
        // Something else has the name, so that it looks as if nothing had happened.
        let replaced = bind("replaced");
        std::fs::hard_link(path("replaced"), path("kept/replaced")).expect("linked");
        std::fs::remove_file(path("replaced")).expect("removed");
        let _other = bind("replaced");
        for found in [bound_sockets(&project), bound_sockets_where(|_| true, &project)] {
            for name in ["kept/away/moved", "kept/replaced"] {
                assert!(found.contains(&path(name)), "{name}: {found:?}");
            }
            assert!(!found.contains(&path("kept/of-a-command")), "{found:?}");
        }
        assert!(!bound_sockets(&[]).contains(&path("kept/away/moved")), "the control");
        drop(replaced);
    }

    /// Like the control socket of ssh.
    #[cfg(target_os = "linux")]
    #[test]
    fn one_that_has_got_another_name_is_found() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        let _renamed = std::os::unix::net::UnixListener::bind(path("a")).expect("a socket");
        std::fs::rename(path("a"), path("renamed")).expect("renamed");
        let _linked = std::os::unix::net::UnixListener::bind(path("b")).expect("a socket");
        std::fs::hard_link(path("b"), path("linked")).expect("linked");
        std::fs::remove_file(path("b")).expect("removed");
        std::fs::write(path("file"), "").expect("written");
        let found = bound_sockets(&[]);
        for name in ["renamed", "linked"] {
            drop(std::os::unix::net::UnixStream::connect(path(name)).expect("it leads to the program"));
            assert!(found.contains(&path(name)), "{name}");
        }
        assert!(!found.contains(&path("file")));
    }
}
