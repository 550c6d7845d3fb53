//! Paths in procfs: those by which a caller names its own descriptors, and those that the kernel shows for open files.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

/// The suffix that the kernel shows after the path of a removed file.
const GONE: &[u8] = b" (deleted)";

/// A file of the caller whose path means one of the broker's when the broker follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerFile {
    Descriptor(i32),
    Directory,
}

/// Returns the file of the caller that a path begins with, and the rest of the path.
pub(crate) fn own(text: &[u8]) -> Option<(CallerFile, Option<&[u8]>)> {
    const STANDARD: [(&[u8], i32); 3] = [(b"/dev/stdin", 0), (b"/dev/stdout", 1), (b"/dev/stderr", 2)];
    const NUMBERED: [&[u8]; 3] = [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/"];
    const DIRECTORY: [&[u8]; 2] = [b"/proc/self/cwd", b"/proc/thread-self/cwd"];
    if let Some((_, number)) = STANDARD.into_iter().find(|(name, _)| *name == text) {
        return Some((CallerFile::Descriptor(number), None));
    }
    if let Some(rest) = NUMBERED.into_iter().find_map(|prefix| text.strip_prefix(prefix)) {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at_checked(digits)?;
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        return match rest.split_first() {
            None => Some((CallerFile::Descriptor(number), None)),
            Some((b'/', rest)) => Some((CallerFile::Descriptor(number), Some(rest))),
            Some(_) => None,
        };
    }
    let rest = DIRECTORY.into_iter().find_map(|prefix| text.strip_prefix(prefix))?;
    match rest.split_first() {
        None => Some((CallerFile::Directory, None)),
        Some((b'/', rest)) => Some((CallerFile::Directory, Some(rest))),
        Some(_) => None,
    }
}

/// Returns true for a file in a procfs.
pub(crate) fn is_proc(open: &OwnedFd) -> bool {
    fstatfs(open).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
}

/// Returns the possible meanings of a path that the kernel shows: a name may itself end like that of a removed file.
pub(crate) fn names_of(text: &[u8]) -> impl Iterator<Item = &Path> {
    [Some(text), text.strip_suffix(GONE)].into_iter().flatten().map(|name| Path::new(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_descriptors_are_known_by_all_their_names() {
        let check = |text: &str, expected: Option<(CallerFile, Option<&str>)>| {
            let expected = expected.map(|(own, rest)| (own, rest.map(str::as_bytes)));
            assert_eq!(own(text.as_bytes()), expected, "{text}");
        };
        check("/dev/stdout", Some((CallerFile::Descriptor(1), None)));
        check("/proc/self/fd/12", Some((CallerFile::Descriptor(12), None)));
        check("/dev/fd/3/x/y", Some((CallerFile::Descriptor(3), Some("x/y"))));
        check("/proc/self/cwd/x", Some((CallerFile::Directory, Some("x"))));
        for text in
            ["/dev/stdout/x", "/proc/self/fd/", "/proc/self/fd/1x", "/proc/self/cwdx", "/dev/null", "1"]
        {
            check(text, None);
        }
    }
}
