//! Questions on the terminal, for `run`.
//!
//! The command uses the same terminal: it can draw over a question, or show a fake one in which the same letter has
//! another meaning. So text that was typed before the question is discarded, and an answer that allows must contain a
//! number that only the question shows; a command cannot read the screen.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use nix::sys::termios::{FlushArg, tcflush};
use portcullis_bootstrap::control::answer_number;
use portcullis_bootstrap::streams::say;
use portcullis_decision::GrantScope;
use portcullis_session::{Answer, Answerer, Prompter, Question, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::prompt_layout::{PromptLayout, Size};

/// Maximum length of an answer.
const LONGEST_LINE: usize = 4096;
/// How often a line that is no answer can be typed; the last time it is a no.
const TRIES: usize = 3;
const NO_ANSWER: &[u8] =
    b"that is none of the answers: type one with its number, as it is shown, or press Enter for no\n> ";
/// Interval for checking the timeout.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Maximum time to count between two checks.
///
/// It keeps a stopped process or a busy machine from using up the user's time.
const LONGEST_TICK: Duration = Duration::from_secs(2);

/// Asks on the controlling terminal, never on the command's own input and output.
#[derive(Debug, Clone, Copy)]
pub struct Terminal;

impl Prompter for Terminal {
    fn show(&self, question: &Question, answer: Answerer) {
        answer.answer(ask(question).unwrap_or(Answer::Refused(Refusal::NoUser)));
    }

    fn session_name(&self) -> &'static str {
        "command"
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}

fn ask(question: &Question) -> io::Result<Answer> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let number = answer_number()?;
    let sheet = PromptLayout::new("", question, &number, "", Size::of_terminal(&terminal));
    let text = format!("{}\n> ", sheet.lines.join("\n"));
    tcflush(&terminal, FlushArg::TCIFLUSH)?;
    terminal.write_all(text.as_bytes())?;
    let time = question.timeout_ms.map(|time| Duration::from_millis(time.into()));
    for _ in 1..TRIES {
        match answer(&mut terminal, &sheet, time)? {
            Some(answer) => return Ok(answer),
            None => terminal.write_all(NO_ANSWER)?,
        }
    }
    Ok(answer(&mut terminal, &sheet, time)?.unwrap_or(Answer::Refused(Refusal::User)))
}

/// Reads an answer; `None` if the line is none.
fn answer(terminal: &mut File, sheet: &PromptLayout, time: Option<Duration>) -> io::Result<Option<Answer>> {
    let Some(line) = line(terminal, time)? else {
        // Discard partial input, which is no answer and must not reach the next reader.
        tcflush(&*terminal, FlushArg::TCIFLUSH)?;
        terminal.write_all(b"\nno answer came in time, which is a no\n")?;
        return Ok(Some(Answer::Refused(Refusal::Timeout)));
    };
    Ok(sheet.answer(line.trim()))
}

/// Reads a line, or returns `None` after `time`.
///
/// Time counts only while the question is visible: when this process is stopped, another one has the terminal.
fn line(terminal: &mut File, time: Option<Duration>) -> io::Result<Option<String>> {
    let mut left = time;
    let mut typed = Vec::new();
    while !typed.ends_with(b"\n") {
        let began = Instant::now();
        let mut polled = [PollFd::new(&*terminal, PollFlags::IN)];
        let is_there = match poll(&mut polled, Some(&TICK)) {
            Ok(ready) => ready > 0,
            Err(Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        if is_there {
            let mut part = [0; LONGEST_LINE];
            match terminal.read(&mut part) {
                Ok(0) => break,
                Ok(length) => typed.extend_from_slice(part.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if typed.len() > LONGEST_LINE {
            break;
        }
        left = left.map(|left| left.saturating_sub(began.elapsed().min(LONGEST_TICK)));
        if left == Some(Duration::ZERO) && !typed.ends_with(b"\n") {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
}

/// Answers every question with "once", because of an option on the command line.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysOnce;

impl Prompter for AlwaysOnce {
    fn show(&self, question: &Question, answer: Answerer) {
        let once = question.choices.iter().position(|choice| choice.scope == GrantScope::Once);
        answer.answer(once.map_or(Answer::Refused(Refusal::NoUser), Answer::Choice));
    }

    fn session_name(&self) -> &'static str {
        "command"
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}
