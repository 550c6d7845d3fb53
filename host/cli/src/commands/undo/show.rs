//! Shows records of changes, plans and reports.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_bootstrap::changes::StoredChanges;
use portcullis_bootstrap::undo::{OpenedChanges, short, told_report, told_step};
use portcullis_changes::plan::Step;
use portcullis_changes::undo::Report;
use portcullis_changes::{Change, Point, PointKind, State};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_decision::path_text::encode;
use portcullis_text::{escape_subject, utc};
use serde_json::{Value, json};

/// Lists sessions that have a record.
pub(super) fn sessions(page: &mut Page, all: &[StoredChanges], json: bool) {
    let at = |stored: &StoredChanges| milliseconds(stored.changed);
    if json {
        let session = |stored: &StoredChanges| {
            json!({
                "session": stored.about.id,
                "agent": stored.about.agent,
                "changedAtMs": at(stored),
                "bytes": stored.bytes,
                "running": stored.is_running,
            })
        };
        page.json(&json!({ "sessions": all.iter().map(session).collect::<Vec<_>>() }));
    } else if all.is_empty() {
        page.line("no session has changed anything in this project");
    } else {
        let row = |stored: &StoredChanges| {
            let state =
                if stored.is_running { tinted("running", Tint::Open) } else { tinted("", Tint::Faint) };
            let size = format!("{} KiB", stored.bytes.div_ceil(1 << 10));
            vec![
                cell(&stored.about.id),
                cell(&stored.about.agent),
                cell(&utc(at(stored))),
                cell(&size),
                state,
            ]
        };
        page.table("", &all.iter().map(row).collect::<Vec<_>>());
    }
}

/// Shows what a session changed.
pub(super) fn history(
    page: &mut Page,
    (stored, opened): (&StoredChanges, &OpenedChanges),
    (diff, json): (bool, bool),
) -> anyhow::Result<()> {
    let history = opened.history()?;
    let mut points = Vec::new();
    for point in history.points() {
        let changes = history.changes(&point);
        let diffs = changes.iter().map(|change| if diff { opened.diff(change) } else { Ok(None) });
        let diffs = diffs.collect::<anyhow::Result<Vec<_>>>()?;
        points.push((point, changes, diffs));
    }
    let project = &stored.about.project;
    if json {
        let points: Vec<Value> =
            points.iter().map(|(point, changes, diffs)| as_json(point, changes, diffs)).collect();
        page.json(&json!({
            "session": stored.about.id,
            "project": encode(project),
            "damagedLines": history.damaged,
            "points": points,
        }));
        return Ok(());
    }
    page.line(&format!("session {} of {} in {}", stored.about.id, stored.about.agent, project.display()));
    if history.damaged > 0 {
        page.line(&format!("{} and were skipped", damaged(history.damaged)));
    }
    for (point, changes, diffs) in &points {
        let undone = match (point.undone, point.undone_partly) {
            (true, _) => "undone",
            (false, true) => "undone in part; undo again",
            (false, false) => "",
        };
        page.table("", &[vec![cell(&point.name), cell(&point.label), tinted(undone, Tint::Faint)]]);
        let rows: Vec<_> = changes.iter().map(|change| row(project, change)).collect();
        page.table("  ", &rows);
        for (change, text) in changes.iter().zip(diffs) {
            let Some(text) = text else { continue };
            page.line(&format!("    {}", escape_subject(&short(project, &change.path)).0));
            // The first two lines would name the texts.
            text.lines().skip(2).for_each(|line| page.line(&format!("    {line}")));
        }
    }
    Ok(())
}

fn as_json(point: &Point, changes: &[Change], diffs: &[Option<String>]) -> Value {
    let change = |(change, diff): (&Change, &Option<String>)| {
        let from = change.from.as_deref().map(encode);
        json!({ "path": encode(&change.path), "what": what(change), "from": from, "diff": diff })
    };
    json!({
        "name": point.name,
        "kind": if point.kind == PointKind::Turn { "turn" } else { "call" },
        "id": point.id,
        "label": point.label,
        "endedAtMs": point.at,
        "undone": point.undone,
        "undonePartly": point.undone_partly,
        "changes": changes.iter().zip(diffs).map(change).collect::<Vec<_>>(),
    })
}

fn row(project: &Path, change: &Change) -> Vec<Cell> {
    let lost = change.was.lost().map(|why| format!("cannot be undone: {why}")).unwrap_or_default();
    let from = change.from.as_ref().map(|from| format!("from {}", short(project, from))).unwrap_or_default();
    vec![cell(what(change)), cell(&short(project, &change.path)), cell(&from), tinted(&lost, Tint::Bad)]
}

fn what(change: &Change) -> &'static str {
    match (&change.was, &change.left) {
        _ if change.from.is_some() => "moved",
        (State::Absent, Some(State::Absent)) => "came and went",
        (State::Absent, _) => "made",
        (_, Some(State::Absent)) => "removed",
        (_, Some(_) | None) => "changed",
    }
}

/// Shows what would be done; `is_put_back` if that puts back what an interrupted undo has done.
pub(super) fn steps(
    page: &mut Page,
    stored: &StoredChanges,
    steps: &[Step],
    (json, is_put_back): (bool, bool),
) {
    if json {
        let step = |step: &Step| {
            let [what, _, note] = told_step(&stored.about.project, step);
            json!({ "path": encode(&step.path), "what": what, "note": note })
        };
        let steps: Vec<_> = steps.iter().map(step).collect();
        page.json(&json!({ "steps": steps, "interrupted": is_put_back }));
        return;
    }
    let row = |step: &Step| {
        let [what, name, note] = told_step(&stored.about.project, step);
        let tint = if step.is_left() { Tint::Open } else { Tint::Plain };
        vec![tinted(&what, tint), cell(&name), tinted(&note, tint)]
    };
    page.table("", &steps.iter().map(row).collect::<Vec<_>>());
}

/// Shows what was done.
pub(super) fn report(page: &mut Page, stored: &StoredChanges, report: &Report, json: bool) {
    if json {
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| encode(path)).collect::<Vec<_>>();
        let left = report.left.iter().map(|(path, why, beside)| {
            json!({ "path": encode(path), "why": why.to_string(), "former": beside.as_deref().map(encode) })
        });
        let failed = report
            .failed
            .iter()
            .map(|(path, error)| json!({ "path": encode(path), "error": error.to_string() }));
        let lost =
            report.lost.iter().map(|(path, why)| json!({ "path": encode(path), "why": why.to_string() }));
        page.json(&json!({
            "done": paths(&report.done),
            "merged": paths(&report.merged),
            "left": left.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
            "notKept": lost.collect::<Vec<_>>(),
        }));
        return;
    }
    page.line(&match report.done.len() {
        0 if report.merged.is_empty() => "nothing was restored".to_owned(),
        1 => "1 name restored; `portcullis redo` takes this back".to_owned(),
        count => format!("{count} names restored; `portcullis redo` takes this back"),
    });
    left(page, stored, report);
    if report.can_be_repeated() {
        page.line("the rest can be repeated with the same command, when nothing is in its way any more");
    }
}

/// Returns how many lines of a record are damaged, as the beginning of a sentence.
pub(super) fn damaged(lines: usize) -> String {
    match lines {
        1 => "1 line of its record is damaged".to_owned(),
        _ => format!("{lines} lines of its record are damaged"),
    }
}

/// Adds what was merged, left alone or failed.
pub(super) fn left(page: &mut Page, stored: &StoredChanges, report: &Report) {
    let row = |[what, name, note]: &[String; 3]| {
        let tint = match what.as_str() {
            "merged" => Tint::Good,
            "left" => Tint::Open,
            _ => Tint::Bad,
        };
        vec![tinted(what, tint), cell(name), cell(note)]
    };
    let rows: Vec<_> = told_report(&stored.about.project, report).iter().map(row).collect();
    page.table("", &rows);
}

fn milliseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
