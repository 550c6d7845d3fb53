//! Continues calls when the host answers their questions.

use std::os::fd::OwnedFd;

use portcullis_sys::notify::SyscallAnswer;
use rustix::fs::OFlags;

use crate::act::give;
use crate::broker::Broker;
use crate::outcome::Stop;
use crate::pending::PendingCall;
use crate::syscalls::Syscall;
use crate::wire::questions::{Answered, Resolution};
use crate::worker::Worker;

/// Continues calls as answers arrive, until the host has closed the socket.
pub(crate) fn hear(worker: &Worker) {
    let asking = &worker.broker.asking;
    while let Ok(Some(message)) = asking.receive() {
        let Ok(Answered { id, resolution }) = Answered::decode(&message.bytes) else { return };
        let Some((mut pending, allowed)) = asking.take(id) else { continue };
        let file = message.descriptors.into_iter().next();
        match (resolution, file) {
            (Resolution::GoesOn, _) => {
                pending.allowed.push(allowed);
                worker.take(&pending);
            }
            (Resolution::File, Some(file)) => hand_over(worker.broker, &pending, file),
            (Resolution::Done, _) => succeed(worker.broker, &pending),
            (Resolution::Failed(errno), _) => refuse(worker.broker, &pending, errno),
            (Resolution::Refused | Resolution::File, _) => refuse(worker.broker, &pending, libc::EACCES),
        }
    }
}

fn hand_over(broker: &Broker, pending: &PendingCall, file: OwnedFd) {
    let Some(Syscall::Open { flags, .. }) = Syscall::decode(&pending.call) else {
        return refuse(broker, pending, libc::EACCES);
    };
    if let Err(Stop::Error(error)) = give(broker, pending, file, OFlags::from_bits_retain(flags)) {
        refuse(broker, pending, error.raw_os_error());
    }
}

fn succeed(broker: &Broker, pending: &PendingCall) {
    drop(broker.listener.answer(pending.call.id, SyscallAnswer::Value(0)));
}

fn refuse(broker: &Broker, pending: &PendingCall, errno: i32) {
    // The caller may have ended and need no answer.
    drop(broker.listener.answer(pending.call.id, SyscallAnswer::Error(errno)));
}
