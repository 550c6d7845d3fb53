//! Faults of the host: panics while a request is processed.
//!
//! A panic can leave shared state half changed, without telling which part. So the request is denied, the fault is
//! logged, and the session denies everything from then on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis_decision::Decision;
use portcullis_decision::request::{Action, Origin, OtherAction};
use serde_json::json;

use crate::session::Session;
use portcullis_text::escape;

/// Id of the rule of each denial after a fault.
pub(crate) const RULE: &str = "host.fault";

/// Runs `work` and returns the message of a panic as an error.
///
/// # Errors
/// The message, if `work` panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(panic.as_ref()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
    escape(text.unwrap_or("no message"))
}

impl Session {
    /// Runs `work`. If it panics, the session fails closed, and `denied` turns the reason into the result.
    ///
    /// `doing` describes the work, as in "reading a file".
    pub fn guarded<T>(&self, doing: &str, work: impl FnOnce() -> T, denied: impl FnOnce(String) -> T) -> T {
        caught(work).unwrap_or_else(|panic| denied(self.fail(doing, &panic)))
    }

    /// Denies all further requests because of a panic, logs it and tells the user. Returns the reason.
    pub fn fail(&self, doing: &str, panic: &str) -> String {
        let reason =
            format!("Portcullis failed while {doing} ({panic}); nothing is allowed in this session any more");
        if self.failure.set(reason.clone()).is_ok() {
            let input = json!({ "doing": doing, "panic": panic }).to_string();
            let action = Action::Other(OtherAction { kind: RULE.to_owned(), input });
            // The log itself may be what has failed. In that case the denials apply without a record.
            let _written = caught(|| {
                let request = self.request(Origin::Process, action);
                self.record(request, Decision::host_denial(RULE, &reason));
            });
            let _told = caught(|| self.setup.prompter.notice(&reason));
        }
        reason
    }

    /// Returns why the session allows nothing any more, or `None` without a fault.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Returns the decision for all requests after a fault, or `None` without a fault.
    pub(crate) fn after_fault(&self) -> Option<Decision> {
        self.failure.get().map(|reason| Decision::host_denial(RULE, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("a fault")), Err::<(), _>("a fault".to_owned()));
        let formatted = || panic!("fault {}", 1 + 1);
        assert_eq!(caught(formatted), Err::<(), _>("fault 2".to_owned()));
        assert_eq!(caught(|| std::panic::panic_any(7_u8)), Err::<(), _>("no message".to_owned()));
        let escaped = caught(|| panic!("\u{1b}]0;x\u{7}")).err();
        assert!(escaped.is_some_and(|text: String| !text.contains('\u{1b}')));
    }
}
