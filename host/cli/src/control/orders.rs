//! What a session makes of an order from elsewhere.

use std::path::Path;
use std::sync::Arc;

use portcullis_session::{
    Answer, ChoiceKind, InsidePort, Question, Refusal, Remembered, Session, described, with_causes,
};

use super::{Asked, AskedChoice, Control, Kept, Order, Outcome, Port};

/// Listens in `directory` for whoever answers questions of `session` elsewhere.
pub(crate) fn listen_for(session: &Arc<Session>, directory: &Path) -> anyhow::Result<Control> {
    let session = Arc::downgrade(session);
    Control::listen(directory, move |order| match session.upgrade() {
        Some(session) => carry_out(&session, order),
        None => failed("the session has ended"),
    })
}

fn carry_out(session: &Session, order: Order) -> Outcome {
    match order {
        Order::Questions {} => {
            let project = session.settings().workspace.display().to_string();
            let questions = session.questions().into_iter();
            Outcome::Questions { questions: questions.map(|question| asked(question, &project)).collect() }
        }
        Order::Answer { id, code } => answer(session, id, code.as_deref()),
        Order::Remembered {} => {
            Outcome::Remembered { remembered: session.remembered().into_iter().map(kept).collect() }
        }
        Order::Ports {} => Outcome::Ports { ports: session.ports().into_iter().map(port).collect() },
        Order::OpenPort { port, at } => match session.open_port(port, at) {
            Ok(at) => Outcome::Done { what: format!("port {port} is open at {at}") },
            Err(error) => failed(&with_causes(&error)),
        },
        Order::ClosePort { port } => match session.close_port(port) {
            Ok(()) => Outcome::Done { what: format!("port {port} is closed") },
            Err(error) => failed(&with_causes(&error)),
        },
        Order::Forget { id } => {
            let text =
                session.remembered().into_iter().find(|known| known.id == id).map(|known| kept(known).text);
            match text.filter(|_| session.forget(id)) {
                Some(text) => Outcome::Done { what: format!("taken back: {text}") },
                None => failed("the session does not remember this any more"),
            }
        }
    }
}

fn answer(session: &Session, id: u64, code: Option<&str>) -> Outcome {
    let Some(question) = session.questions().into_iter().find(|question| question.id == id) else {
        return failed("this question does not wait any more");
    };
    let (answer, what) = match code {
        None => (Answer::Refused(Refusal::User), "refused".to_owned()),
        Some(code) => match question.choices.iter().position(|choice| choice.code() == code) {
            Some(index) => {
                let spoken = question.choices.get(index).map(portcullis_session::Choice::spoken);
                (Answer::Choice(index), spoken.unwrap_or_default())
            }
            None => return failed("this question has no such choice, see `portcullis asks list`"),
        },
    };
    match session.answer_question(id, answer) {
        true => Outcome::Done { what },
        false => failed("somebody else was faster"),
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
    let what = described(&remembered.pattern).unwrap_or_else(|| "one request".to_owned());
    let text = match remembered.kind {
        ChoiceKind::Allow => what,
        ChoiceKind::Deny => format!("no {what}"),
    };
    Kept { id: remembered.id, text, expires_at: remembered.expires_at }
}

fn asked(question: Question, project: &str) -> Asked {
    let choice = |choice: &portcullis_session::Choice| AskedChoice {
        code: choice.code(),
        text: choice.spoken(),
        target: choice.target.clone(),
    };
    Asked {
        id: question.id,
        project: project.to_owned(),
        choices: question.choices.iter().map(choice).collect(),
        title: question.title,
        subject: question.subject,
        asker: question.asker,
        reason: question.reason,
        policy: question.policy,
        rule: question.rule,
        quote: question.quote,
    }
}
