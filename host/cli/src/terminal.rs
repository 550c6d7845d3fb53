//! Questions on the terminal, for `run`.
//!
//! The command has the same terminal: it may paint over a question, or have shown another one under which its letter
//! means something else. So what has been typed before the question is thrown away, and an answer that permits
//! carries a number that only the question itself shows; a command cannot read what a terminal shows.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Write as _};

use nix::sys::termios::{FlushArg, tcflush};
use portcullis_decision::GrantScope;
use portcullis_session::{Answer, Answerer, Desk, Question, Refusal};

use crate::exit::say;
use crate::sheet::{Sheet, Size};

/// Asks on the controlling terminal, never on the command's own input and output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal;

impl Desk for Terminal {
    fn show(&self, question: &Question, answer: Answerer) {
        answer.answer(ask(question).unwrap_or(Answer::Refused(Refusal::Nobody)));
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}

fn ask(question: &Question) -> io::Result<Answer> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let number = number()?;
    let sheet = Sheet::new("", question, &number, "", Size::of(&terminal));
    let text = format!("{}\n> ", sheet.lines.join("\n"));
    tcflush(&terminal, FlushArg::TCIFLUSH)?;
    terminal.write_all(text.as_bytes())?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    Ok(sheet.chosen(line.trim()).map_or(Answer::Refused(Refusal::User), Answer::Choice))
}

/// The end of an answer that permits: four digits that cannot be known beforehand.
pub(crate) fn number() -> io::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)?;
    let digits: String = random.map(|byte| char::from(b'0' + byte % 10)).iter().collect();
    Ok(format!("-{digits}"))
}

/// Answers every question with "once", because the user said so on the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlwaysOnce;

impl Desk for AlwaysOnce {
    fn show(&self, question: &Question, answer: Answerer) {
        let once = question.choices.iter().position(|choice| choice.scope == GrantScope::Once);
        answer.answer(once.map_or(Answer::Refused(Refusal::Nobody), Answer::Choice));
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, text: &str) {
        say(&format!("portcullis: {text}"));
    }
}
