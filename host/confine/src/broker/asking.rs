//! Calls that wait for an answer of the host.
//!
//! No thread waits with them. When an answer arrives, the call is judged again from the beginning, with only the name
//! of the question allowed.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_sys::notify::Answer;
use rustix::fs::OFlags;

use super::Broker;
use super::act::give;
use super::calls::Syscall;
use super::process::Processes;
use super::worker::{PendingCall, Refusal, Stop, Worker};
use crate::wire::asks::{Answered, Asked, Ending, Outside, Refused};
use crate::{Attempt, Deed, transport};

/// The largest number of calls that may wait at the same time.
const AT_ONCE: usize = 1024;
/// The largest number of refusals of one command that are reported to the host.
const REFUSALS: usize = 20;
/// The largest number of names of one call that lead to questions, one after the other.
const NAMES: usize = 4;

/// A question that must be answered before a call continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) attempt: Attempt,
    pub(super) deed: Deed,
    pub(super) path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub(super) rule: &'static str,
    /// The text in question with the reason, if the content decides.
    pub(super) content: Option<(Vec<u8>, String)>,
    /// The sorted names that a link makes reachable, as found when the question was made. They are not shown, but the
    /// answer holds for these names only.
    pub(super) reachable: Option<Vec<u8>>,
    /// The operation that only the host can perform, if there is one.
    pub(super) outside: Option<Outside>,
}

/// The socket to the host, and the calls that wait.
pub(super) struct Asking {
    line: OwnedFd,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// The refusals of each command that the host has been told.
    told: Mutex<HashMap<u64, HashSet<Refusal>>>,
}

/// A waiting call, and the approval that a yes would give it.
type Waiting = (PendingCall, Yes);

/// An operation that the user has approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Yes {
    pub(super) attempt: Attempt,
    pub(super) deed: Deed,
    pub(super) path: PathBuf,
    /// As in [`Question`].
    pub(super) rule: &'static str,
    /// The exact text, or the reachable names, of the question; `None` if it had neither. The command may change both
    /// while the user decides.
    pub(super) text: Option<Vec<u8>>,
}

impl Yes {
    /// Returns true if this approval is for this operation. The call is read again after the answer, and may differ by
    /// then.
    pub(super) fn covers(
        &self,
        (attempt, deed): (Attempt, &Deed),
        path: &Path,
        rule: &str,
        text: Option<&[u8]>,
    ) -> bool {
        self.attempt == attempt
            && self.deed == *deed
            && self.path == path
            && self.rule == rule
            && self.text.as_deref() == text
    }
}

impl Asking {
    pub(super) fn new(line: OwnedFd) -> Self {
        Self { line, waiting: Mutex::default(), told: Mutex::default() }
    }

    /// Reports a refusal to the host, once, and before the caller gets its error.
    pub(super) fn tell(&self, processes: &Processes, pending: &PendingCall, refusal: Refusal) {
        let Some(command) = processes.command(&pending.caller) else { return };
        let Refusal { attempt, path, rule } = refusal.clone();
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if !told.contains_key(&command) {
                told.retain(|command, _| processes.is_running(*command));
            }
            let of_this = told.entry(command).or_default();
            if of_this.len() >= REFUSALS || !of_this.insert(refusal) {
                return;
            }
        }
        // The report adds nothing to the error that the caller gets, so failing to send it is harmless.
        drop(transport::send(
            &self.line,
            &Refused { command, attempt, path, rule: rule.to_owned() }.encode(),
            &[],
        ));
    }

    /// Makes a call wait for an answer; `None` if it cannot wait.
    pub(super) fn ask(&self, broker: &Broker, pending: &PendingCall, question: &Question) -> Option<()> {
        let command = broker.processes.command(&pending.caller)?;
        let id = pending.call.id;
        {
            let mut waiting = self.lock();
            if waiting.len() >= AT_ONCE {
                waiting.retain(|_, (pending, _)| pending.is_waiting(broker));
            }
            if waiting.len() >= AT_ONCE || pending.allowed.len() >= NAMES {
                return None;
            }
            let content = question.content.as_ref().map(|(text, _)| text);
            let (path, text) = (question.path.clone(), content.or(question.reachable.as_ref()).cloned());
            let (attempt, deed, rule) = (question.attempt, question.deed.clone(), question.rule);
            waiting.insert(id, (pending.clone(), Yes { attempt, deed, path, rule, text }));
        }
        let asked = Asked {
            id,
            command,
            attempt: question.attempt,
            deed: question.deed.clone(),
            path: question.path.clone(),
            rule: question.rule.to_owned(),
            reason: question.content.as_ref().map(|(_, reason)| reason.clone()).unwrap_or_default(),
            outside: question.outside.clone(),
        };
        let sent = transport::send(&self.line, &asked.encode(), &[]);
        if sent.is_err() {
            self.lock().remove(&id)?;
            return None;
        }
        Some(())
    }

    /// Continues calls as answers arrive, until the host has closed the socket.
    pub(super) fn hear(&self, worker: &Worker) {
        while let Ok(Some(message)) = transport::receive(&self.line) {
            let Ok(Answered { id, ending }) = Answered::decode(&message.bytes) else { return };
            let Some((mut pending, allowed)) = self.lock().remove(&id) else { continue };
            let file = message.descriptors.into_iter().next();
            match (ending, file) {
                (Ending::GoesOn, _) => {
                    pending.allowed.push(allowed);
                    worker.take(&pending);
                }
                (Ending::File, Some(file)) => hand_over(worker.broker, &pending, file),
                (Ending::Done, _) => succeed(worker.broker, &pending),
                (Ending::Failed(errno), _) => refuse(worker.broker, &pending, errno),
                (Ending::Refused | Ending::File, _) => refuse(worker.broker, &pending, libc::EACCES),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hand_over(broker: &Broker, pending: &PendingCall, file: OwnedFd) {
    let Some(Syscall::Open { flags, .. }) = Syscall::of(&pending.call) else {
        return refuse(broker, pending, libc::EACCES);
    };
    if let Err(Stop::Error(error)) = give(broker, pending, file, OFlags::from_bits_retain(flags)) {
        refuse(broker, pending, error.raw_os_error());
    }
}

fn succeed(broker: &Broker, pending: &PendingCall) {
    drop(broker.listener.answer(pending.call.id, Answer::Value(0)));
}

fn refuse(broker: &Broker, pending: &PendingCall, errno: i32) {
    // The caller may have ended and need no answer.
    drop(broker.listener.answer(pending.call.id, Answer::Error(errno)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_for_what_was_asked_about() {
        let (path, other) = (Path::new("/w/.envrc"), Path::new("/w/.npmrc"));
        let deed = Deed::Symlink("target".into());
        let yes =
            Yes { attempt: Attempt::Write, deed: deed.clone(), path: path.to_owned(), rule: "a", text: None };
        let write = (Attempt::Write, &deed);
        assert!(yes.covers(write, path, "a", None));
        assert!(!yes.covers((Attempt::Remove, &deed), path, "a", None));
        assert!(!yes.covers((Attempt::Write, &Deed::Plain), path, "a", None));
        assert!(!yes.covers((Attempt::Write, &Deed::Symlink("other".into())), path, "a", None));
        assert!(!yes.covers(write, other, "a", None));
        assert!(!yes.covers(write, path, "b", None));
        assert!(!yes.covers(write, path, "a", Some(b"text")));
    }
}
