//! Unix sockets of the host that have a name in the file system.
//!
//! No mount and no Landlock rule keeps a command from connecting to a visible socket, read-only or not (the kernel only
//! asks for write permission on the inode), so existing sockets are hidden one by one.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::mounts::local_mount_points;

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

/// Returns the absolute paths to which the host's sockets are bound, those that are mounted, and those of all sockets
/// in the same directories: programs bind a temporary name and then rename or link it to the public one.
///
/// In a mounted directory below `workspace`, where commands leave sockets of their own, only bound ones are found.
/// Unreadable sources yield nothing: the kernel has no unix sockets, or `/proc` is not mounted.
#[must_use]
pub fn bound_sockets(workspace: &[PathBuf]) -> Vec<PathBuf> {
    let text = |file: &str| std::fs::read(file).unwrap_or_default();
    let bound = text("/proc/net/unix");
    let mut names: BTreeSet<PathBuf> = bound.split(|byte| *byte == b'\n').filter_map(name).collect();
    let mut around: BTreeSet<PathBuf> =
        names.iter().filter_map(|name| name.parent()).map(Path::to_owned).collect();
    let mounts = text("/proc/self/mountinfo");
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
    names.into_iter().collect()
}

fn sockets_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket())).map(|entry| entry.path())
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
