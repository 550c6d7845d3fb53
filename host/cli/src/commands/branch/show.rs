//! Shows branches, their reviews, and commits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use portcullis_bootstrap::branches::{Committed, Judged, Reviewed, StoredBranch};
use portcullis_changes::branch::{BranchChange, Left, Obstacle, diff, review_id};
use portcullis_changes::undo::Report;
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_decision::path_text::encode;
use portcullis_text::{escape_subject, utc};
use serde_json::{Value, json};

/// Lists branches.
pub(super) fn list(page: &mut Page, all: &[StoredBranch], (everywhere, json): (bool, bool)) {
    if json {
        let branch = |branch: &StoredBranch| {
            json!({
                "name": branch.name,
                "project": encode(&branch.project),
                "begunAtMs": begun(branch),
                "inUse": branch.is_in_use,
            })
        };
        page.json(&json!({ "branches": all.iter().map(branch).collect::<Vec<_>>() }));
    } else if all.is_empty() {
        page.line("no branches; `portcullis run --branch` begins one");
    } else {
        let row = |branch: &StoredBranch| {
            let state = if branch.is_in_use { tinted("in use", Tint::Open) } else { cell("") };
            let mut row = vec![cell(&branch.name), cell(&utc(begun(branch))), state];
            if everywhere {
                row.push(cell(&branch.project.to_string_lossy()));
            }
            row
        };
        page.table("", &all.iter().map(row).collect::<Vec<_>>());
    }
}

fn begun(branch: &StoredBranch) -> u64 {
    let since = branch.begun().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Shows what differs between a branch and its project; returns the id of the review.
pub(super) fn review(
    page: &mut Page,
    (branch, reviewed, hosts, together): (&StoredBranch, &[Reviewed], &[String], &Judged),
    (with_diffs, json): (bool, bool),
) -> anyhow::Result<String> {
    let text = |reviewed: &Reviewed| -> anyhow::Result<Option<String>> {
        if !with_diffs {
            return Ok(None);
        }
        let path = &reviewed.change.path;
        diff(branch.layers(), &reviewed.change).with_context(|| format!("comparing `{}`", path.display()))
    };
    let diffs = reviewed.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
    let changes: Vec<BranchChange> = reviewed.iter().map(|reviewed| reviewed.change.clone()).collect();
    let id = review_id(&changes);
    if json {
        let changes: Vec<Value> = reviewed.iter().zip(&diffs).map(as_json).collect();
        page.json(&json!({
            "name": branch.name,
            "project": encode(&branch.project),
            "inUse": branch.is_in_use,
            "review": id,
            "changes": changes,
            "hosts": hosts,
            "together": told(together).map(|(decision, reason)| json!({ "decision": decision, "reason": reason })),
        }));
        return Ok(id);
    }
    page.line(&format!("branch {} of {}", branch.name, branch.project.display()));
    if branch.is_in_use {
        page.line("a command runs in it, so this may change");
    }
    if reviewed.is_empty() {
        page.line("nothing differs from the project");
    }
    page.table("  ", &reviewed.iter().map(row).collect::<Vec<_>>());
    for (reviewed, text) in reviewed.iter().zip(&diffs) {
        let Some(text) = text else { continue };
        page.line(&format!("  {}", escape_subject(&reviewed.change.path.to_string_lossy()).0));
        // The first two lines would name the texts.
        text.lines().skip(2).for_each(|line| page.line(&format!("  {line}")));
    }
    if !hosts.is_empty() {
        page.line(&format!("hosts: {}", hosts.join(", ")));
    }
    if let Some((decision, reason)) = told(together) {
        page.line(&format!("all of it together is {decision} by a policy: {reason}"));
    }
    if !reviewed.is_empty() {
        page.line(&format!("review: {id}"));
    }
    Ok(id)
}

/// Returns the decision of the policies on all changes together, unless they allow it.
fn told(together: &Judged) -> Option<(&'static str, &str)> {
    match together {
        Judged::Allowed => None,
        Judged::Protected(reason) => Some(("protected", reason)),
        Judged::Refused(reason) => Some(("refused", reason)),
    }
}

fn as_json((reviewed, diff): (&Reviewed, &Option<String>)) -> Value {
    let Reviewed { change, judged, secrets } = reviewed;
    let (decision, reason) = match judged {
        Judged::Allowed => ("allowed", None),
        Judged::Protected(reason) => ("protected", Some(reason)),
        Judged::Refused(reason) => ("refused", Some(reason)),
    };
    json!({
        "path": encode(&change.path),
        "what": change.word(),
        "obstacle": change.obstacle.map(|obstacle| obstacle.to_string()),
        "conflict": change.obstacle.is_some_and(Obstacle::is_conflict),
        "decision": decision,
        "reason": reason,
        "secrets": secrets,
        "notes": change.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "diff": diff,
    })
}

fn row(Reviewed { change, judged, secrets }: &Reviewed) -> Vec<Cell> {
    let mut notes: Vec<String> = change.obstacle.iter().map(ToString::to_string).collect();
    notes.extend(match judged {
        Judged::Allowed => None,
        Judged::Protected(reason) => Some(format!("protected: {reason}")),
        Judged::Refused(reason) => Some(format!("refused: {reason}")),
    });
    let is_bad = !notes.is_empty() || *secrets > 0;
    match secrets {
        0 => {}
        1 => notes.push("1 line looks like a secret".to_owned()),
        lines => notes.push(format!("{lines} lines look like secrets")),
    }
    notes.extend(change.notes.iter().map(ToString::to_string));
    let tint = if is_bad { Tint::Open } else { Tint::Faint };
    vec![cell(change.word()), cell(&change.path.to_string_lossy()), tinted(&notes.join("; "), tint)]
}

/// Returns true if something that was chosen is left.
pub(super) fn is_missed(left: &BTreeMap<PathBuf, Left>) -> bool {
    left.values().any(|left| *left != Left::NotNamed)
}

fn left_rows(left: &BTreeMap<PathBuf, Left>) -> Vec<Vec<Cell>> {
    let missed = left.iter().filter(|(_, left)| **left != Left::NotNamed);
    let row = |(path, left): (&PathBuf, &Left)| {
        vec![
            tinted("leave", Tint::Open),
            cell(&path.to_string_lossy()),
            tinted(&left.to_string(), Tint::Open),
        ]
    };
    missed.map(row).collect()
}

/// Shows what a commit would do, or that it does nothing.
pub(super) fn choice(
    page: &mut Page,
    (chosen, left): (&[&BranchChange], &BTreeMap<PathBuf, Left>),
    (is_plan, json): (bool, bool),
) {
    if json {
        let steps: Vec<Value> = chosen
            .iter()
            .map(|change| json!({ "path": encode(&change.path), "what": change.word() }))
            .collect();
        page.json(&json!({ "steps": steps, "left": left_json(left) }));
        return;
    }
    if chosen.is_empty() {
        page.line("nothing to commit");
    }
    let verb = |change: &BranchChange| match change.word() {
        "made" => "make",
        "removed" => "remove",
        _ => "change",
    };
    let row = |change: &&BranchChange| {
        let notes = change
            .notes
            .iter()
            .map(ToString::to_string)
            .chain(change.obstacle.map(|_| "overwrites what was changed in the project".to_owned()));
        let notes: Vec<String> = notes.collect();
        vec![cell(verb(change)), cell(&change.path.to_string_lossy()), cell(&notes.join("; "))]
    };
    let mut rows: Vec<_> = if is_plan { chosen.iter().map(row).collect() } else { Vec::new() };
    rows.extend(left_rows(left));
    page.table("  ", &rows);
}

fn left_json(left: &BTreeMap<PathBuf, Left>) -> Vec<Value> {
    left.iter().map(|(path, left)| json!({ "path": encode(path), "why": left.to_string() })).collect()
}

/// Shows what a commit did.
pub(super) fn committed(
    page: &mut Page,
    (name, committed, left): (&str, &Committed, &BTreeMap<PathBuf, Left>),
    is_removed: bool,
    json: bool,
) {
    let stopped = |report: &Report| -> Vec<(PathBuf, String)> {
        let left = report.left.iter().map(|(path, why, _)| (path.clone(), why.to_string()));
        left.chain(report.failed.iter().map(|(path, error)| (path.clone(), error.to_string()))).collect()
    };
    if json {
        let (count, stopped) = match committed {
            Committed::Whole(count) => (*count, Vec::new()),
            Committed::Nothing(report) | Committed::Unfinished(report) => (0, stopped(report)),
        };
        let stopped: Vec<Value> =
            stopped.iter().map(|(path, why)| json!({ "path": encode(path), "why": why })).collect();
        page.json(&json!({
            "committed": count,
            "stopped": stopped,
            "left": left_json(left),
            "removed": is_removed,
        }));
        return;
    }
    match committed {
        Committed::Whole(count) => {
            let rest = if is_removed { ", and the branch is removed" } else { "" };
            let made = match count {
                1 => format!("1 name of branch `{name}` is"),
                _ => format!("{count} names of branch `{name}` are"),
            };
            page.line(&format!("{made} in the project{rest}; undo: portcullis undo"));
            page.table("  ", &left_rows(left));
        }
        Committed::Nothing(report) => {
            page.line(
                "nothing was committed, because the project changed meanwhile or could not be written:",
            );
            let row = |(path, why): &(PathBuf, String)| vec![cell(&shown(path)), tinted(why, Tint::Bad)];
            page.table("  ", &stopped(report).iter().map(row).collect::<Vec<_>>());
        }
        Committed::Unfinished(report) => {
            page.line(
                "the commit was stopped, and could not all be taken back; the next `portcullis branch` goes on with \
                 that. These are not as they were:",
            );
            let row = |(path, why): &(PathBuf, String)| vec![cell(&shown(path)), tinted(why, Tint::Bad)];
            page.table("  ", &stopped(report).iter().map(row).collect::<Vec<_>>());
        }
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
