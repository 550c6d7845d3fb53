//! The state that all requests share, and replies.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::session::OpenSession;
use portcullis_bootstrap::streams::complain;
use portcullis_rpc::{ErrorCode, ErrorObject, RequestId, StreamWriter};
use portcullis_session::{Cancel, Session};
use serde::Serialize;

use crate::menu::Menu;
use crate::serve::asking::{RpcPrompter, Sender};
use crate::serve::contained_client::Contained;
use crate::serve::handles::Handles;
use crate::serve::own_branch::OwnBranch;
use crate::serve::settings_watch::Watch;
use crate::serve::workers::Workers;

/// Time that cancelled requests have to finish.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// The state after the client's `hello`.
pub(super) enum Stage {
    /// A session is open.
    Open(Box<OpenSession>),
    /// The user's settings disable the sandbox.
    Off,
    /// All requests are denied, with the reason.
    Closed(String),
}

/// The state that all requests share.
pub(super) struct Host {
    pub(super) around: ProcessEnv,
    pub(super) sender: Sender,
    pub(super) output: StreamWriter<File>,
    pub(super) prompter: Arc<RpcPrompter>,
    /// Facts about a client in a sandbox.
    pub(super) contained: Option<Contained>,
    pub(super) stage: OnceLock<RwLock<Arc<Stage>>>,
    pub(super) watch: OnceLock<Watch>,
    pub(super) menu: Mutex<Menu>,
    pub(super) handles: Handles,
    pub(super) under_way: Mutex<HashMap<RequestId, Cancel>>,
    pub(super) workers: Workers,
    /// The branch in which the session works.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "branches are Linux' only"))]
    pub(super) branch: Mutex<Option<OwnBranch>>,
}

impl Host {
    pub(super) fn new(
        around: ProcessEnv,
        sender: Sender,
        frames: File,
        contained: Option<Contained>,
    ) -> Self {
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
            branch: Mutex::default(),
        }
    }

    pub(super) fn reply<T: Serialize>(&self, id: RequestId, result: Result<T, ErrorObject>) {
        let sent = match result {
            Ok(result) => self.sender.respond(id, &result),
            Err(error) => self.sender.fail(id, &error),
        };
        if let Err(error) = sent {
            // The reading thread notices the disconnect too, and ends the host.
            complain(&error.into());
        }
    }

    pub(super) fn cancel(&self, id: RequestId) {
        let cancel = self.lock_under_way().get(&id).cloned();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        let all: Vec<Cancel> = self.lock_under_way().values().cloned().collect();
        for cancel in all {
            cancel.cancel();
        }
    }

    /// Cancels all calls and drops the session, with its sandbox and all processes in it. No further session is opened.
    pub(super) fn close(&self) {
        if let Some(watch) = self.watch.get() {
            watch.end();
        }
        self.cancel_all();
        self.wait_for_requests();
        self.handles.clear();
        self.enter(Stage::Closed("the session has ended".to_owned()));
        self.leave_branch();
    }

    pub(super) fn enter(&self, next: Stage) {
        if let Some(stage) = self.stage.get() {
            *stage.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        }
    }

    /// Waits for cancelled requests, so that none of them keeps the session alive.
    pub(super) fn wait_for_requests(&self) {
        let end = Instant::now() + LAST_REQUESTS;
        while !self.lock_under_way().is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the state after `hello`; closed before it.
    pub(super) fn stage(&self) -> Arc<Stage> {
        match self.stage.get() {
            Some(stage) => Arc::clone(&stage.read().unwrap_or_else(PoisonError::into_inner)),
            None => Arc::new(Stage::Closed("there was no `hello`".to_owned())),
        }
    }

    pub(super) fn lock_under_way(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Cancel>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the session, if there is one.
    pub(super) fn with_session<T>(
        &self,
        act: impl FnOnce(&Session) -> Result<T, ErrorObject>,
    ) -> Result<T, ErrorObject> {
        match self.stage().as_ref() {
            Stage::Open(wired) => act(&wired.session),
            Stage::Closed(why) => Err(closed(why)),
            Stage::Off => Err(off()),
        }
    }
}

/// Returns the error if no thread can be started.
pub(super) fn no_thread(error: &std::io::Error) -> ErrorObject {
    ErrorObject::new(ErrorCode::Busy, format!("no thread for the request: {error}"))
}

/// Returns the error of a host that denies all requests.
pub(super) fn closed(why: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode::Unavailable, format!("every tool is blocked: {why}"))
}

/// Returns the error of a host whose sandbox is disabled.
pub(super) fn off() -> ErrorObject {
    ErrorObject::new(ErrorCode::Unavailable, "the sandbox is switched off in the settings")
}
