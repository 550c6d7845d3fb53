//! A thread of the broker, with its state between calls.

use std::cell::Cell;

use portcullis_sys::process::{exit_now, own_file_attributes};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::broker::Broker;
use crate::outcome::Stop;
use crate::pending::PendingCall;

/// A thread of the broker.
pub(crate) struct Worker {
    pub(crate) broker: &'static Broker,
    /// This thread's current umask.
    mask: Cell<u32>,
    /// Whether this call holds the name order exclusively: no other thread, sandbox or tool of the host uses names.
    alone: Cell<bool>,
}

impl Worker {
    /// Prepares the calling thread for carrying out calls.
    pub(crate) fn begin(broker: &'static Broker) -> Self {
        if broker.one_at_a_time.is_none() && own_file_attributes().is_err() {
            exit_now(1);
        }
        rustix::process::umask(Mode::empty());
        Self { broker, mask: Cell::new(0), alone: Cell::new(false) }
    }

    /// Records whether the current call holds the name order exclusively.
    pub(crate) fn set_alone(&self, is_alone: bool) {
        self.alone.set(is_alone);
    }

    /// Checks that this call holds the name order exclusively; otherwise it is retried so.
    pub(crate) fn must_be_alone(&self) -> Result<(), Stop> {
        if self.alone.get() { Ok(()) } else { Err(Stop::NotAlone) }
    }

    /// Checks that the caller is still waiting, so that all memory read so far was its own.
    pub(crate) fn check_still_waiting(&self, pending: &PendingCall) -> Result<(), Errno> {
        // The caller has ended and does not receive this error.
        if pending.is_waiting(&self.broker.listener) { Ok(()) } else { Err(Errno::INTR) }
    }

    /// Sets this thread's umask to the caller's, so that new files get the modes that the caller would give them.
    pub(crate) fn take_mask_of(&self, pending: &PendingCall) {
        let mask = self.broker.processes.mask(&pending.caller);
        if self.mask.replace(mask) != mask || self.broker.one_at_a_time.is_some() {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
    }
}
