//! How a brokered connection ends, as far as it is known.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::judge::Ending;

/// The end of a connection. The first refusal counts, since later ones can follow from it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    first: Mutex<First>,
    /// Notified when the connection has to end, after the requests that are being answered.
    pub(super) closing: Notify,
}

#[derive(Debug, Default)]
struct First {
    ending: Option<Ending>,
    /// Requests that were refused after the first one: those of HTTP/2 come at the same time.
    refused_later: usize,
}

impl Outcome {
    /// Notes why a request or the connection was given up. After a refusal the connection is closed.
    pub(super) fn note(&self, ending: Ending) {
        let is_refusal = matches!(ending, Ending::Refused(_));
        let mut first = self.first();
        match (&first.ending, &ending) {
            (Some(Ending::Refused(_)), Ending::Refused(_)) => first.refused_later += 1,
            (Some(Ending::Refused(_)), Ending::Closed | Ending::Unreachable(_)) => {}
            (None | Some(Ending::Closed | Ending::Unreachable(_)), _) => first.ending = Some(ending),
        }
        drop(first);
        if is_refusal {
            self.closing.notify_one();
        }
    }

    /// Returns true if a request was refused.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.first().ending, Some(Ending::Refused(_)))
    }

    /// Returns how the connection ended.
    pub(super) fn ending(&self) -> Ending {
        let first = self.first();
        let mut ending = first.ending.clone().unwrap_or(Ending::Closed);
        if let Ending::Refused(refusal) = &mut ending
            && first.refused_later > 0
        {
            let more = format!("; {} more requests on this connection were refused", first.refused_later);
            refusal.reason.push_str(&more);
        }
        ending
    }

    fn first(&self) -> MutexGuard<'_, First> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::ConnectionRefusal;

    use super::*;

    #[test]
    fn the_first_refusal_counts_and_the_others_are_counted() {
        let outcome = Outcome::default();
        assert_eq!(outcome.ending(), Ending::Closed);
        outcome.note(Ending::Unreachable("one stream".to_owned()));
        assert!(!outcome.is_refused());
        let refused = |why: &str| Ending::Refused(ConnectionRefusal::by_host("host.malformed", why));
        outcome.note(refused("the first"));
        assert_eq!(outcome.ending(), refused("the first"));
        outcome.note(refused("the second"));
        outcome.note(Ending::Closed);
        let Ending::Refused(refusal) = outcome.ending() else { panic!("{outcome:?}") };
        assert_eq!(refusal.reason, "the first; 1 more requests on this connection were refused");
    }
}
