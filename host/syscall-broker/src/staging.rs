//! Files that git is writing in place, until they are judged.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use portcullis_exec_surface::Rule;
use portcullis_exec_surface::git::Content;
use rustix::io::Errno;

use crate::pending::PendingCall;

/// The largest number of such files that may be open at the same time.
const STAGED: usize = 256;

/// All files that are being written.
#[derive(Default)]
pub(crate) struct Staging {
    files: Mutex<Vec<Staged>>,
    count: AtomicUsize,
}

/// A file without a name, and the name that it is to get.
pub(crate) struct Staged {
    /// Opened for reading.
    pub(crate) file: OwnedFd,
    pub(crate) directory: OwnedFd,
    pub(crate) name: CString,
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
    /// The rule that judges it, and the call that opened it.
    pub(crate) rule: &'static Rule,
    pub(crate) pending: PendingCall,
}

impl Staging {
    /// Adds a file; returns true if there was none before.
    pub(crate) fn add(&self, staged: Staged) -> Result<bool, Errno> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= STAGED {
            return Err(Errno::NFILE);
        }
        files.push(staged);
        Ok(self.count.fetch_add(1, Ordering::AcqRel) == 0)
    }

    /// Returns true if there are no files.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Keeps only the files that `is_written` is true for.
    pub(crate) fn retain(&self, is_written: impl Fn(&Staged) -> bool) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|staged| {
            let stays = is_written(staged);
            if !stays {
                self.count.fetch_sub(1, Ordering::AcqRel);
            }
            stays
        });
    }
}
