//! The view: the files as commands see them, for the host's own use.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::ViewError;

/// The sandbox's view of the files, cheap to clone.
///
/// Paths resolved below [`View::root`] with `openat2` and `RESOLVE_IN_ROOT` walk the session's mounts.
#[derive(Debug, Clone)]
pub struct View(Arc<Descriptors>);

#[derive(Debug)]
struct Descriptors {
    root: OwnedFd,
    mounts: OwnedFd,
    keeper: OwnedFd,
}

impl View {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(root: OwnedFd, mounts: OwnedFd, keeper: OwnedFd) -> Self {
        Self(Arc::new(Descriptors { root, mounts, keeper }))
    }

    /// Returns the root directory, opened with O_PATH.
    ///
    /// Call this for every use: when the keeper ends, its mounts are removed, and a stored root would show hidden
    /// files. (The view also keeps the mount namespace open, so that no hidden file is shown between this check and the
    /// use.)
    ///
    /// # Errors
    /// If the keeper has ended.
    pub fn root(&self) -> Result<BorrowedFd<'_>, ViewError> {
        if self.is_alive() { Ok(self.0.root.as_fd()) } else { Err(ViewError) }
    }

    /// Returns the mount namespace of the view.
    pub fn mount_namespace(&self) -> BorrowedFd<'_> {
        self.0.mounts.as_fd()
    }

    /// Returns the keeper's pidfd; it becomes readable when the keeper ends.
    pub fn keeper(&self) -> BorrowedFd<'_> {
        self.0.keeper.as_fd()
    }

    #[cfg(target_os = "linux")]
    fn is_alive(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut ended = [PollFd::new(&self.0.keeper, PollFlags::IN)];
        // Any failure to poll counts as ended.
        rustix::io::retry_on_intr(|| poll(&mut ended, Some(&now))).is_ok_and(|ready| ready == 0)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_alive(&self) -> bool {
        false
    }
}
