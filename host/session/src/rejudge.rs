//! Repeats the decision on a file right before the file is changed.
//!
//! Some rules on names depend on the surroundings of a name: `config` is one of git's files once `objects` and `refs`
//! exist beside it. Commands can change these while the user is asked and while a tool prepares its file. So a tool
//! takes the lock on name changes ([`NameOrder`](portcullis_sandbox::NameOrder)), repeats the decision, and releases
//! the lock once the file has its name; the gate checks that the directory still has the path that was decided on.
//! Commands can notice the file through inotify as soon as it is created, but they cannot change another name until the
//! lock is released.

use std::path::Path;

use portcullis_decision::{Decision, Effect, Request};
use portcullis_file_gate::{FileError, Located, Purpose};
use portcullis_sandbox::Exclusive;
use portcullis_syscall_broker::examine_repository;

use crate::effective_policy::EffectivePolicy;
use crate::locate::locate;
use crate::session::Session;

/// Waits until no command of any session changes a name, and blocks name changes meanwhile.
///
/// Returns `None` if there are no commands.
pub(crate) fn exclusive<'a>(session: &'a Session, path: &str) -> Result<Option<Exclusive<'a>>, FileError> {
    let order = session.setup.confinement.order();
    let taken = order.map(|order| order.exclusive()).transpose();
    taken.map_err(|source| FileError::Io {
        doing: "wait for the turn to write",
        path: path.to_owned(),
        source,
    })
}

/// Returns true if the rules on names have no ruling on `request` now that was unknown to `decisions`.
pub(crate) fn is_still_allowed(
    session: &Session,
    effective: &EffectivePolicy,
    request: &Request,
    decisions: &[&Decision],
) -> bool {
    let ruling = session.exec_surface(effective).ruling(request, &session.live_grants());
    ruling.is_none_or(|ruling| {
        ruling.effect == Effect::Allow || decisions.iter().any(|decision| decision.knows(&ruling))
    })
}

/// Checks a directory that becomes a repository when a file is created at `located`.
///
/// The user who allowed that has not seen the content of the directory. The caller must hold the lock on name
/// changes.
pub(crate) fn examine(
    session: &Session,
    effective: &EffectivePolicy,
    located: &Located,
) -> Result<(), FileError> {
    let surface = session.exec_surface(effective);
    let Some(repository) = surface.completed_by(located) else { return Ok(()) };
    let Some(directory) = located.directory() else { return Ok(()) };
    examine_repository(directory, &repository, surface.roots(), &session.settings().lifted).map_err(
        |source| {
            let path = located.canonical_text().to_owned();
            FileError::Denied { doing: "complete a repository with", path, source }
        },
    )
}

/// Returns true unless a new name at `path` completes a repository that contains something harmful.
///
/// Like [`examine`], for operations that the host performs for a command.
pub(crate) fn may_complete(session: &Session, effective: &EffectivePolicy, path: &Path) -> bool {
    locate(&effective.gate, path, Purpose::ForWriting)
        .is_ok_and(|located| examine(session, effective, &located).is_ok())
}

/// Returns the error for a file whose surroundings changed the decision.
pub(crate) fn overtaken(path: &str) -> FileError {
    FileError::Conflict { path: path.to_owned() }
}
