//! Shows questions while pi is contained, never through pi.
//!
//! They appear on the user's terminal, drawn by the host, or on a second terminal through `portcullis asks`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use portcullis_bootstrap::streams::say;
use portcullis_sandbox::Terminal as Controlled;
use portcullis_session::{Answer, Answerer, NoUser, Prompter, Question, Refusal, Started};

use crate::contain::streams::{self, Copies};
use crate::contain::terminal::Console;

/// The interface for questions.
#[derive(Clone)]
pub(super) enum Asking {
    /// The user's terminal.
    Here(Arc<Console>),
    /// A second terminal.
    Elsewhere,
    /// None: questions are refused.
    NoUser,
}

impl Asking {
    /// Finds the interface. `arguments` are those of pi.
    pub(super) fn here(arguments: &[OsString]) -> anyhow::Result<Self> {
        if let Some(console) = Console::open()? {
            return Ok(Self::Here(console));
        }
        let mut pairs = arguments.windows(2);
        let is_rpc = pairs.any(|pair| matches!(pair, [option, mode] if option == "--mode" && mode == "rpc"));
        Ok(if is_rpc { Self::Elsewhere } else { Self::NoUser })
    }

    pub(super) fn is_possible(&self) -> bool {
        !matches!(self, Self::NoUser)
    }

    /// Returns true if it is the terminal of pi.
    pub(super) fn is_here(&self) -> bool {
        !matches!(self, Self::Elsewhere | Self::NoUser)
    }

    /// Returns the prompter for one session.
    pub(super) fn prompter(&self) -> Arc<dyn Prompter> {
        match self {
            Self::Here(console) => Arc::new(console.seat()),
            Self::Elsewhere => Arc::new(SecondTerminal::default()),
            Self::NoUser => Arc::new(NoUser),
        }
    }

    /// Shows a message to the user: at once, or after pi has left the terminal.
    pub(super) fn tell(&self, text: &str) {
        match self {
            Self::Here(console) => console.tell(text),
            Self::Elsewhere | Self::NoUser => say(&format!("portcullis: {text}")),
        }
    }

    /// Returns the file descriptors for pi, none of which is the user's terminal.
    pub(super) fn streams(&self) -> anyhow::Result<(Controlled, [OwnedFd; 3], Copies)> {
        match self {
            Self::Here(console) => Ok((Controlled::Input, console.streams()?, Copies::default())),
            Self::Elsewhere | Self::NoUser => {
                let (streams, copies) = streams::without_terminal()?;
                Ok((Controlled::None, streams, copies))
            }
        }
    }

    /// Applies a new size of the user's terminal. Returns true if pi's own terminal has been resized, which signals pi.
    pub(super) fn follow_size(&self) -> bool {
        match self {
            Self::Here(console) => {
                console.follow_size();
                true
            }
            Self::Elsewhere | Self::NoUser => false,
        }
    }

    /// Starts forwarding between pi and the terminal, and makes questions possible.
    pub(super) fn begin(&self) {
        match self {
            Self::Here(console) => console.begin(),
            Self::Elsewhere | Self::NoUser => {}
        }
    }

    /// Registers the command that runs pi.
    pub(super) fn introduce(&self, pi: &Arc<Started>) {
        match self {
            Self::Here(console) => console.introduce(pi),
            Self::Elsewhere | Self::NoUser => {}
        }
    }

    /// Restores the terminal.
    pub(super) fn end(&self) {
        match self {
            Self::Here(console) => console.end(),
            Self::Elsewhere | Self::NoUser => {}
        }
    }
}

/// Keeps questions open until `portcullis asks` answers them or they time out.
///
/// All of them are announced and visible there at the same time.
#[derive(Default)]
struct SecondTerminal {
    open: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    table: Mutex<HashMap<u64, Answerer>>,
    changed: Condvar,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Answerer>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn withdraw(&self, id: u64) {
        self.lock().remove(&id);
        self.changed.notify_all();
    }

    /// Refuses a question that is still open after `time`.
    fn end(&self, id: u64, time: Duration) {
        let is_open = |table: &mut HashMap<u64, Answerer>| table.contains_key(&id);
        let waited = self.changed.wait_timeout_while(self.lock(), time, is_open);
        let (mut table, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let late = table.remove(&id);
        drop(table);
        if let Some(answerer) = late {
            answerer.answer(Answer::Refused(Refusal::Timeout));
            say("portcullis: no answer came in time, which is a no");
        }
    }
}

impl Prompter for SecondTerminal {
    fn show(&self, question: &Question, answer: Answerer) {
        let id = question.id;
        self.open.lock().insert(id, answer);
        let time = question.timeout_ms.map(|time| Duration::from_millis(time.into()));
        let within = time.map(|time| format!(", for {} s", time.as_secs_f32())).unwrap_or_default();
        say(&format!(
            "portcullis: a question waits for `portcullis asks` in another terminal{within}: {}",
            question.in_one_line().as_ref().unwrap_or(&question.title)
        ));
        let Some(time) = time else { return };
        let open = Arc::clone(&self.open);
        let clock = thread::Builder::new().name("question".to_owned());
        if clock.spawn(move || open.end(id, time)).is_err() {
            // Without a timer the question would stay open for too long.
            self.open.withdraw(id);
        }
    }

    fn withdraw(&self, id: u64, _why: &str) {
        self.open.withdraw(id);
    }

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_with_its_time_or_before_it() {
        let waiting = Waiting::default();
        waiting.end(1, Duration::from_secs(60));
        assert!(waiting.lock().is_empty(), "what is not open is not waited for");
    }
}
