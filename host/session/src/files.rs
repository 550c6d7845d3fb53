//! The file tools. A decision is made about a located file, and the operation uses the same file descriptor.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::{RealDisk, names_on_the_way};
use portcullis_decision::request::{
    Action, Attribute, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Text,
    TextEdit,
};
use portcullis_decision::{Decision, Request, path_text};
use portcullis_file_gate::{
    Editing, FileContent, FileError, Gate, Limits, Links, Located, Purpose, WriteOptions, Written,
};

use crate::authorized::{Authorized, Granted};
use crate::cancel::Cancel;
use crate::effective_policy::Force;
use crate::paths;
use crate::provoked::fault_point;
use crate::rejudge::{overtaken, with_content};
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
    #[error("{} (rule `{}` of `{}`)", .0.cause().reason, .0.cause().rule, .0.policy())]
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
    force: Arc<Force>,
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

impl Session {
    /// Reads a file.
    ///
    /// # Errors
    /// When reading is not allowed, or fails.
    pub fn read_file(&self, call: FileCall<'_>) -> Result<ReadFile, FileFailure> {
        let force = self.force();
        let (located, authorized) = self.located(&force, call, Purpose::Existing, FileOperation::Read)?;
        let canonical = located.canonical_text().to_owned();
        let granted = authorized.granted()?;
        let content = force.gate.read(located, granted.permit, Limits::default());
        self.outcome(&granted.request, &told(&content));
        Ok(ReadFile { canonical, content: content? })
    }

    /// Reads a file in order to edit it; [`Session::finish_edit`] completes the edit.
    ///
    /// # Errors
    /// When it is not allowed, or cannot be read.
    pub fn edit_file(&self, call: FileCall<'_>, edits: &[(String, String)]) -> Result<EditFile, FileFailure> {
        let force = self.force();
        let text_edit = |(old, new): &(String, String)| TextEdit { old: Text::cut(old), new: Text::cut(new) };
        let operation = FileOperation::Edit(edits.iter().map(text_edit).collect());
        let mut linked = None;
        let (located, authorized) =
            self.located_knowing(&force, call, Purpose::ForWriting, operation.clone(), |located| {
                linked = self.written_by_other_names(&force, located, &operation);
                linked.iter().filter_map(|linked| linked.attribute.clone()).collect()
            })?;
        let granted = authorized.granted()?;
        let path = located.canonical_text().to_owned();
        let edited =
            force.gate.edit(located, granted.permit, Limits::default()).and_then(|editing| match &linked {
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
                    force,
                    links: links(linked.is_some()),
                    call,
                })
            }
            Err(error) => {
                self.outcome(&granted.request, &error.to_string());
                Err(error.into())
            }
        }
    }

    /// Replaces the content of an edited file, if the file is unchanged since it was read.
    ///
    /// # Errors
    /// When the content is not allowed, the file has changed since, or cannot be written.
    pub fn finish_edit(
        &self,
        edit: EditFile,
        content: &str,
        cancel: &Cancel,
    ) -> Result<Written, FileFailure> {
        let decided = match self.authorize_content(&edit, content, cancel) {
            Ok(decided) => decided,
            Err(denied) => {
                self.abandon_edit(&edit);
                return Err(denied.into());
            }
        };
        let request = edit.request.clone();
        let written = self.install_edit(edit, content, decided.as_ref());
        self.outcome(&request, &told(&written));
        Ok(written?)
    }

    /// Installs the result of an edit, if it is still allowed while names cannot change.
    fn install_edit(
        &self,
        edit: EditFile,
        content: &str,
        of_content: Option<&Decision>,
    ) -> Result<Written, FileError> {
        let path = edit.canonical_text().to_owned();
        let _order = self.exclusive(&path)?;
        let judged = self.judged_edit(&edit, content);
        let decisions: Vec<&Decision> = std::iter::once(&edit.decision).chain(of_content).collect();
        if !self.is_still_allowed(&edit.force, &with_content(&edit.request, judged), &decisions) {
            return Err(overtaken(&path));
        }
        // Use the gate that read the file: a newer one can have other views.
        edit.force.gate.replace(edit.editing, content.as_bytes(), edit.links)
    }

    /// Returns the verdict on the result of an edit, if the decision depends on content.
    fn judged_edit(&self, edit: &EditFile, content: &str) -> Option<Attribute> {
        let path = path_text::decode(edit.canonical_text())?;
        self.content(&edit.force, &path, Some(edit.bytes()), content.as_bytes())
    }

    /// Authorizes the result of an edit if the decision depends on content, and returns the decision.
    fn authorize_content(
        &self,
        edit: &EditFile,
        content: &str,
        cancel: &Cancel,
    ) -> Result<Option<Decision>, Box<Decision>> {
        let Some(judged) = self.judged_edit(edit, content) else { return Ok(None) };
        let mut request = self.request(edit.request.origin, edit.request.action.clone());
        request.parent = Some(edit.request.id.clone());
        request.attributes.push(judged);
        let granted = self.authorize(request, edit.call.as_deref(), cancel).granted()?;
        Ok(Some(granted.decision))
    }

    /// Ends an edit without writing.
    pub fn abandon_edit(&self, edit: &EditFile) {
        self.outcome(&edit.request, "nothing was written");
    }

    /// Writes a whole file, and creates its parent directories.
    ///
    /// # Errors
    /// When it is not allowed, or cannot be written.
    pub fn write_file(&self, call: FileCall<'_>, content: &str) -> Result<(String, Written), FileFailure> {
        let force = self.force();
        let operation = FileOperation::Write(Content::Text(Text::cut(content)));
        let mut options = WriteOptions::default();
        let (located, authorized) =
            self.located_knowing(&force, call, Purpose::ForWriting, operation.clone(), |located| {
                let judged = self.judged(&force, located, content.as_bytes());
                let linked = self.written_by_other_names(&force, located, &operation);
                options.links = links(linked.is_some());
                options.expect = linked.as_ref().map(|linked| linked.identity).or(judged.replaces);
                judged.attributes.into_iter().chain(linked.and_then(|linked| linked.attribute)).collect()
            })?;
        let canonical = located.canonical_text().to_owned();
        let granted = authorized.granted()?;
        let request = granted.request.clone();
        let written = self.install(&force, (located, granted), content.as_bytes(), options);
        self.outcome(&request, &told(&written));
        Ok((canonical, written?))
    }

    /// Writes a file, if it is still allowed while names cannot change.
    fn install(
        &self,
        force: &Force,
        (located, granted): (Located, Granted),
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<Written, FileError> {
        let path = located.canonical_text();
        let _order = self.exclusive(path)?;
        fault_point("file");
        let judged = self.judged(force, &located, bytes);
        let request = with_content(&granted.request, judged.attributes.into_iter().next());
        if !self.is_still_allowed(force, &request, &[&granted.decision]) {
            return Err(overtaken(path));
        }
        self.examine(force, &located)?;
        let expect = options.expect.or(judged.replaces);
        force.gate.write(located, granted.permit, bytes, WriteOptions { expect, ..options })
    }

    /// Returns the request of a file operation with the path resolved; does not decide.
    ///
    /// # Errors
    /// When the path cannot be resolved.
    pub fn file_request(&self, call: FileCall<'_>, operation: FileOperation) -> Result<Request, FileFailure> {
        let force = self.force();
        let Ok(located) = locate(&force.gate, call.path, purpose(&operation)) else {
            return Ok(self.request(Origin::Agent, self.missing(&force.gate, call, operation)));
        };
        let secret = if reads(&operation) { self.read_by_another_name(&force, &located) } else { None };
        let is_change = matches!(operation, FileOperation::Write(_) | FileOperation::Edit(_));
        let linked = if is_change { self.written_by_other_names(&force, &located, &operation) } else { None };
        let mut request = self.request(Origin::Agent, self.action(call, &located, operation));
        request.attributes.extend(secret.into_iter().chain(linked.and_then(|linked| linked.attribute)));
        Ok(request)
    }

    /// Locates the file and authorizes the operation.
    ///
    /// A missing file is decided on as well, so that callers cannot learn which files exist in places that they may not
    /// see.
    pub(crate) fn located(
        &self,
        force: &Force,
        call: FileCall<'_>,
        purpose: Purpose,
        operation: FileOperation,
    ) -> Result<(Located, Authorized), FileFailure> {
        self.located_knowing(force, call, purpose, operation, |_| Vec::new())
    }

    /// Like [`Session::located`], with the attributes that `facts` returns for the located file.
    pub(crate) fn located_knowing(
        &self,
        force: &Force,
        call: FileCall<'_>,
        purpose: Purpose,
        operation: FileOperation,
        facts: impl FnOnce(&Located) -> Vec<Attribute>,
    ) -> Result<(Located, Authorized), FileFailure> {
        match locate(&force.gate, call.path, purpose) {
            Ok(located) => {
                let secret =
                    if reads(&operation) { self.read_by_another_name(force, &located) } else { None };
                // If both are about other names, the first one counts.
                let attributes: Vec<Attribute> = secret.into_iter().chain(facts(&located)).collect();
                let action = self.action(call, &located, operation);
                let mut request = self.request(Origin::Agent, action);
                request.attributes.extend(attributes);
                let authorized = self.authorize(request, call.call, call.cancel);
                Ok((located, authorized))
            }
            // Returning the error would tell which files exist.
            Err(error) => {
                let action = self.missing(&force.gate, call, operation);
                let authorized = self.authorize(self.request(Origin::Agent, action), call.call, call.cancel);
                let granted = authorized.granted()?;
                self.outcome(&granted.request, &error.to_string());
                Err(error.into())
            }
        }
    }

    fn action(&self, call: FileCall<'_>, located: &Located, operation: FileOperation) -> Action {
        let path = paths::located(&self.setup.context, call.given, call.path, located);
        Action::File(FileAccess { path, operation, facts: located.facts() })
    }

    fn missing(&self, gate: &Gate, call: FileCall<'_>, operation: FileOperation) -> Action {
        Action::File(FileAccess {
            path: self.missing_path(gate, call),
            operation,
            facts: FileFacts::default(),
        })
    }

    /// Returns the reference for a missing path: below its nearest existing ancestor.
    ///
    /// Links on the way are followed as far as possible; otherwise a link of the agent could lead to a path that was
    /// not decided on.
    fn missing_path(&self, gate: &Gate, call: FileCall<'_>) -> PathRef {
        let canonical = match locate(gate, call.path, Purpose::ForWriting) {
            Ok(slot) => slot.canonical().to_owned(),
            Err(_) => names_on_the_way(call.path, &RealDisk)
                .ok()
                .and_then(|names| names.into_iter().next())
                .unwrap_or_else(|| path_text::normalize(call.path)),
        };
        paths::reference(&self.setup.context, call.given, call.path, &canonical, PathKind::Missing)
    }
}

/// Locates a path as commands see it.
///
/// If commands cannot see or write it, it is located in the host's own view; operations there are exceptions that rules
/// or the user must allow.
pub(crate) fn locate(gate: &Gate, path: &Path, purpose: Purpose) -> Result<Located, FileError> {
    match gate.locate(path, purpose) {
        Ok(located) if !located.is_on_read_only_mount() => Ok(located),
        Ok(_)
        | Err(FileError::NotFound { .. } | FileError::Denied { .. } | FileError::NotADirectory { .. }) => {
            match gate.locate_in_host_view(path, purpose) {
                Err(FileError::HostTemp { path }) => Err(FileError::NotFound { path }),
                result => result,
            }
        }
        Err(error) => Err(error),
    }
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

pub(crate) fn told<T, E: std::fmt::Display>(result: &Result<T, E>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => error.to_string(),
    }
}
