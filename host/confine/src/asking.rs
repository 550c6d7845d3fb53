//! The host's end of the line on which its broker tells of calls that wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::deeds::perform;
use crate::held::{Answer, Held};
use crate::link::Link;
use crate::wire::asks::{Answered, Asked, Ending};
use crate::{Owner, transport};

/// Passes waiting calls on to those who wait for their commands, until the broker has gone. What the host makes for
/// commands belongs to `acting`, if they act as somebody else.
pub(crate) fn hear(link: &Link, socket: OwnedFd, acting: Option<Owner>) {
    let socket = Arc::new(socket);
    while let Ok(Some(message)) = transport::receive(&*socket) {
        let Ok(asked) = Asked::decode(&message.bytes) else { return };
        let (command, attempt) = (asked.command, asked.attempt);
        let (path, rule, reason) = (asked.path.clone(), asked.rule.clone(), asked.reason.clone());
        let line = Arc::clone(&socket);
        // When the broker has gone there is nobody to be told.
        let answer = Box::new(move |answer| drop(tell(&line, &asked, answer, acting)));
        link.hold(command, Held { attempt, path, rule, reason, answer: Some(answer) });
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
