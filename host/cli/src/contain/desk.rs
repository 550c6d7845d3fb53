//! Where questions are asked while pi is contained: on the user's terminal, drawn by the host, or else from a second
//! one by `portcullis asks`. Never in pi.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use portcullis_confine::Terminal as Controlled;
use portcullis_session::{Answer, Answerer, Desk, Nobody, Question, Refusal, Started};

use crate::contain::streams::{self, Copies};
use crate::contain::terminal::Console;
use crate::exit::say;

/// Who is there to answer.
#[derive(Clone)]
pub(super) enum Asking {
    /// Whoever sits at the terminal.
    Here(Arc<Console>),
    /// Somebody at another one.
    Elsewhere,
    /// Nobody: questions are refused.
    Nobody,
}

impl Asking {
    /// Finds out. `arguments` are those of pi.
    pub(super) fn here(arguments: &[OsString]) -> anyhow::Result<Self> {
        if let Some(console) = Console::open()? {
            return Ok(Self::Here(console));
        }
        let mut pairs = arguments.windows(2);
        let is_rpc = pairs.any(|pair| matches!(pair, [option, mode] if option == "--mode" && mode == "rpc"));
        Ok(if is_rpc { Self::Elsewhere } else { Self::Nobody })
    }

    pub(super) fn is_possible(&self) -> bool {
        !matches!(self, Self::Nobody)
    }

    /// Whether it is the terminal that pi is on.
    pub(super) fn is_here(&self) -> bool {
        !matches!(self, Self::Elsewhere | Self::Nobody)
    }

    /// Where the questions of one session are asked.
    pub(super) fn desk(&self) -> Arc<dyn Desk> {
        match self {
            Self::Here(console) => Arc::new(console.seat()),
            Self::Elsewhere => Arc::new(SecondTerminal::default()),
            Self::Nobody => Arc::new(Nobody),
        }
    }

    /// Tells the user something: at once, or where pi has the terminal when it has left it.
    pub(super) fn tell(&self, text: &str) {
        match self {
            Self::Here(console) => console.tell(text),
            Self::Elsewhere | Self::Nobody => say(&format!("portcullis: {text}")),
        }
    }

    /// The descriptors that pi gets, none of them a terminal of the user's.
    pub(super) fn streams(&self) -> anyhow::Result<(Controlled, [OwnedFd; 3], Copies)> {
        match self {
            Self::Here(console) => Ok((Controlled::Input, console.streams()?, Copies::default())),
            Self::Elsewhere | Self::Nobody => {
                let (streams, copies) = streams::without_terminal()?;
                Ok((Controlled::None, streams, copies))
            }
        }
    }

    /// The user's terminal has another size; says whether pi's own has it now, and pi been told.
    pub(super) fn follow_size(&self) -> bool {
        match self {
            Self::Here(console) => {
                console.follow_size();
                true
            }
            Self::Elsewhere | Self::Nobody => false,
        }
    }

    /// Stands between pi and the terminal from now on, and can ask.
    pub(super) fn begin(&self) {
        match self {
            Self::Here(console) => console.begin(),
            Self::Elsewhere | Self::Nobody => {}
        }
    }

    /// Says which command is pi.
    pub(super) fn introduce(&self, pi: &Arc<Started>) {
        match self {
            Self::Here(console) => console.introduce(pi),
            Self::Elsewhere | Self::Nobody => {}
        }
    }

    /// Leaves the terminal as it was.
    pub(super) fn end(&self) {
        match self {
            Self::Here(console) => console.end(),
            Self::Elsewhere | Self::Nobody => {}
        }
    }
}

/// Keeps questions open until somebody answers them by `portcullis asks`, or their time is over: all of them can be seen
/// there at once, from when they are announced.
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

impl Desk for SecondTerminal {
    fn show(&self, question: &Question, answer: Answerer) {
        let id = question.id;
        self.open.lock().insert(id, answer);
        let time = question.timeout_ms.map(|time| Duration::from_millis(time.into()));
        let within = time.map(|time| format!(", for {} s", time.as_secs_f32())).unwrap_or_default();
        say(&format!(
            "portcullis: a question waits for `portcullis asks` in another terminal{within}: {}",
            question.title
        ));
        let Some(time) = time else { return };
        let open = Arc::clone(&self.open);
        let clock = thread::Builder::new().name("question".to_owned());
        if clock.spawn(move || open.end(id, time)).is_err() {
            // Without a clock it would stay open for longer than the user wants.
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
