//! Faults of the host's own: a panic while a request is carried out.
//!
//! A panic can leave what the requests share half changed, and nobody knows which half. So the request is denied, the
//! fault is written to the log, and nothing is allowed in the session any more.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis_decision::Decision;
use portcullis_decision::request::{Action, Origin, OtherAction};
use serde_json::json;

use crate::session::Session;
use portcullis_text::escape;

/// The rule of every denial after a fault.
pub(crate) const RULE: &str = "host.fault";

/// Carries `work` out; a panic in it becomes its message.
///
/// # Errors
/// The message, where `work` panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(panic.as_ref()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
    escape(text.unwrap_or("no message"))
}

impl Session {
    /// Carries `work` out. Where it panics the session fails closed, and `denied` makes the answer of the reason.
    ///
    /// `doing` says what `work` is, as in "reading a file".
    pub fn guarded<T>(&self, doing: &str, work: impl FnOnce() -> T, denied: impl FnOnce(String) -> T) -> T {
        caught(work).unwrap_or_else(|panic| denied(self.fail(doing, &panic)))
    }

    /// Allows nothing any more because of a panic, writes it to the log and tells the user. Returns the reason.
    pub fn fail(&self, doing: &str, panic: &str) -> String {
        let reason =
            format!("Portcullis failed while {doing} ({panic}); nothing is allowed in this session any more");
        if self.failure.set(reason.clone()).is_ok() {
            let input = json!({ "doing": doing, "panic": panic }).to_string();
            let action = Action::Other(OtherAction { kind: RULE.to_owned(), input });
            // Whatever has failed may be what writes the log, too; then the denials stand without the line.
            let _written = caught(|| {
                let request = self.request(Origin::Process, action);
                self.record(request, Decision::host_denial(RULE, &reason));
            });
            let _told = caught(|| self.setup.desk.notice(&reason));
        }
        reason
    }

    /// The decision on everything after a fault; none before one.
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
