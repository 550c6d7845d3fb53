//! Applies edited settings to pi itself, as to its commands.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use portcullis_bootstrap::loaded_settings::LoadedSettings;
use portcullis_bootstrap::session::OpenSession;
use portcullis_session::Started;
use signal_hook::consts::SIGTERM;

use crate::contain::question_router::Asking;
use crate::serve::{Follow, LOOK_EVERY, Watch};

/// pi, with the session that it runs in.
#[derive(Clone, Copy)]
pub(super) struct ContainedPi<'a> {
    pub(super) watch: &'a Watch,
    pub(super) wired: &'a OpenSession,
    pub(super) pi: &'a Started,
}

impl ContainedPi<'_> {
    /// Puts edited settings in force until `is_over`. Sends to `ends` if pi must exit.
    pub(super) fn keep_up(self, asking: &Asking, ends: &Sender<()>, is_over: &Receiver<()>) {
        let pi = Following { own: self, is_closed: Cell::new(false) };
        while is_over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let Some(news) = self.watch.look(&pi) else { continue };
            if pi.is_closed.get() {
                asking.tell(&format!("pi is ended, {}", news.text));
                self.pi.signal(SIGTERM);
                let _ends_already = ends.send(());
                return;
            }
            if !news.text.is_empty() {
                asking.tell(&format!("pi itself: {}", news.text));
            }
        }
    }
}

struct Following<'a> {
    own: ContainedPi<'a>,
    is_closed: Cell<bool>,
}

impl Follow for Following<'_> {
    /// `enabled` only counts at the start of pi.
    fn follow(&self, loaded: LoadedSettings, _waits: bool) -> anyhow::Result<Vec<String>> {
        let mut changes = self.own.watch.reload(self.own.wired, loaded)?;
        if !changes.is_empty() {
            changes.push("the files that it sees stay those of its start".to_owned());
        }
        Ok(changes)
    }

    fn close(&self, _why: &str) {
        // Close its connections at once; pi itself may take time to exit.
        self.own.wired.session.close();
        self.is_closed.set(true);
    }
}
