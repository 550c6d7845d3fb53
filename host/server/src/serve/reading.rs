//! Reads the client's messages, one thread at a time.
//!
//! The thread that reads a request also carries it out, and another thread continues reading. So a request starts
//! without waking a thread, which takes longer than most decisions.

use std::fs::File;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use portcullis_rpc::{
    ClientNotification, Empty, ErrorCode, ErrorObject, Incoming, Receiver, Request, RequestId,
};
use portcullis_session::{Cancel, caught};

use crate::serve::host::{Host, Stage, no_thread};
use crate::serve::request_quota::Share;

/// The client's messages, and a channel for the result of reading. Dropping it ends reading.
pub(super) struct Reading {
    pub(super) receiver: Receiver<File, File>,
    pub(super) over: SyncSender<anyhow::Result<()>>,
}

/// A request to carry out.
struct Taken {
    id: RequestId,
    request: Request,
    cancel: Cancel,
    share: Share,
}

impl Host {
    /// Reads until there is a request, lets another thread continue reading, and carries the request out.
    pub(super) fn read_on(self: &Arc<Self>, mut reading: Reading) {
        loop {
            let taken = match self.take(&mut reading.receiver) {
                Ok(Some(taken)) => taken,
                Ok(None) => return reading.end(Ok(())),
                Err(error) => return reading.end(Err(error)),
            };
            match self.hand_on(reading) {
                Ok(()) => {
                    let Taken { id, request, cancel, share } = taken;
                    self.answer_in_any_case(id, || self.carry_out(id, request, &cancel));
                    drop(share);
                    self.lock_under_way().remove(&id);
                    return;
                }
                Err((error, back)) => {
                    self.lock_under_way().remove(&taken.id);
                    self.reply::<Empty>(taken.id, Err(no_thread(&error)));
                    match back {
                        Some(back) => reading = back,
                        None => return,
                    }
                }
            }
        }
    }

    /// Carries out a request.
    ///
    /// If that panics, the request and all later ones are denied, since shared state may be half changed.
    pub(super) fn answer_in_any_case(&self, id: RequestId, carry_out: impl FnOnce()) {
        let Err(panic) = caught(carry_out) else { return };
        let why = self.fail("carrying out a request", &panic);
        self.reply::<Empty>(id, Err(ErrorObject::new(ErrorCode::Internal, format!("denied: {why}"))));
        self.tell_status();
    }

    /// Denies all further requests because of a panic, and returns the reason.
    pub(super) fn fail(&self, doing: &str, panic: &str) -> String {
        let why = match self.stage().as_ref() {
            Stage::Open(wired) => wired.session.fail(doing, panic),
            Stage::Off | Stage::Closed(_) => format!("Portcullis failed while {doing} ({panic})"),
        };
        // If the user has disabled the sandbox, there is nothing to deny.
        if !matches!(self.stage().as_ref(), Stage::Off) {
            self.cancel_all();
            let closed = || Stage::Closed(after_fault(&why));
            self.stage.get_or_init(|| RwLock::new(Arc::new(closed())));
            self.enter(closed());
        }
        why
    }

    /// Lets another thread continue reading. Returns the reading if there is no thread for it.
    fn hand_on(self: &Arc<Self>, reading: Reading) -> Result<(), (std::io::Error, Option<Reading>)> {
        let reading = Arc::new(Mutex::new(Some(reading)));
        let (host, next) = (Arc::clone(self), Arc::clone(&reading));
        let take = |from: &Mutex<Option<Reading>>| from.lock().unwrap_or_else(PoisonError::into_inner).take();
        let started = self.workers.start(move || {
            if let Some(reading) = take(&next) {
                host.read_on(reading);
            }
        });
        started.map_err(|error| (error, take(&reading)))
    }

    /// Returns the next request to carry out, or `None` when the client has disconnected or sent `shutdown`.
    fn take(&self, receiver: &mut Receiver<File, File>) -> anyhow::Result<Option<Taken>> {
        while let Some(incoming) = receiver.receive()? {
            match incoming {
                Incoming::Request(id, Request::Shutdown) => {
                    self.close();
                    self.sender.respond(id, &Empty {})?;
                    return Ok(None);
                }
                Incoming::Request(id, request) => {
                    if let Some(taken) = self.admit(id, request, receiver.length()) {
                        return Ok(Some(taken));
                    }
                }
                Incoming::Notification(ClientNotification::Cancel(cancel)) => self.cancel(cancel.id),
                Incoming::Reply(reply) => self.prompter.reply(reply),
            }
        }
        Ok(None)
    }

    /// Registers a request of `length` bytes, if the limits allow it.
    fn admit(&self, id: RequestId, request: Request, length: usize) -> Option<Taken> {
        let Some(share) = Share::take(length) else {
            let error = ErrorObject::new(ErrorCode::Busy, "too much waits for an answer already".to_owned());
            self.reply::<Empty>(id, Err(error));
            return None;
        };
        let cancel = Cancel::default();
        self.lock_under_way().insert(id, cancel.clone());
        Some(Taken { id, request, cancel, share })
    }
}

/// Returns a reason for which nothing is permitted, with what helps.
pub(super) fn after_fault(why: &str) -> String {
    format!("{why}; /reload starts Portcullis again")
}

impl Reading {
    fn end(self, outcome: anyhow::Result<()>) {
        // Ignore errors: `serve` may no longer wait for it.
        let _unheard = self.over.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::OwnedFd;

    use portcullis_rpc::connection;
    use serde_json::Value;

    use super::*;
    use portcullis_bootstrap::process_env::ProcessEnv;

    /// Returns a host, and a function that reads its next message to the client.
    fn host() -> (Host, impl FnMut() -> Value) {
        let (said, saying) = std::io::pipe().unwrap();
        let input = File::open("/dev/null").unwrap();
        let (_receiver, sender) = connection(input, File::from(OwnedFd::from(saying)));
        let frames = File::options().write(true).open("/dev/null").unwrap();
        let host = Host::new(ProcessEnv::read().unwrap(), sender, frames, None);
        let mut lines = BufReader::new(said).lines();
        (host, move || serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap())
    }

    #[test]
    fn a_request_that_panics_is_denied_and_ends_what_is_permitted() {
        let (host, mut said) = host();
        let id: RequestId = serde_json::from_value(Value::from(7)).unwrap();
        host.answer_in_any_case(id, || host.reply(id, Ok(Empty {})));
        assert_eq!(said().pointer("/result"), Some(&serde_json::json!({})), "control");
        assert!(host.stage.get().is_none());

        host.answer_in_any_case(id, || panic!("as a fault would"));
        let answer = said();
        let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap();
        assert!(message.starts_with("denied: ") && message.contains("as a fault would"), "{answer}");
        assert_eq!(answer.get("id"), Some(&Value::from(7)));
        let Stage::Closed(why) = &*host.stage() else { panic!("it is closed") };
        assert!(why.contains("/reload"), "{why}");
        assert_eq!(said().pointer("/params/status/state"), Some(&Value::from("closed")), "and says so");
    }
}
