//! The files that a client has open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use portcullis_rpc::{ErrorCode, ErrorObject};
use portcullis_session::EditFile;

/// Maximum number of open files of a client; pi needs one per call.
const MOST_OPEN: usize = 256;
/// The open files of a client.
#[derive(Default)]
pub(super) struct Handles {
    open: Mutex<HashMap<u32, Opened>>,
    next: AtomicU32,
}

/// An open file.
pub(super) enum Opened {
    Reading(Vec<u8>),
    Editing(Box<EditFile>),
}

impl Opened {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Reading(bytes) => bytes,
            Self::Editing(edit) => edit.bytes(),
        }
    }
}

impl Handles {
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn keep(&self, opened: Opened) -> Result<u32, ErrorObject> {
        let mut open = self.lock();
        if open.len() >= MOST_OPEN {
            return Err(ErrorObject::new(ErrorCode::Busy, format!("{MOST_OPEN} files are open already")));
        }
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(handle, opened);
        Ok(handle)
    }

    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Opened>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
