//! The host's end of the line on which its broker tells of calls that wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::deeds::perform;
use crate::held::{Answer, Held};
use crate::link::Link;
use crate::transport::Heard;
use crate::wire::asks::{Answered, Asked, Ending, Outside, Refused, Told};
use crate::{NameOrder, Owner, Refusal, transport};

/// How the host does for commands what they asked for.
#[derive(Debug)]
pub(crate) struct HostOps {
    /// Whom new files belong to, where commands act as somebody else.
    pub(crate) acting: Option<Owner>,
    /// Which changes of names it waits for.
    pub(crate) order: Option<NameOrder>,
}

/// Passes waiting calls on to those who wait for their commands, until the broker has gone.
pub(crate) fn hear(link: &Link, socket: &Arc<OwnedFd>, host_ops: HostOps) {
    let host_ops = Arc::new(host_ops);
    loop {
        if retry_on_intr(|| poll(&mut [PollFd::new(&**socket, PollFlags::IN)], None)).is_err() {
            return;
        }
        // Whoever wants to know all that has been said so far waits for this one to be passed on.
        let _passing_on = link.passing_on();
        let message = match transport::hear(&**socket) {
            Heard::Message(message) => message,
            Heard::Lost => continue,
            Heard::Ended => return,
        };
        let asked = match Told::decode(&message.bytes) {
            Ok(Told::Asked(asked)) => asked,
            Ok(Told::Refused(Refused { command, attempt, path, rule })) => {
                link.note_refusal(command, Refusal { attempt, path, rule });
                continue;
            }
            Err(_garbled) => return,
        };
        let (command, attempt, deed) = (asked.command, asked.attempt, asked.deed.clone());
        let (path, rule, reason) = (asked.path.clone(), asked.rule.clone(), asked.reason.clone());
        let (line, host_ops) = (Arc::clone(socket), Arc::clone(&host_ops));
        // When the broker has gone there is nobody to be told.
        let answer = Box::new(move |answer, still_allowed: &dyn Fn() -> bool| {
            drop(tell(&line, &asked, answer, (&host_ops, still_allowed)));
        });
        link.hold(command, Held { attempt, deed, path, rule, reason, answer: Some(answer) });
    }
}

fn tell(
    socket: &OwnedFd,
    asked: &Asked,
    answer: Answer,
    (host_ops, still_allowed): (&HostOps, &dyn Fn() -> bool),
) -> io::Result<()> {
    let answered = |ending| Answered { id: asked.id, ending }.encode();
    let outside = match (answer, &asked.outside) {
        (Answer::Refuse, _) => return transport::send(socket, &answered(Ending::Refused), &[]),
        (Answer::GoOn, None) => return transport::send(socket, &answered(Ending::GoesOn), &[]),
        (Answer::GoOn, Some(outside)) => outside,
    };
    // Nobody is told anything before the lock is let go of: the broker may be waiting for it.
    match host_ops.perform(&asked.path, outside, still_allowed) {
        Ok(Some(file)) => transport::send(socket, &answered(Ending::File), &[file.as_fd()]),
        Ok(None) => transport::send(socket, &answered(Ending::Done), &[]),
        Err(error) => transport::send(socket, &answered(Ending::Failed(error.raw_os_error())), &[]),
    }
}

impl HostOps {
    /// Does what was asked about, if that is still allowed when nobody changes names any more.
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
