//! Unix sockets of the host that have a name in the file system.
//!
//! No mount and no Landlock rule keeps a command from connecting to a socket that it sees, read-only or not
//! (the kernel asks for write permission on the inode alone), so those that are there are hidden one by one.

use std::path::PathBuf;

/// Returns the names to which the host's sockets are bound now, as far as they are absolute.
///
/// What cannot be read gives nothing: the kernel is without unix sockets, or `/proc` is not there.
#[must_use]
pub fn bound_sockets() -> Vec<PathBuf> {
    let text = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mut names: Vec<PathBuf> = text.split(|byte| *byte == b'\n').filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// A line is seven fields and the name, which may hold spaces; abstract names begin with `@`.
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
}
