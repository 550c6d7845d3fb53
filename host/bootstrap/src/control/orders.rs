//! Carries out requests from other terminals in a session.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_session::{
    Answer, Choice, InsidePort, Question, Refusal, Remembered, Session, fault_point, ports, with_causes,
};

use super::answer_number::answer_number;
use super::listener::Control;
use super::protocol::{Asked, AskedChoice, Kept, Order, Outcome, Port};

/// The random suffix of answers (except a plain "no"), by question.
///
/// A question has none before it is listed, so that a fake question on a screen cannot show a valid one.
type Numbers = Mutex<HashMap<u64, String>>;

/// Listens in `directory` for requests to `session`.
pub fn listen_for(session: &Arc<Session>, directory: &Path) -> anyhow::Result<Control> {
    let session = Arc::downgrade(session);
    let numbers = Numbers::default();
    Control::listen(directory, move |order| match session.upgrade() {
        Some(session) => session.guarded(
            "answering another terminal",
            || carry_out(&session, &numbers, order),
            |why| failed(&why),
        ),
        None => failed("the session has ended"),
    })
}

fn carry_out(session: &Session, numbers: &Numbers, order: Order) -> Outcome {
    fault_point("orders");
    match order {
        Order::Questions {} => list(session, numbers)
            .unwrap_or_else(|error| failed(&format!("no numbers to answer with: {error}"))),
        Order::Answer { id, code, why } => answer(session, numbers, id, code.as_deref(), why),
        Order::Remembered {} => {
            Outcome::Remembered { remembered: session.remembered().into_iter().map(kept).collect() }
        }
        Order::Ports {} => Outcome::Ports { ports: ports::list(session).into_iter().map(port).collect() },
        Order::OpenPort { port, at } => match ports::open(session, port, at) {
            Ok(at) => Outcome::Done { what: format!("port {port} is open at {at}") },
            Err(error) => failed(&with_causes(&error)),
        },
        Order::ClosePort { port } => match ports::close(session, port) {
            Ok(()) => Outcome::Done { what: format!("port {port} is closed") },
            Err(error) => failed(&with_causes(&error)),
        },
        Order::Forget { id } => {
            let text = session.remembered().into_iter().find(|known| known.id == id).map(|known| known.text);
            match text.filter(|_| session.forget(id)) {
                Some(text) => Outcome::Done { what: format!("taken back: {text}") },
                None => failed("the session no longer remembers this"),
            }
        }
    }
}

fn list(session: &Session, numbers: &Numbers) -> std::io::Result<Outcome> {
    let project = session.settings().workspace.display().to_string();
    let questions = session.questions();
    let mut numbers = numbers.lock().unwrap_or_else(PoisonError::into_inner);
    numbers.retain(|id, _| questions.iter().any(|question| question.id == *id));
    let mut all = Vec::new();
    for question in questions {
        let number = match numbers.get(&question.id) {
            Some(known) => known.clone(),
            None => answer_number()?,
        };
        numbers.insert(question.id, number.clone());
        all.push(asked(question, &number, &project));
    }
    Ok(Outcome::Questions { questions: all })
}

/// Returns the text to type for a choice.
fn code_of(choice: &Choice, number: &str) -> String {
    format!("{}{number}", choice.code())
}

fn answer(session: &Session, numbers: &Numbers, id: u64, code: Option<&str>, why: Option<String>) -> Outcome {
    let Some(question) = session.questions().into_iter().find(|question| question.id == id) else {
        return failed("this question is no longer open");
    };
    let (answer, what) = match code {
        None => {
            let refused = why.map_or(Answer::Refused(Refusal::User), Answer::RefusedBecause);
            (refused, "refused".to_owned())
        }
        Some(code) => {
            let number = numbers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
            let is_it =
                |choice: &Choice| number.as_ref().is_some_and(|number| code_of(choice, number) == code);
            match question.choices.iter().enumerate().find(|(_, choice)| is_it(choice)) {
                Some((index, choice)) => (Answer::Choice(index), choice.spoken()),
                None => {
                    return failed(
                        "this question has no such answer: write it with its number, as `portcullis asks list` \
                         shows it",
                    );
                }
            }
        }
    };
    match session.answer_question(id, answer) {
        true => Outcome::Done { what },
        false => failed("the question was answered elsewhere"),
    }
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed { why: why.to_owned() }
}

fn port(port: InsidePort) -> Port {
    let InsidePort { port, program, process, open_at } = port;
    Port { port, program, process, open_at: open_at.map(|at| at.to_string()) }
}

fn kept(remembered: Remembered) -> Kept {
    let Remembered { id, text, expires_at } = remembered;
    Kept { id, text, expires_at }
}

fn asked(question: Question, number: &str, project: &str) -> Asked {
    let choice = |choice: &Choice| AskedChoice {
        code: code_of(choice, number),
        text: choice.spoken(),
        target: choice.target.clone(),
    };
    Asked {
        id: question.id,
        project: project.to_owned(),
        choices: question.choices.iter().map(choice).collect(),
        title: question.title,
        place: question.place,
        context: question.context,
        preview: question.preview,
        subject: question.subject,
        asker: question.asker,
        reason: question.reason,
        policy: question.policy,
        rule: question.rule,
        quote: question.quote,
    }
}
