//! What was decided about a file is judged once more right before the file is changed.
//!
//! Some rules on names speak of what surrounds a name: a `config` is one of git's once `objects` and `refs` lie beside it.
//! Commands change that while the user is asked, and while a tool prepares its file. So a tool takes the order of names
//! ([`NameOrder`](portcullis_confine::NameOrder)) first, judges again, and lets go of it when the file has its name; the
//! gate makes sure that the directory still has the path that was judged. The kernel tells commands of the file (by
//! inotify) as it is made, and until it has its name they can change no other.

use portcullis_confine::{Exclusive, examine_repository};
use portcullis_decision::request::Attribute;
use portcullis_decision::{Decision, Effect, Request};
use portcullis_file_gate::{FileError, Located};

use crate::executed::CONTENT;
use crate::force::Force;
use crate::session::Session;

impl Session {
    /// Waits until no command of any session changes a name, and keeps it so. None where there are no commands.
    pub(crate) fn exclusive(&self, path: &str) -> Result<Option<Exclusive<'_>>, FileError> {
        let order = self.setup.confinement.order();
        let taken = order.map(|order| order.exclusive()).transpose();
        taken.map_err(|source| FileError::Io {
            doing: "wait for the turn to write",
            path: path.to_owned(),
            source,
        })
    }

    /// Whether the rules on names say nothing of `request` now that was not known when one of `decisions` was taken.
    pub(crate) fn is_still_allowed(&self, force: &Force, request: &Request, decisions: &[&Decision]) -> bool {
        let ruling = self.ruling_on_names(request, force, &self.live_grants());
        ruling.is_none_or(|ruling| {
            ruling.effect == Effect::Allow || decisions.iter().any(|decision| decision.knows(&ruling))
        })
    }

    /// Looks into the directory that becomes a repository when a file is made where it was located: who said yes to
    /// that has not seen what lies in it. The caller has the order of names.
    pub(crate) fn examine(&self, force: &Force, located: &Located) -> Result<(), FileError> {
        let Some(repository) = self.completed_by(force, located) else { return Ok(()) };
        let Some(directory) = located.directory() else { return Ok(()) };
        let (roots, settings) = (self.roots(), self.settings());
        examine_repository(directory, &repository, &roots, &settings.lifted).map_err(|source| {
            let path = located.canonical_text().to_owned();
            FileError::Denied { doing: "make a repository of what lies around", path, source }
        })
    }
}

/// The same request with other facts about the content that is to be written.
pub(crate) fn with_content(request: &Request, content: Option<Attribute>) -> Request {
    let mut request = request.clone();
    request.attributes.retain(|attribute| attribute.name != CONTENT);
    request.attributes.extend(content);
    request
}

/// The error for a file whose surroundings came to mean something else.
pub(crate) fn overtaken(path: &str) -> FileError {
    FileError::Conflict { path: path.to_owned() }
}
