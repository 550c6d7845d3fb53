//! The socket: its name, and lines over it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;

/// Name of the socket in the session's directory.
pub(super) const NAME: &str = "control";
/// Maximum length of a line; this program never writes longer ones.
const LONGEST_LINE: u64 = 1 << 20;
/// Time in which a client must send its request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Reads a line.
pub(super) fn line(stream: &UnixStream) -> anyhow::Result<String> {
    let mut text = String::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_line(&mut text)?;
    if !text.ends_with('\n') {
        bail!("no whole line came");
    }
    Ok(text)
}

/// Runs `act` with a short path to the directory.
///
/// Socket addresses are limited to 107 bytes, and a home directory can have a longer path.
pub(super) fn short<T>(
    directory: &Path,
    act: impl FnOnce(&Path) -> std::io::Result<T>,
) -> std::io::Result<T> {
    use std::os::fd::AsRawFd as _;
    if cfg!(not(target_os = "linux")) {
        return act(directory);
    }
    let handle = std::fs::File::open(directory)?;
    act(Path::new(&format!("/proc/self/fd/{}", handle.as_raw_fd())))
}
