//! The requests of calls whose output has not arrived.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_decision::Request;
use portcullis_decision::request::Action;

/// Number of requests kept until the output of their calls arrives; pi has a few calls at a time.
const KEPT_CALLS: usize = 256;

/// The requests of calls whose output has not arrived.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls(Mutex<VecDeque<(String, Request)>>);

impl ToolCalls {
    /// Remembers the request of a call, in place of an earlier one.
    pub(crate) fn remember(&self, call: &str, request: &Request) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| other != call);
        if known.len() == KEPT_CALLS {
            known.pop_front();
        }
        known.push_back((call.to_owned(), request.clone()));
    }

    /// Returns the program of a call's command, if it consists of one.
    pub(crate) fn program(&self, call: &str) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, request) = known.iter().find(|(other, _)| other == call)?;
        let Action::Command(command) = &request.action else { return None };
        match command.parsed.as_ref().ok()?.commands.as_slice() {
            [simple] => simple.argv.first().filter(|word| word.literal).map(|word| word.value.clone()),
            _ => None,
        }
    }

    /// Removes and returns the request of a call.
    pub(crate) fn take(&self, call: &str) -> Option<Request> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(other, _)| other == call)?;
        known.remove(place).map(|(_, request)| request)
    }
}
