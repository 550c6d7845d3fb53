//! The file tools: what is located is decided on, and the operation goes on with the same descriptor.

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
use crate::force::Force;
use crate::paths;
use crate::rejudge::{overtaken, with_content};
use crate::session::Session;

/// Which file a call is about.
#[derive(Debug, Clone, Copy)]
pub struct FileCall<'a> {
    /// Absolute; links and `..` are resolved by the kernel.
    pub path: &'a Path,
    /// As the caller wrote it.
    pub given: &'a str,
    /// The client's call, where there is one.
    pub call: Option<&'a str>,
    /// Takes the call back.
    pub cancel: &'a Cancel,
}

/// Why a file operation did not happen.
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

/// A file that was read, with what people may be told of it.
#[derive(Debug)]
pub struct ReadFile {
    /// Where it is, in path text.
    pub canonical: String,
    /// What is in it.
    pub content: FileContent,
}

/// A file that was read to be edited.
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
    /// What is in it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.editing.content().bytes
    }

    /// Where it is, in path text.
    #[must_use]
    pub fn canonical_text(&self) -> &str {
        self.editing.canonical_text()
    }
}

impl Session {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is not allowed, or cannot be read.
    pub fn read_file(&self, call: FileCall<'_>) -> Result<ReadFile, FileFailure> {
        let force = self.force();
        let (located, authorized) = self.located(&force, call, Purpose::Existing, FileOperation::Read)?;
        let canonical = located.canonical_text().to_owned();
        let granted = authorized.granted()?;
        let content = force.gate.read(located, granted.permit, Limits::default());
        self.outcome(&granted.request, &told(&content));
        Ok(ReadFile { canonical, content: content? })
    }

    /// Reads a file that is to be edited; [`Session::finish_edit`] ends the edit.
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
                // Names that nobody has looked for.
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

    /// Puts new content in place of what was read, if the file is still that.
    ///
    /// # Errors
    /// When the content decides and is not allowed, the file changed since, or cannot be written.
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

    /// Puts the result of an edit in place, if it is still allowed while nobody changes names.
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
        // Through the gate that read it: the views of a newer one may differ.
        edit.force.gate.replace(edit.editing, content.as_bytes(), edit.links)
    }

    /// What the result of an edit comes to, where the content decides.
    fn judged_edit(&self, edit: &EditFile, content: &str) -> Option<Attribute> {
        let path = path_text::decode(edit.canonical_text())?;
        self.content(&edit.force, &path, Some(edit.bytes()), content.as_bytes())
    }

    /// Has the result of an edit authorized, where the content decides whether it may be written; returns the decision.
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

    /// Ends an edit without writing anything.
    pub fn abandon_edit(&self, edit: &EditFile) {
        self.outcome(&edit.request, "nothing was written");
    }

    /// Writes a whole file, and the directories above it.
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

    /// Writes a file, if it is still allowed while nobody changes names.
    fn install(
        &self,
        force: &Force,
        (located, granted): (Located, Granted),
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<Written, FileError> {
        let path = located.canonical_text();
        let _order = self.exclusive(path)?;
        let judged = self.judged(force, &located, bytes);
        let request = with_content(&granted.request, judged.attributes.into_iter().next());
        if !self.is_still_allowed(force, &request, &[&granted.decision]) {
            return Err(overtaken(path));
        }
        self.examine(force, &located)?;
        let expect = options.expect.or(judged.replaces);
        force.gate.write(located, granted.permit, bytes, WriteOptions { expect, ..options })
    }

    /// Returns the request of a file operation, the path resolved; nothing is decided.
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

    /// Locates the file and has the operation authorized. What is not there is judged all the same, so
    /// that nobody learns what exists where they may not look.
    pub(crate) fn located(
        &self,
        force: &Force,
        call: FileCall<'_>,
        purpose: Purpose,
        operation: FileOperation,
    ) -> Result<(Located, Authorized), FileFailure> {
        self.located_knowing(force, call, purpose, operation, |_| Vec::new())
    }

    /// As [`Session::located`], with the facts that `facts` finds out about what was located.
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
                // Of two that speak of other names the first one counts.
                let attributes: Vec<Attribute> = secret.into_iter().chain(facts(&located)).collect();
                let action = self.action(call, &located, operation);
                let mut request = self.request(Origin::Agent, action);
                request.attributes.extend(attributes);
                let authorized = self.authorize(request, call.call, call.cancel);
                Ok((located, authorized))
            }
            // Whatever stands in the way would tell what exists.
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

    /// Where a path would be that is not there: below its nearest ancestor that exists. Links on the way are
    /// followed as far as they lead, or a link of the agent's would name a place that nobody has decided about.
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

/// Locates a path as commands see it. Where they do not see it, or cannot write it, it is located in
/// the host's own view: what happens there is an exception that rules or the user must allow.
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

/// How a file is written of whose other names the decision knew, or was not told any.
fn links(are_known: bool) -> Links {
    if are_known { Links::Allow } else { Links::Refuse }
}

/// Whether an operation shows what is in a file; an edit shows what is around the text.
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
