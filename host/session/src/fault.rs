//! Faults of the host: panics while a request is processed.
//!
//! A panic can leave shared state half changed, without telling which part. So the request is denied, the fault is
//! logged, and the session denies everything from then on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
