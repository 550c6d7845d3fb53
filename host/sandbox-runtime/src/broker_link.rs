//! The host's end of the socket on which its broker reports waiting calls.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use portcullis_sandbox::{NameOrder, Owner};
use portcullis_syscall_broker::transport::{self, Received};
use portcullis_syscall_broker::wire::questions::{
    Answered, Asked, BrokerMessage, Outside, Refused, Resolution,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::RefusedCall;
use crate::held::{Held, HostAnswer};
use crate::host_ops::perform;
use crate::keeper_link::KeeperLink;

/// The context in which the host performs operations for commands.
#[derive(Debug)]
pub(crate) struct HostOps {
    /// The owner of new files, if commands act as another user.
    pub(crate) acting: Option<Owner>,
    /// The order of changes of names that it joins.
    pub(crate) order: Option<NameOrder>,
}

/// Passes waiting calls on to their commands until the broker has ended.
pub(crate) fn hear(link: &KeeperLink, socket: &Arc<OwnedFd>, host_ops: HostOps) {
    let host_ops = Arc::new(host_ops);
    loop {
        if retry_on_intr(|| poll(&mut [PollFd::new(&**socket, PollFlags::IN)], None)).is_err() {
            return;
        }
        // A thread in [`KeeperLink::settle`] waits until this message is passed on.
        let _passing_on = link.passing_on();
        let message = match transport::hear(&**socket) {
            Received::Message(message) => message,
            Received::Lost => continue,
            Received::Ended => return,
        };
        let asked = match BrokerMessage::decode(&message.bytes) {
            Ok(BrokerMessage::Asked(asked)) => asked,
            Ok(BrokerMessage::Refused(Refused { command, attempt, path, rule })) => {
                link.note_refusal(command, RefusedCall { attempt, path, rule });
                continue;
            }
            Err(_garbled) => return,
        };
        let (command, attempt, deed) = (asked.command, asked.attempt, asked.deed.clone());
        let (path, rule, reason) = (asked.path.clone(), asked.rule.clone(), asked.reason.clone());
        let named = asked.named.clone();
        let (line, host_ops) = (Arc::clone(socket), Arc::clone(&host_ops));
        // If the broker has ended, the answer has no receiver.
        let answer = Box::new(move |answer, still_allowed: &dyn Fn() -> bool| {
            drop(tell(&line, &asked, answer, (&host_ops, still_allowed)));
        });
        link.hold(command, Held { attempt, deed, path, rule, reason, named, answer: Some(answer) });
    }
}

fn tell(
    socket: &OwnedFd,
    asked: &Asked,
    answer: HostAnswer,
    (host_ops, still_allowed): (&HostOps, &dyn Fn() -> bool),
) -> io::Result<()> {
    let answered = |resolution| Answered { id: asked.id, resolution }.encode();
    let outside = match (answer, &asked.outside) {
        (HostAnswer::Refuse, _) => return transport::send(socket, &answered(Resolution::Refused), &[]),
        (HostAnswer::GoOn, None) => return transport::send(socket, &answered(Resolution::GoesOn), &[]),
        (HostAnswer::GoOn, Some(outside)) => outside,
    };
    // The lock is released before the answer is sent: the broker may be waiting for the lock.
    match host_ops.perform(&asked.path, outside, still_allowed) {
        Ok(Some(file)) => transport::send(socket, &answered(Resolution::File), &[file.as_fd()]),
        Ok(None) => transport::send(socket, &answered(Resolution::Done), &[]),
        Err(error) => transport::send(socket, &answered(Resolution::Failed(error.raw_os_error())), &[]),
    }
}

impl HostOps {
    /// Performs the operation if it is still allowed once no other process changes names.
    fn perform(
        &self,
        path: &Path,
        outside: &Outside,
        still_allowed: &dyn Fn() -> bool,
    ) -> Result<Option<OwnedFd>, Errno> {
        let order = self.order.as_ref().map(NameOrder::exclusive).transpose();
        let _order = order.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOLCK))?;
        if still_allowed() { perform(path, outside, self.acting) } else { Err(Errno::ACCESS) }
    }
}
