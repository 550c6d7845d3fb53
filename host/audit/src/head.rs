//! The head of a log's chain, stored apart from the log: the number of lines, and the hash of the last one.
//!
//! The hashes in the lines reveal changed or removed lines, but not missing lines at the end. The head does. It is the
//! file `heads/NAME.head` beside the logs, has a fixed length, and is overwritten in place after each line. If the host
//! is stopped between the two writes, the head is one line behind; it is never ahead.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

/// The directory of the heads, inside that of the logs.
const DIRECTORY: &str = "heads";
const ENDING: &str = ".head";
/// Number of digits of the line count.
const DIGITS: usize = 20;
/// Length of a hash in hex.
const HASH: usize = 64;

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The number of lines.
    pub(crate) lines: u64,
    /// The hash of the last line; empty without lines.
    pub(crate) hash: String,
}

impl Head {
    fn encode(&self) -> String {
        format!("{:0DIGITS$} {:0>HASH$}\n", self.lines, self.hash)
    }

    fn decode(text: &str) -> Option<Self> {
        let (lines, hash) = text.strip_suffix('\n')?.split_once(' ')?;
        let is_number = lines.len() == DIGITS && lines.bytes().all(|byte| byte.is_ascii_digit());
        let is_hash = hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let lines = lines.parse().ok().filter(|_| is_number && is_hash)?;
        Some(Self { lines, hash: if lines == 0 { String::new() } else { hash.to_owned() } })
    }
}

/// The open head file of a log that is being written.
#[derive(Debug)]
pub(crate) struct HeadFile(OwnedFd);

impl HeadFile {
    /// Creates the head of a new, empty log; `directory` is that of the logs.
    ///
    /// # Errors
    /// `EEXIST` if a log of this name was written before.
    pub(crate) fn create(directory: impl AsFd, name: &str) -> rustix::io::Result<Self> {
        match rustix::fs::mkdirat(&directory, DIRECTORY, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let heads = rustix::fs::openat(&directory, DIRECTORY, flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file_name = format!("{name}{ENDING}");
        let file = Self(rustix::fs::openat(&heads, &file_name, flags, Mode::RUSR | Mode::WUSR)?);
        match file.write(&Head { lines: 0, hash: String::new() }) {
            Ok(()) => Ok(file),
            Err(error) => {
                // The new file is empty, so nothing is lost.
                let _removed = rustix::fs::unlinkat(&heads, &file_name, AtFlags::empty());
                Err(error)
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self(file)
    }

    /// Records the end of the log.
    pub(crate) fn write(&self, head: &Head) -> rustix::io::Result<()> {
        let text = head.encode();
        let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(&self.0, text.as_bytes(), 0))?;
        if written == text.len() { Ok(()) } else { Err(rustix::io::Errno::NOSPC) }
    }
}

/// Returns the path of the head of the log `name` in `directory`.
pub(crate) fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(DIRECTORY).join(format!("{name}{ENDING}"))
}

/// Reads a head, or returns `None` if the file does not exist.
///
/// # Errors
/// When it cannot be read, or is invalid.
pub(crate) fn read(path: &Path) -> io::Result<Option<Head>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "it is no record of the end of a log");
    Head::decode(&text).map(Some).ok_or_else(malformed)
}

/// Returns the names of all logs in `directory` that have a head.
///
/// # Errors
/// When the directory of the heads cannot be listed.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory.join(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry?.file_name();
        names.extend(file.to_str().and_then(|file| file.strip_suffix(ENDING)).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        for head in [
            Head { lines: 0, hash: String::new() },
            Head { lines: 7, hash: "ab".repeat(32) },
            Head { lines: u64::MAX, hash: "0".repeat(64) },
        ] {
            let text = head.encode();
            assert_eq!(text.len(), DIGITS + HASH + 2);
            assert_eq!(Head::decode(&text), Some(head));
        }
        for text in ["", "\n", "1 x\n", &"0".repeat(86), &format!("{:021} {}\n", 1, "a".repeat(63))] {
            assert_eq!(Head::decode(text), None, "{text}");
        }
    }
}
