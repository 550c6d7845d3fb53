//! The file operations of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_decision::{Decision, RefusalText};
use portcullis_file_gate::FileError;
use portcullis_file_gate::spelling::{self, PiLine};
use portcullis_rpc::{
    Empty, ErrorCode, ErrorObject, FailureData, FailureKind, FileCloseParams, FileIntent, FileOpenParams,
    FileOpenResponse, FileOutputParams, FileReadParams, FileReadResponse, FileWriteHandleParams,
    FileWriteParams, FileWriteResponse,
};
use portcullis_session::{Cancel, FileCall, FileFailure, files};

use crate::serve::handles::Opened;
use crate::serve::host::{Host, Stage};
use crate::serve::image::image_type;

/// Maximum length of a part of a file in one reply; in base64 it fits into a message.
const LONGEST_PART: usize = 8 << 20;

/// `EACCES` on Linux.
const EACCES: i32 = 13;

impl Host {
    pub(super) fn file_open(
        &self,
        params: &FileOpenParams,
        cancel: &Cancel,
    ) -> Result<FileOpenResponse, ErrorObject> {
        let path = spelling::absolute(params.path.as_str()).map_err(|error| misspelt(&error))?;
        let given = params.given.as_ref().map_or(params.path.as_str(), |given| given.as_str());
        let call = FileCall { path: &path, given, call: Some(params.call_id.as_str()), cancel };
        self.with_session(|session| {
            let (canonical, opened) = match &params.intent {
                FileIntent::Read {} => {
                    let read = files::read(session, call).map_err(|error| failure(&error))?;
                    (read.canonical, Opened::Reading(read.content.bytes))
                }
                FileIntent::Edit { edits } => {
                    let edits: Vec<(String, String)> =
                        edits.iter().map(|edit| (edit.old_text.clone(), edit.new_text.clone())).collect();
                    let editing = files::edit(session, call, &edits).map_err(|error| failure(&error))?;
                    (editing.canonical_text().to_owned(), Opened::Editing(Box::new(editing)))
                }
            };
            let size = opened.bytes().len() as u64;
            Ok(FileOpenResponse { handle: self.handles.keep(opened)?, canonical, size })
        })
    }

    pub(super) fn file_read(&self, params: &FileReadParams) -> Result<FileReadResponse, ErrorObject> {
        let line = self.pi_line();
        let open = self.handles.lock();
        let bytes = open.get(&params.handle).map(Opened::bytes).ok_or_else(bad_handle)?;
        let start = usize::try_from(params.offset).unwrap_or(usize::MAX).min(bytes.len());
        let wanted = params.length.map_or(LONGEST_PART, |length| length as usize).min(LONGEST_PART);
        let end = start.saturating_add(wanted).min(bytes.len());
        let part = bytes.get(start..end).unwrap_or_default();
        Ok(FileReadResponse {
            content_base64: STANDARD.encode(part),
            eof: end == bytes.len(),
            mime_type: if start == 0 { image_type(line, bytes).map(str::to_owned) } else { None },
        })
    }

    pub(super) fn file_write(
        &self,
        params: &FileWriteParams,
        cancel: &Cancel,
    ) -> Result<FileWriteResponse, ErrorObject> {
        let path = spelling::absolute(params.path.as_str()).map_err(|error| misspelt(&error))?;
        let given = params.given.as_ref().map_or(params.path.as_str(), |given| given.as_str());
        let call = FileCall { path: &path, given, call: Some(params.call_id.as_str()), cancel };
        self.with_session(|session| {
            let (canonical, written) =
                files::write(session, call, &params.content).map_err(|error| failure(&error))?;
            Ok(FileWriteResponse { canonical, size: written.size })
        })
    }

    pub(super) fn file_write_handle(
        &self,
        params: &FileWriteHandleParams,
        cancel: &Cancel,
    ) -> Result<FileWriteResponse, ErrorObject> {
        self.with_session(|session| {
            let editing = {
                let mut open = self.handles.lock();
                match open.remove(&params.handle) {
                    Some(Opened::Editing(editing)) => editing,
                    Some(reading @ Opened::Reading(_)) => {
                        open.insert(params.handle, reading);
                        return Err(bad_handle());
                    }
                    None => return Err(bad_handle()),
                }
            };
            let canonical = editing.canonical_text().to_owned();
            let written = files::finish_edit(session, *editing, &params.content, cancel)
                .map_err(|error| failure(&error))?;
            Ok(FileWriteResponse { canonical, size: written.size })
        })
    }

    pub(super) fn file_close(&self, params: &FileCloseParams) -> Result<Empty, ErrorObject> {
        // Closing a closed handle is no error: an edit ends with its write.
        let closed = self.handles.lock().remove(&params.handle);
        if let Some(Opened::Editing(edit)) = closed {
            self.with_session(|session| {
                files::abandon_edit(session, &edit);
                Ok(())
            })?;
        }
        Ok(Empty {})
    }

    /// Allows reading pi's own file with a command's full output, by its exact name.
    pub(super) fn file_output(&self, params: &FileOutputParams) -> Result<Empty, ErrorObject> {
        if let Stage::Open(wired) = self.stage().as_ref()
            && self.bring_output(params.path.as_path(), wired)?
        {
            return Ok(Empty {});
        }
        self.with_session(|session| {
            let registered = session.register_output(params.path.as_path());
            registered.map_err(|error| failure(&error.into()))?;
            Ok(Empty {})
        })
    }

    /// Returns the client's release line of pi.
    fn pi_line(&self) -> PiLine {
        match self.stage().as_ref() {
            Stage::Open(wired) => PiLine::from_version(&wired.session.agent().version),
            Stage::Closed(_) | Stage::Off => PiLine::V1,
        }
    }
}

pub(super) fn misspelt(error: &spelling::SpellingError) -> ErrorObject {
    ErrorObject::new(ErrorCode::InvalidParams, error.to_string())
}

fn bad_handle() -> ErrorObject {
    let message = "the file is not open, or was opened for something else";
    ErrorObject::file(message, &plain(FailureKind::BadHandle, None))
}

/// Returns the error for a failed file operation.
pub(super) fn failure(failure: &FileFailure) -> ErrorObject {
    match failure {
        FileFailure::Denied(decision) => ErrorObject::file(failure.to_string(), &denied(decision)),
        FileFailure::File(error) => ErrorObject::file(message(error), &plain(kind(error), error.errno())),
    }
}

/// Returns the text that pi shows after the error name, like the system messages of its own tools.
fn message(error: &FileError) -> String {
    let of_system = match kind(error) {
        FailureKind::NotFound => "no such file or directory",
        FailureKind::IsDirectory => "illegal operation on a directory",
        FailureKind::NotDirectory => "not a directory",
        FailureKind::NotPermitted if error.errno() == Some(EACCES) => "permission denied",
        FailureKind::NotPermitted
        | FailureKind::Denied
        | FailureKind::NotRegular
        | FailureKind::Conflict
        | FailureKind::TooLarge
        | FailureKind::BadHandle
        | FailureKind::Other => return error.to_string(),
    };
    of_system.to_owned()
}

fn denied(decision: &Decision) -> FailureData {
    FailureData {
        kind: FailureKind::Denied,
        errno: None,
        policy: Some(decision.policy().to_owned()),
        rule: Some(decision.cause().rule.clone()),
        reason: Some(decision.cause().reason.clone()),
        hint: RefusalText::for_decision(decision).advice(),
    }
}

fn plain(kind: FailureKind, errno: Option<i32>) -> FailureData {
    FailureData { kind, errno, policy: None, rule: None, reason: None, hint: None }
}

fn kind(error: &FileError) -> FailureKind {
    match error {
        FileError::NotFound { .. } | FileError::HostTemp { .. } => FailureKind::NotFound,
        FileError::IsDirectory { .. } => FailureKind::IsDirectory,
        FileError::NotADirectory { .. } => FailureKind::NotDirectory,
        FileError::NotAFile { .. } | FileError::Special { .. } => FailureKind::NotRegular,
        FileError::TooLarge { .. } | FileError::TooManyNames { .. } => FailureKind::TooLarge,
        FileError::Conflict { .. } | FileError::Moved { .. } => FailureKind::Conflict,
        FileError::Denied { .. } | FileError::Spelling { .. } => FailureKind::NotPermitted,
        FileError::Linked { .. }
        | FileError::Loop { .. }
        | FileError::SessionTemp { .. }
        | FileError::WrongPermit { .. }
        | FileError::NotForWriting { .. }
        | FileError::ViewEnded(_)
        | FileError::Unsupported
        | FileError::Io { .. } => FailureKind::Other,
    }
}
