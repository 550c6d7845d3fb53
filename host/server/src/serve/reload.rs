//! Puts edited settings in force in a running host, and tells the client.

use std::sync::{Arc, Weak};
use std::thread;

use portcullis_bootstrap::loaded_settings::LoadedSettings;
use portcullis_bootstrap::streams::say;
use portcullis_rpc::{EventNotification, HostNotification};
use portcullis_session::caught;

use crate::serve::host::{Host, Stage};
use crate::serve::settings_watch::{Follow, LOOK_EVERY, News, Watch};

impl Host {
    /// Opens the session as the settings and the user want it.
    pub(super) fn open_session(&self, watch: &Watch) -> anyhow::Result<Stage> {
        if watch.is_switched_off() {
            return Ok(Stage::Off);
        }
        watch.first(|loaded| self.opened(watch, loaded))
    }

    fn opened(&self, watch: &Watch, loaded: LoadedSettings) -> anyhow::Result<Stage> {
        if !watch.is_on(&loaded.resolved) {
            return Ok(Stage::Off);
        }
        let wired = self.open_here(watch, loaded)?;
        Ok(Stage::Open(Box::new(wired)))
    }

    /// Checks the files every second, until the host is gone.
    pub(super) fn keep_watching(self: &Arc<Self>) {
        let host: Weak<Self> = Arc::downgrade(self);
        let watching = move || {
            loop {
                thread::sleep(LOOK_EVERY);
                let Some(host) = host.upgrade() else { return };
                if let Err(panic) = caught(|| host.refresh()) {
                    host.fail("reading the settings again", &panic);
                    return host.tell_status();
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("settings".to_owned()).spawn(watching) {
            // Edits still apply with the next request.
            say(&format!("portcullis: watching the settings: {error}"));
        }
    }

    /// Applies settings that were edited since they were read.
    pub(super) fn refresh(&self) {
        let Some(watch) = self.watch.get().filter(|_| self.stage.get().is_some()) else { return };
        let Some(News { level, text }) = watch.look(self) else { return };
        if !text.is_empty() {
            // Ignore errors: the client may be gone.
            let notice = EventNotification::Notice { level, text };
            let _sent = self.sender.notify(&HostNotification::Event(notice));
        }
        self.tell_status();
    }

    /// Sends the changed status.
    pub(super) fn tell_status(&self) {
        let event = EventNotification::Status { status: self.status() };
        let _sent = self.sender.notify(&HostNotification::Event(event));
    }
}

impl Follow for Host {
    fn follow(&self, loaded: LoadedSettings, waits: bool) -> anyhow::Result<Vec<String>> {
        let Some(watch) = self.watch.get() else { return Ok(Vec::new()) };
        match (self.stage().as_ref(), watch.is_on(&loaded.resolved)) {
            (Stage::Open(wired), true) => watch.reload(wired, loaded),
            (Stage::Open(_), false) => {
                self.cancel_all();
                self.enter(Stage::Off);
                Ok(vec!["the sandbox is off (`enabled` is false)".to_owned()])
            }
            (Stage::Closed(_), _) if waits => {
                self.enter(self.opened(watch, loaded)?);
                Ok(vec!["the mistake that kept the session closed is fixed".to_owned()])
            }
            (Stage::Off, true) => {
                self.enter(self.opened(watch, loaded)?);
                Ok(vec!["the sandbox is on".to_owned()])
            }
            (Stage::Off, false) | (Stage::Closed(_), _) => Ok(Vec::new()),
        }
    }

    fn close(&self, why: &str) {
        self.cancel_all();
        self.enter(Stage::Closed(why.to_owned()));
    }
}
