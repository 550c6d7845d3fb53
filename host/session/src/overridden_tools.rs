//! Tools that override one of pi's own tools by name.
//!
//! The host decides on pi's operation, and another program carries it out.
//!
//! Decision and operation are separate here. The other program gets the canonical path, so the operation starts at the
//! path that was decided on. A process that can change directories in between can still redirect it.

use std::path::Path;

use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Content, FileOperation, Text, TextEdit};
use portcullis_decision::{Caller, ContentVerdict, Decision, Fact};
use portcullis_file_gate::spelling::{self, PiLine};
use portcullis_file_gate::{Located, Purpose};

use crate::effective_policy::EffectivePolicy;
use crate::files::{FileCall, FileFailure, located_knowing};
use crate::links::written_by_other_names;
use crate::session::Session;

/// The operation of an overriding tool.
#[derive(Debug, Clone, Copy)]
pub enum TakenOver<'a> {
    /// Read a file.
    Read,
    /// Write a whole file.
    Write(&'a str),
    /// Replace texts in a file.
    Edit(&'a [(String, String)]),
    /// List names or lines at the path and below it.
    Search(&'a FileOperation),
}

/// Authorizes an operation that `provider` carries out, and returns the path for it.
///
/// # Errors
/// When it is not allowed, cannot be left to another program, or the file to read does not exist.
pub fn authorize(
    session: &Session,
    call: FileCall<'_>,
    provider: &str,
    operation: TakenOver<'_>,
) -> Result<String, FileFailure> {
    let effective = session.effective_policy();
    let (purpose, operation, content) = match operation {
        TakenOver::Read => (Purpose::Existing, FileOperation::Read, None),
        TakenOver::Search(operation) => (Purpose::Existing, operation.clone(), None),
        TakenOver::Write(content) => {
            let operation = FileOperation::Write(Content::Text(Text::cut(content)));
            (Purpose::ForWriting, operation, Some(content))
        }
        TakenOver::Edit(edits) => {
            let edit = |(old, new): &(String, String)| TextEdit { old: Text::cut(old), new: Text::cut(new) };
            (Purpose::ForWriting, FileOperation::Edit(edits.iter().map(edit).collect()), None)
        }
    };
    let is_search = matches!(operation, FileOperation::List | FileOperation::Search(_));
    let is_edit = matches!(operation, FileOperation::Edit(_));
    let surface = session.exec_surface(&effective);
    let (located, authorized) =
        located_knowing(session, &effective, call, purpose, operation.clone(), |located| {
            let mut facts = match content {
                Some(content) => surface.judged(located, content.as_bytes()).facts().collect(),
                None if is_edit && surface.is_judged(located.canonical()) => {
                    let reason = "the text that would come of it is not known".to_owned();
                    vec![Fact::Content(ContentVerdict::Asks(reason))]
                }
                None => Vec::new(),
            };
            if matches!(purpose, Purpose::ForWriting) {
                let linked = written_by_other_names(session, &effective, located, &operation);
                facts.extend(linked.and_then(|linked| linked.fact));
            }
            facts.push(Fact::Provider(provider.to_owned()));
            facts
        })?;
    let granted = authorized.granted()?;
    let left = hand_on(session, &located, is_search.then_some(&*effective)).and_then(|path| {
        effective.gate.leave_to_others(located, granted.permit)?;
        Ok(path)
    });
    match &left {
        Ok(_) => session.outcome(&granted.request, &format!("left to {provider}")),
        Err(error) => session.outcome(&granted.request, &error.to_string()),
    }
    left
}

/// Returns the canonical path for the tool, if the tool will interpret it as exactly that path.
fn hand_on(
    session: &Session,
    located: &Located,
    search_under: Option<&EffectivePolicy>,
) -> Result<String, FileFailure> {
    let path = located.canonical();
    let denied = |rule, reason| FileFailure::Denied(Box::new(Decision::host_denial(rule, reason)));
    if search_under
        .is_some_and(|effective| !effective.rules.is_open_below(path, FileRight::Read, Caller::Tool))
    {
        return Err(denied(
            "host.unfiltered-search",
            "rules keep names below it back, which only the sandbox's own tools do; use `bash`",
        ));
    }
    let line = PiLine::from_version(&session.agent().version);
    let is_meant = |text: &&str| {
        spelling::resolve_as(line, text, Path::new("/"), Path::new("/")).is_ok_and(|read| read == path)
    };
    path.to_str().filter(is_meant).map(str::to_owned).ok_or_else(|| {
        denied("host.name-not-handed-on", "tools of other extensions would read its name as another one")
    })
}
