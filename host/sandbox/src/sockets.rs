//! Unix sockets of the host that have a name in the file system.
//!
//! No mount and no Landlock rule keeps a command from connecting to a visible socket, read-only or not (the kernel only
//! asks for write permission on the inode), so existing sockets are hidden one by one.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Returns the absolute paths to which the host's sockets are bound, and those of all sockets in the same directories:
/// programs bind a temporary name and then rename or link it to the public one.
///
/// Unreadable sources yield nothing: the kernel has no unix sockets, or `/proc` is not mounted.
#[must_use]
pub fn bound_sockets() -> Vec<PathBuf> {
    let text = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mut names: BTreeSet<PathBuf> = text.split(|byte| *byte == b'\n').filter_map(name).collect();
    let around: BTreeSet<PathBuf> =
        names.iter().filter_map(|name| name.parent()).map(Path::to_owned).collect();
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
        assert!(bound_sockets().contains(&path));
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
        let found = bound_sockets();
        for name in ["renamed", "linked"] {
            drop(std::os::unix::net::UnixStream::connect(path(name)).expect("it leads to the program"));
            assert!(found.contains(&path(name)), "{name}");
        }
        assert!(!found.contains(&path("file")));
    }
}
