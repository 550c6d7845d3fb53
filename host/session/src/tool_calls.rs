//! The requests of calls whose output has not arrived.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_decision::Request;

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

    /// Removes and returns the request of a call.
    pub(crate) fn take(&self, call: &str) -> Option<Request> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(other, _)| other == call)?;
        known.remove(place).map(|(_, request)| request)
    }
}
