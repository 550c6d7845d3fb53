//! Knowing whether files are still as they were when they were read.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Stat, lstat};

/// A file that changed this recently could change again within the same tick of its clock.
const TOO_RECENT: Duration = Duration::from_millis(100);

/// The state of each file that was looked at; `None` for a missing one.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// Whether the file may have changed again without another time.
    is_recent: bool,
}

impl Stamps {
    /// Notes the state of a file that is about to be read.
    pub(crate) fn note(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path);
        self.0.push((path, stamp));
    }

    /// Returns true if no file has changed since it was noted.
    pub(crate) fn are_current(&self) -> bool {
        self.0
            .iter()
            .all(|(path, stamp)| stamp.is_none_or(|stamp| !stamp.is_recent) && Stamp::of(path) == *stamp)
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        lstat(path).ok().map(|state| Self::from_state(&state))
    }

    #[allow(
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::allow_attributes,
        reason = "the types differ between systems; the numbers are only compared"
    )]
    fn from_state(state: &Stat) -> Self {
        let changed = (state.st_ctime as i64, state.st_ctime_nsec as i64);
        let age = u64::try_from(changed.0).ok().and_then(|seconds| {
            let nanoseconds = u32::try_from(changed.1).ok()?;
            let at = UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))?;
            SystemTime::now().duration_since(at).ok()
        });
        Self {
            device: state.st_dev as u64,
            inode: state.st_ino as u64,
            size: state.st_size as i64,
            modified: (state.st_mtime as i64, state.st_mtime_nsec as i64),
            changed,
            // A time in the future says as little as a recent one.
            is_recent: age.is_none_or(|age| age < TOO_RECENT),
        }
    }
}
