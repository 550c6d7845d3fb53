//! Calls that wait for an answer of the host.
//!
//! No thread waits with them. When an answer arrives, the call is judged again from the beginning, with only the name
//! of the question allowed.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_sys::notify::Listener;

use crate::approval::{Approval, Question};
use crate::outcome::RuleRefusal;
use crate::pending::PendingCall;
use crate::process::Processes;
use crate::transport::{self, Message};
use crate::wire::questions::{Asked, Refused};

/// The largest number of calls that may wait at the same time.
const AT_ONCE: usize = 1024;
/// The largest number of refusals of one command that are reported to the host.
const REFUSALS: usize = 20;
/// The largest number of names of one call that lead to questions, one after the other.
const NAMES: usize = 4;

/// The socket to the host, and the calls that wait.
pub(crate) struct OpenQuestions {
    line: OwnedFd,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// The refusals of each command that the host has been told.
    told: Mutex<HashMap<u64, HashSet<RuleRefusal>>>,
}

/// A waiting call, and the approval that a yes would give it.
type Waiting = (PendingCall, Approval);

impl OpenQuestions {
    pub(crate) fn new(line: OwnedFd) -> Self {
        Self { line, waiting: Mutex::default(), told: Mutex::default() }
    }

    /// Reports a refusal to the host, once, and before the caller gets its error.
    pub(crate) fn tell(&self, processes: &Processes, pending: &PendingCall, refusal: RuleRefusal) {
        let Some(command) = processes.command(&pending.caller) else { return };
        let RuleRefusal { attempt, path, rule } = refusal.clone();
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
    pub(crate) fn ask(
        &self,
        (processes, listener): (&Processes, &Listener),
        pending: &PendingCall,
        question: &Question,
    ) -> Option<()> {
        let command = processes.command(&pending.caller)?;
        let id = pending.call.id;
        {
            let mut waiting = self.lock();
            if waiting.len() >= AT_ONCE {
                waiting.retain(|_, (pending, _)| pending.is_waiting(listener));
            }
            if waiting.len() >= AT_ONCE || pending.allowed.len() >= NAMES {
                return None;
            }
            let content = question.content.as_ref().map(|(text, _)| text);
            let (path, text) = (question.path.clone(), content.or(question.reachable.as_ref()).cloned());
            let (attempt, deed, rule) = (question.attempt, question.deed.clone(), question.rule);
            waiting.insert(id, (pending.clone(), Approval { attempt, deed, path, rule, text }));
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
            named: processes.named_above(&pending.caller, &question.path),
        };
        let sent = transport::send(&self.line, &asked.encode(), &[]);
        if sent.is_err() {
            self.lock().remove(&id)?;
            return None;
        }
        Some(())
    }

    /// Waits for a message of the host; `None` when it has closed the socket.
    pub(crate) fn receive(&self) -> std::io::Result<Option<Message>> {
        transport::receive(&self.line)
    }

    /// Takes the call with this id from those that wait, with the approval that a yes gives it.
    pub(crate) fn take(&self, id: u64) -> Option<(PendingCall, Approval)> {
        self.lock().remove(&id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
