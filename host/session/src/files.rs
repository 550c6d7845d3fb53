//! The file tools. A decision is made about a located file, and the operation uses the same file descriptor.

use std::path::Path;
use std::sync::Arc;

use portcullis_approvals::Cancel;
use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Text, TextEdit,
};
use portcullis_decision::{ContentVerdict, Decision, Fact, RefusalText, Request, path_text};
use portcullis_file_gate::{
    Editing, FileContent, FileError, Gate, Limits, Links, Located, Purpose, WriteOptions, Written,
};
use portcullis_settings::{RealDisk, names_on_the_way};

use crate::authorized::{Authorized, Granted};
use crate::changes;
use crate::effective_policy::EffectivePolicy;
use crate::links::{read_by_another_name, written_by_other_names};
use crate::locate::locate;
use crate::paths;
use crate::provoked::fault_point;
use crate::rejudge::{examine, exclusive, is_still_allowed, overtaken};
use crate::session::Session;

/// The file of a call.
#[derive(Debug, Clone, Copy)]
pub struct FileCall<'a> {
    /// Absolute path; the kernel resolves links and `..`.
    pub path: &'a Path,
    /// The path as the caller wrote it.
    pub given: &'a str,
    /// The client's call, if any.
    pub call: Option<&'a str>,
    /// Cancels the call.
    pub cancel: &'a Cancel,
}

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FileFailure {
    /// It was not allowed.
    #[error("{}", RefusalText::for_decision(.0).with_next_step(None))]
    Denied(Box<Decision>),
    /// It failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<Box<Decision>> for FileFailure {
    fn from(decision: Box<Decision>) -> Self {
        Self::Denied(decision)
    }
}

/// A file that was read.
#[derive(Debug)]
pub struct ReadFile {
    /// Its canonical path, in path text.
    pub canonical: String,
    /// The content.
    pub content: FileContent,
}

/// A file that was read in order to edit it.
#[derive(Debug)]
pub struct EditFile {
    editing: Editing,
    request: Request,
    decision: Decision,
    effective: Arc<EffectivePolicy>,
    links: Links,
    call: Option<String>,
}

impl EditFile {
    /// Returns the content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.editing.content().bytes
    }

    /// Returns the canonical path, in path text.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        self.editing.canonical_text()
    }
}

/// Reads a file.
///
/// # Errors
/// When reading is not allowed, or fails.
pub fn read(session: &Session, call: FileCall<'_>) -> Result<ReadFile, FileFailure> {
    let effective = session.effective_policy();
    let (located, authorized) = located(session, &effective, call, Purpose::Existing, FileOperation::Read)?;
    let canonical = located.canonical_text().to_owned();
    let granted = authorized.granted()?;
    let content = effective.gate.read(located, granted.permit, Limits::default());
    session.outcome(&granted.request, &outcome_text(&content));
    Ok(ReadFile { canonical, content: content? })
}

/// Reads a file in order to edit it; [`finish_edit`] completes the edit.
///
/// # Errors
/// When it is not allowed, or cannot be read.
pub fn edit(
    session: &Session,
    call: FileCall<'_>,
    edits: &[(String, String)],
) -> Result<EditFile, FileFailure> {
    let effective = session.effective_policy();
    let text_edit = |(old, new): &(String, String)| TextEdit { old: Text::cut(old), new: Text::cut(new) };
    let operation = FileOperation::Edit(edits.iter().map(text_edit).collect());
    let mut linked = None;
    let (located, authorized) =
        located_knowing(session, &effective, call, Purpose::ForWriting, operation.clone(), |located| {
            linked = written_by_other_names(session, &effective, located, &operation);
            linked.iter().filter_map(|linked| linked.fact.clone()).collect()
        })?;
    let granted = authorized.granted()?;
    let path = located.canonical_text().to_owned();
    let edited =
        effective.gate.edit(located, granted.permit, Limits::default()).and_then(|editing| match &linked {
            // The other names of the new file have not been checked.
            Some(linked) if editing.content().identity != linked.identity => {
                Err(FileError::Conflict { path })
            }
            Some(_) | None => Ok(editing),
        });
    match edited {
        Ok(editing) => {
            let call = call.call.map(str::to_owned);
            Ok(EditFile {
                editing,
                request: granted.request,
                decision: granted.decision,
                effective,
                links: links(linked.is_some()),
                call,
            })
        }
        Err(error) => {
            session.outcome(&granted.request, &error.to_string());
            Err(error.into())
        }
    }
}

/// Replaces the content of an edited file, if the file is unchanged since it was read.
///
/// # Errors
/// When the content is not allowed, the file has changed since, or cannot be written.
pub fn finish_edit(
    session: &Session,
    edit: EditFile,
    content: &str,
    cancel: &Cancel,
) -> Result<Written, FileFailure> {
    let decided = match authorize_content(session, &edit, content, cancel) {
        Ok(decided) => decided,
        Err(denied) => {
            abandon_edit(session, &edit);
            return Err(denied.into());
        }
    };
    let request = edit.request.clone();
    let written = install_edit(session, edit, content, decided.as_ref());
    session.outcome(&request, &outcome_text(&written));
    Ok(written?)
}

/// Installs the result of an edit, if it is still allowed while names cannot change.
fn install_edit(
    session: &Session,
    edit: EditFile,
    content: &str,
    of_content: Option<&Decision>,
) -> Result<Written, FileError> {
    let path = edit.canonical_text().to_owned();
    let _order = exclusive(session, &path)?;
    let judged = judged_edit(session, &edit, content);
    let decisions: Vec<&Decision> = std::iter::once(&edit.decision).chain(of_content).collect();
    if !is_still_allowed(session, &edit.effective, &edit.request.clone().with_content(judged), &decisions) {
        return Err(overtaken(&path));
    }
    let recorded = changes::before(session, &edit.effective, edit.editing.located())?;
    // Use the gate that read the file: a newer one can have other views.
    let written = edit.effective.gate.replace(edit.editing, content.as_bytes(), edit.links);
    changes::after(session, recorded.as_ref(), edit.call.as_deref(), "edit");
    written
}

/// Returns the verdict on the result of an edit, if the decision depends on content.
fn judged_edit(session: &Session, edit: &EditFile, content: &str) -> Option<ContentVerdict> {
    let path = path_text::decode(edit.canonical_text())?;
    session.exec_surface(&edit.effective).content(&path, Some(edit.bytes()), content.as_bytes())
}

/// Authorizes the result of an edit if the decision depends on content, and returns the decision.
fn authorize_content(
    session: &Session,
    edit: &EditFile,
    content: &str,
    cancel: &Cancel,
) -> Result<Option<Decision>, Box<Decision>> {
    let Some(judged) = judged_edit(session, edit, content) else { return Ok(None) };
    let mut request = session.request(edit.request.origin, edit.request.action.clone());
    request.parent = Some(edit.request.id.clone());
    request.facts.push(Fact::Content(judged));
    let granted = session.authorize(request, edit.call.as_deref(), cancel).granted()?;
    Ok(Some(granted.decision))
}

/// Ends an edit without writing.
pub fn abandon_edit(session: &Session, edit: &EditFile) {
    session.outcome(&edit.request, "nothing was written");
}

/// Writes a whole file, and creates its parent directories.
///
/// # Errors
/// When it is not allowed, or cannot be written.
pub fn write(session: &Session, call: FileCall<'_>, content: &str) -> Result<(String, Written), FileFailure> {
    let effective = session.effective_policy();
    let operation = FileOperation::Write(Content::Text(Text::cut(content)));
    let mut options = WriteOptions::default();
    let (located, authorized) =
        located_knowing(session, &effective, call, Purpose::ForWriting, operation.clone(), |located| {
            let judged = session.exec_surface(&effective).judged(located, content.as_bytes());
            let linked = written_by_other_names(session, &effective, located, &operation);
            options.links = links(linked.is_some());
            options.expect = linked.as_ref().map(|linked| linked.identity).or(judged.replaces);
            judged.facts().chain(linked.and_then(|linked| linked.fact)).collect()
        })?;
    let canonical = located.canonical_text().to_owned();
    let granted = authorized.granted()?;
    let request = granted.request.clone();
    let written = install(session, &effective, (located, granted), (content.as_bytes(), call.call), options);
    session.outcome(&request, &outcome_text(&written));
    Ok((canonical, written?))
}

/// Writes a file, if it is still allowed while names cannot change.
fn install(
    session: &Session,
    effective: &EffectivePolicy,
    (located, granted): (Located, Granted),
    (bytes, call): (&[u8], Option<&str>),
    options: WriteOptions,
) -> Result<Written, FileError> {
    let path = located.canonical_text();
    let _order = exclusive(session, path)?;
    fault_point("file");
    let judged = session.exec_surface(effective).judged(&located, bytes);
    let request = granted.request.clone().with_content(judged.verdict);
    if !is_still_allowed(session, effective, &request, &[&granted.decision]) {
        return Err(overtaken(path));
    }
    examine(session, effective, &located)?;
    let expect = options.expect.or(judged.replaces);
    let recorded = changes::before(session, effective, &located)?;
    let written = effective.gate.write(located, granted.permit, bytes, WriteOptions { expect, ..options });
    changes::after(session, recorded.as_ref(), call, "write");
    written
}

/// Returns the request of a file operation with the path resolved; does not decide.
///
/// # Errors
/// When the path cannot be resolved.
pub fn request(
    session: &Session,
    call: FileCall<'_>,
    operation: FileOperation,
) -> Result<Request, FileFailure> {
    let effective = session.effective_policy();
    let Ok(located) = locate(&effective.gate, call.path, purpose(&operation)) else {
        return Ok(session.request(Origin::Agent, missing(session, &effective.gate, call, operation)));
    };
    let secret = if reads(&operation) { read_by_another_name(session, &effective, &located) } else { None };
    let is_change = matches!(operation, FileOperation::Write(_) | FileOperation::Edit(_));
    let linked =
        if is_change { written_by_other_names(session, &effective, &located, &operation) } else { None };
    let mut request = session.request(Origin::Agent, action(session, call, &located, operation));
    request.facts.extend(secret.into_iter().chain(linked.and_then(|linked| linked.fact)));
    Ok(request)
}

/// Returns the request to write this content to a file; does not decide.
///
/// # Errors
/// When the path cannot be resolved.
pub fn write_request(
    session: &Session,
    call: FileCall<'_>,
    content: Option<&[u8]>,
) -> Result<Request, FileFailure> {
    let mut request = request(session, call, FileOperation::Write(Content::Unknown))?;
    let effective = session.effective_policy();
    if let Ok(located) = locate(&effective.gate, call.path, Purpose::ForWriting) {
        let surface = session.exec_surface(&effective);
        let judged = match content {
            Some(content) => surface.judged(&located, content),
            None => surface.unknown(&located),
        };
        request.facts.extend(judged.facts());
    }
    Ok(request)
}

/// Locates the file and authorizes the operation.
///
/// A missing file is decided on as well, so that callers cannot learn which files exist in places that they may not
/// see.
pub(crate) fn located(
    session: &Session,
    effective: &EffectivePolicy,
    call: FileCall<'_>,
    purpose: Purpose,
    operation: FileOperation,
) -> Result<(Located, Authorized), FileFailure> {
    located_knowing(session, effective, call, purpose, operation, |_| Vec::new())
}

/// Like [`located`], with the facts that `find` returns for the located file.
pub(crate) fn located_knowing(
    session: &Session,
    effective: &EffectivePolicy,
    call: FileCall<'_>,
    purpose: Purpose,
    operation: FileOperation,
    find: impl FnOnce(&Located) -> Vec<Fact>,
) -> Result<(Located, Authorized), FileFailure> {
    match locate(&effective.gate, call.path, purpose) {
        Ok(located) => {
            let secret =
                if reads(&operation) { read_by_another_name(session, effective, &located) } else { None };
            // If both are about other names, the first one counts.
            let facts: Vec<Fact> = secret.into_iter().chain(find(&located)).collect();
            let action = action(session, call, &located, operation);
            let mut request = session.request(Origin::Agent, action);
            request.facts.extend(facts);
            let authorized = session.authorize(request, call.call, call.cancel);
            Ok((located, authorized))
        }
        // Returning the error would tell which files exist.
        Err(error) => {
            let action = missing(session, &effective.gate, call, operation);
            let authorized =
                session.authorize(session.request(Origin::Agent, action), call.call, call.cancel);
            let granted = authorized.granted()?;
            session.outcome(&granted.request, &error.to_string());
            Err(error.into())
        }
    }
}

fn action(session: &Session, call: FileCall<'_>, located: &Located, operation: FileOperation) -> Action {
    let path = paths::located(&session.setup.context, call.given, call.path, located);
    Action::File(FileAccess { path, operation, facts: located.facts() })
}

fn missing(session: &Session, gate: &Gate, call: FileCall<'_>, operation: FileOperation) -> Action {
    Action::File(FileAccess {
        path: missing_path(session, gate, call),
        operation,
        facts: FileFacts::default(),
    })
}

/// Returns the reference for a missing path: below its nearest existing ancestor.
///
/// Links on the way are followed as far as possible; otherwise a link of the agent could lead to a path that was
/// not decided on.
fn missing_path(session: &Session, gate: &Gate, call: FileCall<'_>) -> PathRef {
    let canonical = match locate(gate, call.path, Purpose::ForWriting) {
        Ok(slot) => slot.canonical().to_owned(),
        Err(_) => names_on_the_way(call.path, &RealDisk)
            .ok()
            .and_then(|names| names.into_iter().next())
            .unwrap_or_else(|| path_text::normalize(call.path)),
    };
    paths::reference(&session.setup.context, call.given, call.path, &canonical, PathKind::Missing)
}

/// Returns how to write a file with several names, by whether the decision knew of them.
fn links(are_known: bool) -> Links {
    if are_known { Links::Allow } else { Links::Refuse }
}

/// Returns true if an operation reveals the file's content; an edit reveals the text around the change.
fn reads(operation: &FileOperation) -> bool {
    matches!(operation, FileOperation::Read | FileOperation::Search(_) | FileOperation::Edit(_))
}

fn purpose(operation: &FileOperation) -> Purpose {
    match operation {
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => Purpose::Existing,
        FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::Move(_)
        | FileOperation::Link(_)
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => Purpose::ForWriting,
    }
}

pub(crate) fn outcome_text<T, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => error.to_string(),
    }
}
