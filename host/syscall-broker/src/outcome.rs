//! How carrying out a call ends.

use std::path::PathBuf;

use portcullis_sandbox::NameAccess;
use portcullis_sys::notify::SyscallAnswer;
use rustix::io::Errno;

use crate::approval::Question;

/// The end of a call.
pub(crate) enum Outcome {
    /// With this answer.
    Answer(SyscallAnswer),
    /// It has been answered, or the caller has ended.
    Done,
}

impl Outcome {
    pub(crate) const LEFT_TO_THE_KERNEL: Self = Self::Answer(SyscallAnswer::Continue);
    pub(crate) const SUCCESS: Self = Self::Answer(SyscallAnswer::Value(0));
}

/// The result of carrying out a call.
pub(crate) type CallResult = Result<Outcome, Stop>;

/// Why a call is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A refusal or a kernel error; the caller gets the errno.
    Error(Errno),
    /// It must be tried again while holding the name order exclusively.
    NotAlone,
    /// The user must be asked.
    Ask(Box<Question>),
    /// A rule refuses it, which is reported to the host.
    Refused(Box<RuleRefusal>),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

/// A refusal by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RuleRefusal {
    pub(crate) attempt: NameAccess,
    pub(crate) path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub(crate) rule: &'static str,
}
