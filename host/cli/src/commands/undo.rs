//! `portcullis changes`, `undo` and `redo`: what a session changed, and taking it back.

mod show;

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::changes::{StoredChanges, remove_changes, stored_changes};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::undo::OpenedChanges;
use portcullis_changes::History;
use portcullis_changes::undo::Range;
use portcullis_command_line::args::undo::{Changes, ChangesVerb, How, Prune, Record, Redo, Undo};
use portcullis_command_line::exit::{Exit, Outcome};
use portcullis_command_line::output::{Page, cell};
use serde_json::json;

/// An undo was interrupted, and nothing is written now.
const INTERRUPTED: &str = "An undo, or the commit of a branch, was interrupted: files can be half-way. The next \
                           `portcullis undo` first puts back what that had done.";
/// The same, before what putting back would do.
const PUT_BACK_FIRST: &str = "A dry run does not do that, so it cannot show what comes after it. Putting back would do \
                              this:";

/// Runs `changes`.
pub(crate) fn changes(changes: &Changes) -> Outcome {
    let around = ProcessEnv::read()?;
    if let Some(ChangesVerb::Prune(prune)) = &changes.what {
        return remove(&around, prune);
    }
    let mut page = Page::new(&around);
    if changes.list {
        show::sessions(&mut page, &stored_of(&around, &changes.record)?, changes.record.json);
        page.print()?;
        return Ok(Exit::Done);
    }
    let Some(stored) = named(&around, &changes.record)? else {
        return no_record(
            page,
            (&around, &changes.record),
            "no session has changed anything in this project",
        );
    };
    let opened = OpenedChanges::open(&around.state, &stored)?;
    if opened.is_interrupted()? && !changes.record.json {
        page.line(INTERRUPTED);
    }
    show::history(&mut page, (&stored, &opened), (changes.diff, changes.record.json))?;
    page.print()?;
    Ok(Exit::Done)
}

/// Runs `undo`.
pub(crate) fn undo(undo: &Undo) -> Outcome {
    take_back(&undo.how, "nothing is left to undo", |history| {
        let start = match (&undo.point, undo.all) {
            (_, true) => history.in_force_since(0),
            (None, false) => history.newest(),
            (Some(named), false) => history.in_force_since(start_of(history, named)?),
        };
        Ok(start.map(|start| Range { start, redo: false }))
    })
}

/// Runs `redo`.
pub(crate) fn redo(redo: &Redo) -> Outcome {
    take_back(&redo.how, "nothing is left to redo", |history| {
        Ok(history.redoable().map(|start| Range { start, redo: true }))
    })
}

/// Returns the position of a turn or call, by its short name or by the client's id.
fn start_of(history: &History, named: &str) -> anyhow::Result<usize> {
    history.start_of(named).with_context(|| {
        format!("no turn and no call is called `{named}`; `portcullis changes` shows their names")
    })
}

fn take_back(
    how: &How,
    none: &str,
    range: impl FnOnce(&History) -> anyhow::Result<Option<Range>>,
) -> Outcome {
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let Some(stored) = named(&around, &how.record)? else {
        return no_record(page, (&around, &how.record), none);
    };
    let opened = OpenedChanges::open(&around.state, &stored)?;
    if how.dry_run
        && let Some(steps) = opened.plan_to_put_back()?
    {
        if !how.record.json {
            page.line(&format!("{INTERRUPTED} {PUT_BACK_FIRST}"));
        }
        show::steps(&mut page, &stored, &steps, (how.record.json, true));
        page.print()?;
        return Ok(Exit::Done);
    }
    if let Some(report) = opened.put_back()?
        && !how.record.json
    {
        page.line("An earlier undo was interrupted. What it had done was put back first.");
        show::left(&mut page, &stored, &report);
    }
    let history = opened.history()?;
    let Some(range) = range(&history)? else {
        return nothing_left(page, (&around, &how.record), (&stored, &history), none);
    };
    let steps = opened.plan(range)?;
    if steps.is_empty() {
        if !how.dry_run {
            // So that the next undo goes further back.
            opened.take_back(range)?;
        }
        return nothing(page, how.record.json, "everything is as it was");
    }
    if how.dry_run {
        show::steps(&mut page, &stored, &steps, (how.record.json, false));
        page.print()?;
        return Ok(Exit::Done);
    }
    if !how.yes {
        if how.record.json || !stdin().is_terminal() {
            bail!(
                "you cannot be asked here, because standard input is no terminal: look with `--dry-run`, then say `--yes`"
            );
        }
        show::steps(&mut page, &stored, &steps, (false, false));
        page.line("Do this? [y/N]");
        page.print()?;
        if !is_yes()? {
            return Ok(Exit::Done);
        }
        page = Page::new(&around);
    }
    let report = opened.take_back(range)?;
    show::report(&mut page, &stored, &report, how.record.json);
    page.print()?;
    Ok(if report.left.is_empty() && report.failed.is_empty() { Exit::Done } else { Exit::Bad })
}

fn is_yes() -> anyhow::Result<bool> {
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer).context("reading your answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn nothing(mut page: Page, json: bool, text: &str) -> Outcome {
    if json {
        page.json(&json!({ "nothing": text }));
    } else {
        page.line(text);
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Says that the project has no record, and where there is one for a directory around it.
fn no_record(page: Page, (around, record): (&ProcessEnv, &Record), none: &str) -> Outcome {
    let project = project_of(around, record);
    ensure!(
        record.project.is_none() || project.exists(),
        "there is no directory `{}`, and no record of changes in it",
        project.display()
    );
    let all = stored_changes(&around.state, None)?;
    let around_it = all.iter().map(|stored| &stored.about.project).filter(|other| project.starts_with(other));
    match around_it.max_by_key(|other| other.components().count()) {
        None => nothing(page, record.json, none),
        Some(other) => {
            let other = other.display();
            let text = format!("{none}; there is a record for `{other}`: say `--project {other}`");
            nothing(page, record.json, &text)
        }
    }
}

/// Says that nothing is left in a record, and what to do if there are others.
fn nothing_left(
    page: Page,
    (around, record): (&ProcessEnv, &Record),
    (stored, history): (&StoredChanges, &History),
    none: &str,
) -> Outcome {
    ensure!(
        history.damaged == 0,
        "{none} that can be read: {} in `{}`",
        show::damaged(history.damaged),
        stored.store.join("journal").display()
    );
    if record.session.is_some() || stored_of(around, record)?.len() < 2 {
        return nothing(page, record.json, none);
    }
    let text = format!(
        "{none} in session {}; `portcullis changes --list` shows the others, and `--session ID` chooses one",
        stored.about.id
    );
    nothing(page, record.json, &text)
}

fn project_of(around: &ProcessEnv, record: &Record) -> PathBuf {
    let project = around.absolute(record.project.as_deref().unwrap_or(&around.cwd));
    // The record of a project that is gone can be used by its path.
    project.canonicalize().unwrap_or(project)
}

/// Returns the records of the project.
fn stored_of(around: &ProcessEnv, record: &Record) -> anyhow::Result<Vec<StoredChanges>> {
    stored_changes(&around.state, Some(&project_of(around, record)))
}

/// Returns the record that is meant; `None` if the project has none.
fn named(around: &ProcessEnv, record: &Record) -> anyhow::Result<Option<StoredChanges>> {
    let mut all = stored_of(around, record)?.into_iter();
    let Some(id) = &record.session else { return Ok(all.next()) };
    let found = all.find(|stored| stored.about.id.starts_with(id.as_str()));
    match found {
        Some(found) => Ok(Some(found)),
        None => bail!("no record of session `{id}` in this project; `portcullis changes --list` shows them"),
    }
}

/// Returns the names of turns and calls, for completion.
pub(crate) fn points(around: &ProcessEnv) -> anyhow::Result<Vec<String>> {
    let record = Record { project: None, session: None, json: false };
    let Some(stored) = named(around, &record)? else { return Ok(Vec::new()) };
    let history = OpenedChanges::open(&around.state, &stored)?.history()?;
    Ok(history.points().into_iter().filter(|point| !point.undone).map(|point| point.name).collect())
}

/// Runs `changes prune`.
fn remove(around: &ProcessEnv, prune: &Prune) -> Outcome {
    let days = u64::from(prune.older.unwrap_or_default());
    let age = std::time::Duration::from_hours(24 * days);
    let is_old = |stored: &StoredChanges| stored.changed.elapsed().is_ok_and(|elapsed| elapsed >= age);
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for stored in stored_changes(&around.state, None)?.into_iter().filter(is_old) {
        match remove_changes(&stored) {
            Ok(()) => removed.push(stored),
            Err(error) => kept.push((stored, format!("{error:#}"))),
        }
    }
    let mut page = Page::new(around);
    if prune.json {
        let id = |stored: &StoredChanges| stored.about.id.clone();
        page.json(&json!({
            "removed": removed.iter().map(id).collect::<Vec<_>>(),
            "kept": kept.iter().map(|(stored, why)| json!({ "session": id(stored), "why": why })).collect::<Vec<_>>(),
        }));
    } else if removed.is_empty() && kept.is_empty() {
        page.line("no records to remove");
    } else {
        let row = |stored: &StoredChanges, what: &str| {
            vec![cell(&stored.about.id), cell(&stored.about.project.to_string_lossy()), cell(what)]
        };
        let gone = removed.iter().map(|stored| row(stored, "removed"));
        let rows: Vec<_> = gone.chain(kept.iter().map(|(stored, why)| row(stored, why))).collect();
        page.table("", &rows);
    }
    page.print()?;
    Ok(if kept.is_empty() { Exit::Done } else { Exit::Bad })
}
