//! The question to the user about a call, and the scope of an approval.

use std::path::{Path, PathBuf};

use portcullis_sandbox::{CallDetails, NameAccess};

use crate::wire::questions::Outside;

/// A question that must be answered before a call continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) attempt: NameAccess,
    pub(crate) deed: CallDetails,
    pub(crate) path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub(crate) rule: &'static str,
    /// The text in question with the reason, if the content decides.
    pub(crate) content: Option<(Vec<u8>, String)>,
    /// The sorted names that a link makes reachable, as found when the question was made. They are not shown, but the
    /// answer holds for these names only.
    pub(crate) reachable: Option<Vec<u8>>,
    /// The operation that only the host can perform, if there is one.
    pub(crate) outside: Option<Outside>,
}

/// An operation that the user has approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approval {
    pub(crate) attempt: NameAccess,
    pub(crate) deed: CallDetails,
    pub(crate) path: PathBuf,
    /// As in [`Question`].
    pub(crate) rule: &'static str,
    /// The exact text, or the reachable names, of the question; `None` if it had neither. The command may change both
    /// while the user decides.
    pub(crate) text: Option<Vec<u8>>,
}

impl Approval {
    /// Returns true if this approval is for this operation. The call is read again after the answer, and may differ by
    /// then.
    pub(crate) fn covers(
        &self,
        (attempt, deed): (NameAccess, &CallDetails),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_for_what_was_asked_about() {
        let (path, other) = (Path::new("/w/.envrc"), Path::new("/w/.npmrc"));
        let deed = CallDetails::Symlink("target".into());
        let yes = Approval {
            attempt: NameAccess::Write,
            deed: deed.clone(),
            path: path.to_owned(),
            rule: "a",
            text: None,
        };
        let write = (NameAccess::Write, &deed);
        assert!(yes.covers(write, path, "a", None));
        assert!(!yes.covers((NameAccess::Remove, &deed), path, "a", None));
        assert!(!yes.covers((NameAccess::Write, &CallDetails::Plain), path, "a", None));
        assert!(!yes.covers((NameAccess::Write, &CallDetails::Symlink("other".into())), path, "a", None));
        assert!(!yes.covers(write, other, "a", None));
        assert!(!yes.covers(write, path, "b", None));
        assert!(!yes.covers(write, path, "a", Some(b"text")));
    }
}
