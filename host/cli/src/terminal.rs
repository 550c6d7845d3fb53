//! Questions on the terminal, for `run`.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Write as _};

use portcullis_decision::GrantScope;
use portcullis_session::{Answer, Answerer, Desk, Question, Refusal};

use crate::exit::say;

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
    let mut text = format!(
        "\n{}\n  {}\n  asked by {}; {}\n",
        question.title, question.subject, question.asker, question.reason
    );
    text.push_str(&format!("  rule `{}` of `{}`\n", question.rule, question.policy));
    if let Some(quote) = &question.quote {
        text.push_str(&format!("  {} says: “{quote}”\n", question.policy));
    }
    for choice in &question.choices {
        let kept = choice.target.as_ref().map(|target| format!(" → {target}")).unwrap_or_default();
        text.push_str(&format!("  [{}] {}{kept}\n", choice.code(), choice.spoken()));
    }
    text.push_str("  [n] No (default)\n> ");
    terminal.write_all(text.as_bytes())?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    let typed = line.trim();
    let chosen = question.choices.iter().position(|choice| typed == choice.code());
    Ok(chosen.map_or(Answer::Refused(Refusal::User), Answer::Choice))
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
