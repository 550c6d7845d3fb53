//! Where questions are asked while pi is contained: on the user's terminal, drawn by the host, or else from a second
//! one by `portcullis asks`. Never in pi.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_confine::Terminal as Controlled;
use portcullis_session::{Answerer, Desk, Nobody, Question, Started};

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

/// Keeps questions open until somebody answers them by `portcullis asks`.
#[derive(Default)]
struct SecondTerminal {
    open: Mutex<HashMap<u64, Answerer>>,
}

impl Desk for SecondTerminal {
    fn show(&self, question: &Question, answer: Answerer) {
        say(&format!(
            "portcullis: a question waits for `portcullis asks` in another terminal: {}",
            question.title
        ));
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(question.id, answer);
    }

    fn withdraw(&self, id: u64, _why: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}
