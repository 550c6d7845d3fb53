//! A system call in which a command waits.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use portcullis_sandbox::{CallDetails, NameAccess};
use portcullis_sys::memory::read_string;
use portcullis_sys::notify::{Call, Listener};
use rustix::io::Errno;

use crate::approval::Approval;
use crate::process::Caller;
use crate::syscalls::PathArgument;

/// The kernel's limit for paths, including the NUL.
const PATH_BYTES: usize = 4096;

/// A call with its caller.
#[derive(Clone)]
pub(crate) struct PendingCall {
    pub(crate) call: Call,
    pub(crate) caller: Arc<Caller>,
    /// The operations that the user has approved.
    pub(crate) allowed: Vec<Approval>,
}

impl PendingCall {
    /// Returns true if the user has approved this operation on this name, with this text, for this rule.
    pub(crate) fn is_allowed(
        &self,
        doing: (NameAccess, &CallDetails),
        path: &Path,
        rule: &str,
        text: Option<&[u8]>,
    ) -> bool {
        self.allowed.iter().any(|yes| yes.covers(doing, path, rule, text))
    }

    /// Reads a path from the caller's memory. It may change there at any time; only what was read counts.
    pub(crate) fn path(&self, at: PathArgument) -> Result<CString, Errno> {
        self.text(at.text)
    }

    pub(crate) fn text(&self, address: u64) -> Result<CString, Errno> {
        read_string(self.call.thread, address, PATH_BYTES).map_err(|error| match error.raw_os_error() {
            Some(libc::ENAMETOOLONG) => Errno::NAMETOOLONG,
            Some(libc::EPERM | libc::EACCES) => Errno::ACCESS,
            _ => Errno::FAULT,
        })
    }

    /// Returns true if the caller is still waiting, so that all memory read so far was its own.
    pub(crate) fn is_waiting(&self, listener: &Listener) -> bool {
        listener.is_waiting(self.call.id)
    }
}
