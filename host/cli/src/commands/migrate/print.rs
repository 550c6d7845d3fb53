//! Prints a migration for people.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::human::path;
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};

use super::answers;
use super::apply::is_users;
use super::extensions::OldExtension;
use super::migration::Migration;

pub(super) fn print(page: &mut Page, around: &ProcessEnv, migration: &Migration) {
    if migration.found.setups.is_empty() && migration.found.strangers.is_empty() {
        page.line(
            "no other sandbox for pi was found: no extension, no settings, no `config.toml` with its lists",
        );
        return;
    }
    found(page, around, migration);
    changes(page, around, migration);
    for mention in &migration.mentions {
        let place = format!("{}:{}", path(around, &mention.file), mention.line);
        let text = format!("`{}`: now {}", mention.word, mention.instead);
        page.row("", &[tinted("look at", Tint::Open), cell(&place), tinted(&text, Tint::Faint)], &[]);
    }
    for (name, compared) in &migration.compared {
        match compared {
            Ok(compared) => {
                answers::print(page, around, &format!("answers of {name} -> of Portcullis"), compared)
            }
            Err(error) => page.line(&format!("\nthe answers of {name} cannot be compared: {error}")),
        }
    }
    for problem in &migration.problems {
        page.row("", &[tinted("problem", Tint::Bad), cell(problem)], &[]);
    }
    page.line(match (migration.is_done, migration.problems.is_empty()) {
        (true, _) => "\ndone; `portcullis migrate --undo` takes it back",
        (false, true) => "\nnothing was changed; `portcullis migrate --apply` does it",
        (false, false) => "\nnothing was changed, because of the problems above",
    });
}

fn found(page: &mut Page, around: &ProcessEnv, migration: &Migration) {
    page.line("found");
    let mut rows = Vec::new();
    for setup in &migration.found.setups {
        let extensions = setup.extensions.iter();
        rows.extend(extensions.map(|old| vec![cell(setup.name), cell("extension"), cell(&old.name)]));
        let files = setup.files.iter();
        rows.extend(
            files.map(|file| vec![cell(setup.name), cell("settings"), cell(&path(around, &file.file))]),
        );
    }
    for old in &migration.found.strangers {
        let text = "registers `--no-sandbox` as well, so pi does not start with both";
        rows.push(vec![cell("another"), cell("extension"), cell(&old.name), tinted(text, Tint::Faint)]);
    }
    page.table("  ", &rows);
}

fn changes(page: &mut Page, around: &ProcessEnv, migration: &Migration) {
    page.line(if migration.is_done { "\ndone" } else { "\nwould do" });
    let mut rows = Vec::new();
    for plan in &migration.plans {
        for write in &plan.writes {
            let from: Vec<String> = write.from.iter().map(|file| path(around, file)).collect();
            let copy = if write.before.is_some() { ", with a copy of it beside it" } else { "" };
            let text = format!("from {}{copy}", from.join(" and "));
            rows.push(vec![cell("write"), cell(&path(around, &write.file)), tinted(&text, Tint::Faint)]);
        }
        let kept = plan.kept.iter();
        rows.extend(kept.map(|file| {
            vec![cell("keep"), cell(&path(around, file)), tinted("it can be used as it is", Tint::Faint)]
        }));
    }
    if migration.installs {
        rows.push(vec![cell("install"), cell("the extension of Portcullis, for plain `pi`")]);
    }
    let known = migration.found.setups.iter().flat_map(|setup| &setup.extensions);
    rows.extend(known.map(|old| removal(old, is_users(old))));
    rows.extend(migration.found.strangers.iter().map(|old| removal(old, false)));
    if rows.is_empty() {
        rows.push(vec![cell("nothing")]);
    }
    page.table("  ", &rows);
    let left = migration.plans.iter().flat_map(|plan| &plan.writes).flat_map(|write| &write.left);
    let left: Vec<_> = left
        .map(|left| vec![tinted(&left.key, Tint::Bad), cell(&left.value.to_string()), cell(&left.reason)])
        .collect();
    if !left.is_empty() {
        page.line("not carried");
        page.table("  ", &left);
    }
}

fn removal(old: &OldExtension, is_ours_to_remove: bool) -> Vec<Cell> {
    match is_ours_to_remove {
        true => vec![cell("take out"), cell(&format!("the extension {} of pi", old.name))],
        false => vec![tinted("left to you", Tint::Open), cell(&old.remove)],
    }
}
