//! `portcullis asks`: the questions of running sessions, from another terminal.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use portcullis_session::visible;
use serde_json::json;

use crate::args::asks::Asks;
use crate::control::{Asked, Order, Outcome, ask, sessions};
use crate::exit::{Exit, say};
use crate::page::{Page, Tint, cell, subject, tinted};
use crate::surroundings::Surroundings;

/// Digits of a session's name that tell it from others.
const SHORT: usize = 8;
/// What is typed for a plain no.
const NO: &str = "no";

/// Shows and answers questions.
pub(crate) fn run(asks: &Asks) -> crate::Outcome {
    let around = Surroundings::read()?;
    match asks {
        Asks::List { json } => list(&around, *json),
        Asks::Answer { id, code } => answer(&around, id, code),
    }
}

fn list(around: &Surroundings, as_json: bool) -> crate::Outcome {
    let mut page = Page::new(around);
    let mut all = Vec::new();
    for (name, outcome) in ask_all(around, &Order::Questions {})? {
        if let Outcome::Questions { questions } = outcome {
            all.extend(questions.into_iter().map(|question| (name.clone(), question)));
        }
    }
    if as_json {
        let question = |(session, question): &(String, Asked)| {
            let id = format!("{session}:{}", question.id);
            json!({ "id": id, "question": question })
        };
        page.json(&json!({ "questions": all.iter().map(question).collect::<Vec<_>>() }));
    } else if all.is_empty() {
        page.line("no question waits");
    } else {
        all.iter().for_each(|(session, question)| human(&mut page, session, question));
    }
    page.print()?;
    Ok(Exit::Done)
}

fn human(page: &mut Page, session: &str, question: &Asked) {
    let id = format!("{session}:{}", question.id);
    page.row("", &[tinted(&id, Tint::Open), cell(&question.title)], &[]);
    // Every line of a subject is one of ours: what came from outside was made visible before.
    for line in question.subject.lines() {
        page.row("  ", &[subject(line)], &[]);
    }
    let why = format!("asked by {} in {}: {}", question.asker, question.project, question.reason);
    page.row("  ", &[tinted(&why, Tint::Faint)], &[]);
    let rule = format!("rule {} of {}", question.rule, question.policy);
    page.row("  ", &[tinted(&rule, Tint::Faint)], &[]);
    if let Some(quote) = &question.quote {
        page.row("  ", &[cell(&format!("{} says: “{quote}”", question.policy))], &[]);
    }
    let mut rows = vec![vec![cell(NO), cell("Abort")]];
    rows.extend(question.choices.iter().map(|choice| {
        let target = choice.target.as_ref().map(|target| format!("→ {target}")).unwrap_or_default();
        vec![cell(&choice.code), cell(&choice.text), tinted(&target, Tint::Faint)]
    }));
    page.table("    ", &rows);
}

fn answer(around: &Surroundings, id: &str, code: &str) -> crate::Outcome {
    let (session, number) = parts(id)?;
    let code = (code != NO).then(|| code.to_owned());
    done(around, session, ask(&directory(around, session)?, &Order::Answer { id: number, code })?)
}

/// The session and the number of an id.
pub(super) fn parts(id: &str) -> anyhow::Result<(&str, u64)> {
    let number = |(session, number): (_, &str)| Some((session, number.parse().ok()?));
    id.rsplit_once(':').and_then(number).context("an id is SESSION:NUMBER, as `list` shows it")
}

/// Tells what came of an order that changes something.
pub(super) fn done(around: &Surroundings, session: &str, outcome: Option<Outcome>) -> crate::Outcome {
    match outcome {
        Some(Outcome::Done { what }) => {
            let mut page = Page::new(around);
            page.row("", &[cell(&what)], &[]);
            page.print()?;
            Ok(Exit::Done)
        }
        Some(Outcome::Failed { why }) => bail!("{}", visible(&why)),
        Some(Outcome::Questions { .. } | Outcome::Remembered { .. } | Outcome::Ports { .. }) => {
            bail!("the session answered something else; is it of another version?")
        }
        None => bail!("the session `{}` has ended, and its questions and answers with it", visible(session)),
    }
}

/// Where the directories of all sessions lie.
fn directory_of_all(around: &Surroundings) -> PathBuf {
    around.state.join("sessions")
}

/// Asks every running session; returns what each said, with the beginning of its name. One that does not answer is
/// told of and keeps no other from being heard.
pub(super) fn ask_all(around: &Surroundings, order: &Order) -> anyhow::Result<Vec<(String, Outcome)>> {
    let mut all = Vec::new();
    for (name, directory) in sessions(&directory_of_all(around))? {
        match ask(&directory, order) {
            Ok(outcome) => all.extend(outcome.map(|outcome| (short(&name), outcome))),
            Err(error) => {
                say(&format!("portcullis: session {}: {}", short(&name), visible(&format!("{error:#}"))))
            }
        }
    }
    Ok(all)
}

/// The directory of the session whose name begins so.
pub(super) fn directory(around: &Surroundings, beginning: &str) -> anyhow::Result<PathBuf> {
    let mut found = sessions(&directory_of_all(around))?;
    found.retain(|(name, _)| !beginning.is_empty() && name.starts_with(beginning));
    match found.as_slice() {
        [(_, directory)] => Ok(directory.clone()),
        [] => bail!("no running session begins with `{}`", visible(beginning)),
        _ => bail!("several sessions begin with `{}`, write more of the name", visible(beginning)),
    }
}

/// The beginning of a session's name that is shown.
fn short(name: &str) -> String {
    name.chars().take(SHORT).collect()
}
