//! Judges whether a command may read a file.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use portcullis_sandbox::{CallDetails, Judgement, NameAccess};

use crate::approval::Question;
use crate::judge::HARD_LINKS;
use crate::outcome::{RuleRefusal, Stop};
use crate::pending::PendingCall;
use crate::proc_paths::names_of;
use crate::worker::Worker;

/// The pseudo rule that distinguishes an answer about reading from one about writing.
const READING: &str = "reading";

/// Judges reading a file, by its current name or by the last one that it had.
pub(super) fn permit_reading(worker: &Worker, pending: &PendingCall, file: &OwnedFd) -> Result<(), Stop> {
    let text = worker.broker.processes.path_of(file.as_fd())?;
    if worker.broker.is_kept_back(file)? {
        let path = Path::new(OsStr::from_bytes(&text)).to_owned();
        return Err(Stop::Refused(Box::new(RuleRefusal {
            attempt: NameAccess::Read,
            path,
            rule: HARD_LINKS,
        })));
    }
    names_of(&text).try_for_each(|path| permit_reading_of(worker, pending, path))
}

/// Judges reading a file with this name.
pub(super) fn permit_reading_of(worker: &Worker, pending: &PendingCall, path: &Path) -> Result<(), Stop> {
    match worker.broker.judge_reading(path) {
        Judgement::Free => Ok(()),
        Judgement::Asked
            if pending.is_allowed((NameAccess::Read, &CallDetails::Plain), path, READING, None) =>
        {
            Ok(())
        }
        Judgement::Asked => Err(Stop::Ask(Box::new(Question {
            attempt: NameAccess::Read,
            deed: CallDetails::Plain,
            path: path.to_owned(),
            rule: READING,
            content: None,
            reachable: None,
            outside: None,
        }))),
        Judgement::Refused => Err(Stop::Refused(Box::new(RuleRefusal {
            attempt: NameAccess::Read,
            path: path.to_owned(),
            rule: "",
        }))),
    }
}
