//! Commands of the protocol: run in the sandbox, with their output sent on the side channel.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use portcullis_decision::RefusalText;
use portcullis_decision::request::Origin;
use portcullis_rpc::{
    Denial, ErrorCode, ErrorObject, ExecOrigin, ExecParams, ExecResponse, StreamId, StreamWriter,
};
use portcullis_sandbox_runtime::Exit as CommandExit;
use portcullis_session::{
    Cancel, CommandCall, CommandFailure, Ended, Program, Runs, Session, Started, StderrHints, commands,
    rerun_after_denial, with_causes,
};

use crate::serve::host::{Host, no_thread};

/// Size of a read of output.
const CHUNK: usize = 64 * 1024;

impl Host {
    pub(super) fn exec(&self, params: ExecParams, cancel: &Cancel) -> Result<ExecResponse, ErrorObject> {
        self.with_session(|session| self.run(session, params, cancel))
    }

    fn run(
        &self,
        session: &Session,
        params: ExecParams,
        cancel: &Cancel,
    ) -> Result<ExecResponse, ErrorObject> {
        let environment = params
            .env
            .into_iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.into_string()))
            .collect();
        let call = CommandCall {
            program: Program::Script(params.script.into_string()),
            cwd: params.cwd.as_path(),
            environment,
            timeout: params.timeout_ms.map(Duration::from_millis),
            origin: match (params.origin, &self.contained) {
                // The origin of a contained client's command is unknown outside.
                (_, Some(_)) | (ExecOrigin::Agent, None) => Origin::Agent,
                (ExecOrigin::User, None) => Origin::User,
            },
            call: Some(params.call_id.as_str()),
        };
        let (reader, stdio) = streams().map_err(|error| internal(&error))?;
        let started = match commands::start(session, call.clone(), stdio, cancel) {
            Ok(started) => started,
            Err(failure) => return failure_response(&failure, cancel),
        };
        let mut runs = StreamedRuns { host: self, session, stream: params.stream, cancel, notes: Vec::new() };
        let first = (started, reader);
        let (ended, past) = rerun_after_denial::follow(session, &call, first, &mut runs, cancel)?;
        let notes = [runs.notes, past].concat();
        self.output.end(params.stream).map_err(|error| internal(&error))?;
        if cancel.is_cancelled() {
            return Err(ErrorObject::new(ErrorCode::Cancelled, "the command was aborted"));
        }
        response(&ended, notes, params.timeout_ms)
    }

    /// Waits until a command has exited and all its output is sent.
    fn wait_for(
        &self,
        session: &Session,
        started: &Arc<Started>,
        output: Output,
        cancel: &Cancel,
    ) -> Result<(Ended, StderrHints), ErrorObject> {
        let (done, all_sent) = sync_channel(1);
        let (sender, taken_back) = (Arc::clone(started), cancel.clone());
        let sending = self.workers.start(move || {
            let heard = output.forward(&sender, &taken_back);
            // Release the session once all output is sent.
            drop(sender);
            // Ignore errors: the receiver may be gone.
            let _unheard = done.send(heard);
        });
        if sending.is_err() {
            // The command must not continue unobserved.
            cancel.cancel();
        }
        let ended = commands::finish(session, started);
        sending.map_err(|error| no_thread(&error))?;
        // A failed forwarder has captured nothing.
        Ok((ended, all_sent.recv().unwrap_or_default()))
    }
}

/// The runs of a command whose output is streamed to the client.
struct StreamedRuns<'a> {
    host: &'a Host,
    session: &'a Session,
    stream: StreamId,
    cancel: &'a Cancel,
    /// Notes for the model.
    notes: Vec<String>,
}

impl Runs for StreamedRuns<'_> {
    type Output = OwnedFd;
    type Error = ErrorObject;

    fn finish(&mut self, started: Started, reader: OwnedFd) -> Result<(Ended, StderrHints), ErrorObject> {
        let output = Output {
            reader,
            stream: self.stream,
            to: self.host.output.clone(),
            heard: StderrHints::default(),
        };
        let running = Arc::new(started);
        let ended = self.host.wait_for(self.session, &running, output, self.cancel)?;
        self.notes.extend([running.advice(), running.connections(), running.refusal_notes()].concat());
        Ok(ended)
    }

    fn streams(&mut self) -> Result<([OwnedFd; 3], OwnedFd), ErrorObject> {
        let (reader, stdio) = streams().map_err(|error| internal(&error))?;
        Ok((stdio, reader))
    }

    fn not_run_again(&mut self, failure: &CommandFailure) {
        self.notes.push(format!("The command could not be run again: {}.", with_causes(failure)));
    }
}

/// The output of a command, on its way to the client.
struct Output {
    reader: OwnedFd,
    stream: StreamId,
    to: StreamWriter<File>,
    /// Captures hints in the output.
    heard: StderrHints,
}

impl Output {
    /// Sends output until all writers have closed it.
    ///
    /// All processes of the command are killed in the end, so this terminates.
    fn forward(mut self, started: &Started, cancel: &Cancel) -> StderrHints {
        let mut left = started.output_bytes();
        let mut reader = File::from(self.reader);
        let mut chunk = vec![0_u8; CHUNK];
        loop {
            let length = match reader.read(&mut chunk) {
                Ok(0) => return self.heard,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return self.heard,
            };
            let wanted = u64::try_from(length).unwrap_or(u64::MAX);
            let within = usize::try_from(wanted.min(left)).unwrap_or(length);
            if wanted > left {
                // Further output is read and dropped until the command is gone.
                started.end_for_output();
            }
            left = left.saturating_sub(wanted);
            let Some(part) = chunk.get(..within).filter(|part| !part.is_empty()) else { continue };
            self.heard.hear(part);
            if self.to.write(self.stream, part).is_err() {
                // The client no longer reads: the command must not continue unobserved.
                cancel.cancel();
                return self.heard;
            }
        }
    }
}

/// Returns the read end of the output, and the command's standard streams: no input, output and errors in one pipe.
fn streams() -> std::io::Result<(OwnedFd, [OwnedFd; 3])> {
    let (reader, writer) = std::io::pipe()?;
    let writer = OwnedFd::from(writer);
    let null = File::open("/dev/null")?;
    Ok((reader.into(), [null.into(), writer.try_clone()?, writer]))
}

/// Returns the response. `own_ms` is the timeout of the call itself.
fn response(ended: &Ended, mut notes: Vec<String>, own_ms: Option<u64>) -> Result<ExecResponse, ErrorObject> {
    let (exit_code, signal) = match ended.exit {
        CommandExit::Code(code) => (Some(code), None),
        CommandExit::Signal(signal) => (None, Some(signal)),
        CommandExit::Lost => {
            return Err(ErrorObject::new(
                ErrorCode::Unavailable,
                "the sandbox ended while the command ran; the command is dead",
            ));
        }
    };
    let timed_out_after_ms =
        ended.timed_out_after().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    // pi itself tells the model about the call's own timeout.
    let is_told = timed_out_after_ms.is_some() && timed_out_after_ms == own_ms;
    let met = ended.met.filter(|_| !is_told);
    notes.extend(met.map(|met| format!("The command met a limit of the sandbox: {met}.")));
    Ok(ExecResponse { exit_code, signal, timed_out_after_ms, denied: None, notes })
}

fn failure_response(failure: &CommandFailure, cancel: &Cancel) -> Result<ExecResponse, ErrorObject> {
    if cancel.is_cancelled() {
        return Err(ErrorObject::new(ErrorCode::Cancelled, "the command was aborted before it started"));
    }
    let decision = match failure {
        CommandFailure::Denied(decision) => decision,
        CommandFailure::NoSandbox(_) | CommandFailure::Directory(_) | CommandFailure::Launch(_) => {
            return Err(ErrorObject::new(ErrorCode::Unavailable, with_causes(failure)));
        }
    };
    Ok(ExecResponse {
        exit_code: None,
        signal: None,
        timed_out_after_ms: None,
        denied: Some(Denial {
            policy: decision.policy().to_owned(),
            rule: decision.cause().rule.clone(),
            reason: decision.cause().reason.clone(),
            hint: RefusalText::for_decision(decision).advice(),
        }),
        notes: Vec::new(),
    })
}

fn internal(error: &dyn std::error::Error) -> ErrorObject {
    ErrorObject::new(ErrorCode::Internal, error.to_string())
}
