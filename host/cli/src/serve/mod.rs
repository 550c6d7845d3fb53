//! `portcullis serve`: the host's end of the protocol.
//!
//! Each request runs on a thread of its own, because it may wait for the user or for a command.

mod asking;
mod commands;
mod contained;
mod decide;
mod files;
mod hello;
mod image;
mod menu;
mod reading;
mod reload;
mod request_quota;
mod reserve;
mod search_format;
mod searches;
pub(super) mod status;
mod system_prompt;
mod taken_over;
mod workers;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use portcullis_rpc::{Empty, ErrorCode, ErrorObject, Request, RequestId, StreamWriter, connection};
use portcullis_session::Cancel;
use serde::Serialize;

use crate::bootstrap::Wired;
use crate::contain;
use crate::menu::Menu;
use crate::process_env::ProcessEnv;
use crate::serve::asking::RpcPrompter;
pub(crate) use crate::serve::contained::Contained;
use crate::serve::files::Handles;
use crate::serve::reading::Reading;
pub(crate) use crate::serve::reload::Watch;
#[cfg(target_os = "linux")]
pub(crate) use crate::serve::reload::{Follow, LOOK_EVERY};
use crate::serve::workers::Workers;

/// The file descriptor for raw output.
#[cfg(target_os = "linux")]
const SIDE_CHANNEL: i32 = 3;

/// Time that cancelled requests have to finish.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

type Sender = portcullis_rpc::Sender<File>;

/// The state after the client's `hello`.
pub(crate) enum Stage {
    /// A session is open.
    Open(Box<Wired>),
    /// The user's settings disable the sandbox.
    Off,
    /// All requests are denied, with the reason.
    Closed(String),
}

/// The state that all requests share.
pub(crate) struct Host {
    around: ProcessEnv,
    sender: Sender,
    output: StreamWriter<File>,
    prompter: Arc<RpcPrompter>,
    /// Facts about a client in a sandbox.
    contained: Option<Contained>,
    stage: OnceLock<RwLock<Arc<Stage>>>,
    watch: OnceLock<Watch>,
    menu: Mutex<Menu>,
    handles: Handles,
    under_way: Mutex<HashMap<RequestId, Cancel>>,
    workers: Workers,
}

/// The connection to a client.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Messages from the client.
    pub(crate) input: File,
    /// Messages to the client.
    pub(crate) output: File,
    /// The output of commands.
    pub(crate) frames: File,
}

/// Serves the client that started this process, until it disconnects.
pub(crate) fn run() -> crate::Outcome {
    if let Some(door) = contain::door_of_this_process() {
        return contain::knock(&door);
    }
    let around = ProcessEnv::read()?;
    let frames = side_channel().context(
        "opening descriptor 3 for the output of commands; `serve` is started by the pi extension, not by hand",
    )?;
    let input = std::io::stdin().as_fd().try_clone_to_owned().context("opening standard input")?;
    let output = crate::raw::output().as_fd().try_clone_to_owned().context("opening standard output")?;
    serve(around, Ends { input: input.into(), output: output.into(), frames }, None)
}

/// Serves one client until it disconnects. `contained` holds the facts about a client in a sandbox.
pub(crate) fn serve(around: ProcessEnv, ends: Ends, contained: Option<Contained>) -> crate::Outcome {
    let (receiver, sender) = connection(ends.input, ends.output);
    let closing = Closing(Arc::new(Host::new(around, sender, ends.frames, contained)));
    let host = &closing.0;
    let (over, ended) = sync_channel(1);
    let (first, reading) = (Arc::clone(host), Reading { receiver, over });
    host.workers.start(move || first.read_on(reading)).context("starting a thread to read messages")?;
    ended.recv().context("the thread that reads messages has failed")?
}

/// Closes its host on drop, however serving ends: no waiting request may keep the session alive.
struct Closing(Arc<Host>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns a copy of the side channel; no child process may inherit the original.
#[cfg(target_os = "linux")]
fn side_channel() -> std::io::Result<File> {
    let copy = portcullis_sys::descriptor::copy_inherited(SIDE_CHANNEL)?;
    portcullis_sys::descriptor::close_on_exec_from(SIDE_CHANNEL.cast_unsigned())?;
    Ok(File::from(copy))
}

/// Returns an error: this system has no sandbox for commands.
#[cfg(not(target_os = "linux"))]
fn side_channel() -> std::io::Result<File> {
    Err(std::io::Error::other(format!("the sandbox needs Linux, this is {}", std::env::consts::OS)))
}

impl Host {
    fn new(around: ProcessEnv, sender: Sender, frames: File, contained: Option<Contained>) -> Self {
        Self {
            around,
            prompter: Arc::new(RpcPrompter::new(sender.clone())),
            contained,
            sender,
            output: StreamWriter::new(frames),
            stage: OnceLock::new(),
            watch: OnceLock::new(),
            menu: Mutex::default(),
            handles: Handles::default(),
            under_way: Mutex::default(),
            workers: Workers::default(),
        }
    }

    fn carry_out(self: &Arc<Self>, id: RequestId, request: Request, cancel: &Cancel) {
        // An edit of the settings applies from the next request on.
        self.refresh();
        match request {
            Request::Hello(hello) => self.reply(id, self.hello(&hello)),
            Request::Status => self.reply(id, Ok(self.status())),
            Request::Decide(params) => self.reply(id, self.decide(&params, cancel)),
            Request::Escalate(params) => self.reply(id, self.escalate(&params, cancel)),
            Request::FileOpen(params) => self.reply(id, self.file_open(&params, cancel)),
            Request::FileRead(params) => self.reply(id, self.file_read(&params)),
            Request::FileWrite(params) => self.reply(id, self.file_write(&params, cancel)),
            Request::FileWriteHandle(params) => self.reply(id, self.file_write_handle(&params, cancel)),
            Request::FileClose(params) => self.reply(id, self.file_close(&params)),
            Request::FileList(params) => self.reply(id, self.file_list(&params, cancel)),
            Request::FileFind(params) => self.reply(id, self.file_find(&params, cancel)),
            Request::FileGrep(params) => self.reply(id, self.file_grep(&params, cancel)),
            Request::FileOutput(params) => self.reply(id, self.file_output(&params)),
            Request::Inspect(params) => self.reply(id, self.inspect(&params)),
            Request::Reserve(params) => self.reply(id, self.reserve(&params, cancel)),
            Request::Exec(params) => self.reply(id, self.exec(params, cancel)),
            Request::Menu(params) => self.reply(id, self.menu(params)),
            // The reading thread carries it out.
            Request::Shutdown => self.reply(id, Ok(Empty {})),
        }
    }

    fn reply<T: Serialize>(&self, id: RequestId, result: Result<T, ErrorObject>) {
        let sent = match result {
            Ok(result) => self.sender.respond(id, &result),
            Err(error) => self.sender.fail(id, &error),
        };
        if let Err(error) = sent {
            // The reading thread notices the disconnect too, and ends the host.
            crate::exit::complain(&error.into());
        }
    }

    fn cancel(&self, id: RequestId) {
        let cancel = self.lock_under_way().get(&id).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    fn cancel_all(&self) {
        let all: Vec<Cancel> = self.lock_under_way().values().cloned().collect();
        for cancel in all {
            cancel.cancel();
        }
    }

    /// Cancels all calls and drops the session, with its sandbox and all processes in it. No further session is opened.
    fn close(&self) {
        if let Some(watch) = self.watch.get() {
            watch.end();
        }
        self.cancel_all();
        self.wait_for_requests();
        self.handles.clear();
        self.enter(Stage::Closed("the session has ended".to_owned()));
    }

    fn enter(&self, next: Stage) {
        if let Some(stage) = self.stage.get() {
            *stage.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        }
    }

    /// Waits for cancelled requests, so that none of them keeps the session alive.
    fn wait_for_requests(&self) {
        let end = Instant::now() + LAST_REQUESTS;
        while !self.lock_under_way().is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the state after `hello`; closed before it.
    fn stage(&self) -> Arc<Stage> {
        match self.stage.get() {
            Some(stage) => Arc::clone(&stage.read().unwrap_or_else(PoisonError::into_inner)),
            None => Arc::new(Stage::Closed("there was no `hello`".to_owned())),
        }
    }

    fn lock_under_way(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Cancel>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error if no thread can be started.
fn no_thread(error: &std::io::Error) -> ErrorObject {
    ErrorObject::new(ErrorCode::Busy, format!("no thread for the request: {error}"))
}

/// Returns the error of a host that denies all requests.
fn closed(why: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode::Unavailable, format!("nothing is permitted: {why}"))
}

/// Returns the error of a host whose sandbox is disabled.
fn off() -> ErrorObject {
    ErrorObject::new(ErrorCode::Unavailable, "the sandbox is switched off in the settings")
}
