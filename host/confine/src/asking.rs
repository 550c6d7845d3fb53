//! The host's end of the line on which its broker tells of calls that wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use crate::deeds::perform;
use crate::held::{Answer, Held};
use crate::link::Link;
use crate::transport::Heard;
use crate::wire::asks::{Answered, Asked, Ending, Refused, Told};
use crate::{Owner, Refusal, transport};

/// Passes waiting calls on to those who wait for their commands, until the broker has gone. What the host makes for
/// commands belongs to `acting`, if they act as somebody else.
pub(crate) fn hear(link: &Link, socket: &Arc<OwnedFd>, acting: Option<Owner>) {
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
        let line = Arc::clone(socket);
        // When the broker has gone there is nobody to be told.
        let answer = Box::new(move |answer| drop(tell(&line, &asked, answer, acting)));
        link.hold(command, Held { attempt, deed, path, rule, reason, answer: Some(answer) });
    }
}

fn tell(socket: &OwnedFd, asked: &Asked, answer: Answer, acting: Option<Owner>) -> io::Result<()> {
    let answered = |ending| Answered { id: asked.id, ending }.encode();
    let outside = match (answer, &asked.outside) {
        (Answer::Refuse, _) => return transport::send(socket, &answered(Ending::Refused), &[]),
        (Answer::GoOn, None) => return transport::send(socket, &answered(Ending::GoesOn), &[]),
        (Answer::GoOn, Some(outside)) => outside,
    };
    match perform(&asked.path, outside, acting) {
        Ok(Some(file)) => transport::send(socket, &answered(Ending::File), &[file.as_fd()]),
        Ok(None) => transport::send(socket, &answered(Ending::Done), &[]),
        Err(error) => transport::send(socket, &answered(Ending::Failed(error.raw_os_error())), &[]),
    }
}
