//! `portcullis config import`: imports the settings of another sandbox.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use portcullis_bootstrap::in_force::{self, InForce};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::config::Import;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_decision::path_text;
use portcullis_settings::{Foreign, Places, RealDisk, stays_in_project};
use portcullis_settings_format::{FileKind, Layer};
use portcullis_text::escape;
use serde_json::{Value, json};

use crate::commands::take_over::written::Written;
use crate::commands::take_over::{
    self, Outcome, SOURCES, Step, Taken, of_project, of_user, read, usual, write,
};

pub(super) fn run(around: &ProcessEnv, options: &Import) -> exit::Outcome {
    let places = loaded_settings::places(around, options.project.as_deref().unwrap_or(&around.cwd), None)?;
    let mut done = Vec::new();
    let (source, file) = source(around, options)?;
    let named = match (&file, options.file.is_some()) {
        (None, _) => options.from.clone(),
        (Some(file), false) => file.display().to_string(),
        (Some(file), true) => format!("{} {}", options.from, file.display()),
    };
    let command = format!("portcullis config import --from {named} --replace");
    for (step, settings) in steps(around, &places, source, file.as_deref())? {
        let outcome = match options.dry_run {
            true => Outcome::Tried,
            false => write(&places, &step, options.replace)?,
        };
        if !options.dry_run && step.from != step.to {
            let is_of_project = step.to == places.project_file();
            let taken = Taken { file: &step.from, settings: &settings, is_of_project };
            take_over::remember(&places, &taken, &command, source)?;
        }
        done.push((step, outcome));
    }
    let disk = Written::by(&done)?;
    let in_force = in_force::in_force(around, &places.workspace, None, &disk, in_force::tier_here(around));
    let mut page = Page::new(around);
    if options.json {
        let written = done.iter().any(|(_, outcome)| *outcome == Outcome::Written);
        let files: Vec<Value> = done.iter().map(as_json).collect();
        let in_force = in_force.as_ref().map(InForce::to_json).ok();
        page.json(&json!({ "written": written, "files": files, "inForce": in_force }));
    } else {
        done.iter().for_each(|done| human(&mut page, done));
        match &in_force {
            Ok(in_force) => {
                crate::in_force::print(&mut page, in_force, &title(&places.workspace, options.dry_run))
            }
            Err(error) => page.line(&format!("\nnothing is allowed in this project: {error:#}")),
        }
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns the sandbox that is meant, and the file if one is named.
fn source(around: &ProcessEnv, options: &Import) -> anyhow::Result<(Foreign, Option<PathBuf>)> {
    let named = SOURCES.iter().find(|(name, _)| *name == options.from).map(|(_, source)| *source);
    match (named, &options.file) {
        (Some(source), file) => Ok((source, file.as_ref().map(|file| around.cwd.join(file)))),
        (None, None) if options.from.contains(['/', '.']) => {
            let file = path_text::normalize(&around.cwd.join(&options.from));
            let is_toml = file.extension().is_some_and(|ending| ending == "toml");
            Ok((if is_toml { Foreign::Bosun } else { Foreign::Srt }, Some(file)))
        }
        (None, _) => {
            let names: Vec<_> = SOURCES.iter().map(|(name, _)| format!("`{name}`")).collect();
            bail!("`{}` is neither {} nor the path of a file", options.from.escape_debug(), names.join(", "))
        }
    }
}

fn steps(
    around: &ProcessEnv,
    places: &Places,
    source: Foreign,
    file: Option<&Path>,
) -> anyhow::Result<Vec<(Step, Value)>> {
    let mut steps = Vec::new();
    let users = file.map_or_else(|| usual(around, places, source), |file| vec![file.to_owned()]);
    for from in &users {
        if let Some(given) = read(from, source)? {
            let all = of_user(places, source, from, &given);
            steps.extend(all.into_iter().map(|step| (step, given.clone())));
        }
    }
    let projects = if file.is_none() { of_project(places, source) } else { None };
    if let Some(from) = &projects {
        stays_in_project(from, places, &RealDisk)?;
        if let Some(given) = read(from, source)? {
            let (to, kind) = (places.project_file(), FileKind::Tightening(Layer::Project));
            let from = from.clone();
            steps.push((Step { from, key: None, to, kind, imported: source.project(&given) }, given));
        }
    }
    let looked: Vec<_> = users.iter().chain(&projects).map(|file| format!("`{}`", file.display())).collect();
    ensure!(!steps.is_empty(), "there is nothing to import: no settings in {}", looked.join(" and "));
    Ok(steps)
}

fn title(project: &Path, is_dry: bool) -> String {
    let when = if is_dry { "would be in force" } else { "in force" };
    format!("{when} in {}", escape(&project.to_string_lossy()))
}

fn as_json((step, outcome): &(Step, Outcome)) -> Value {
    json!({
        "from": step.from, "to": step.to, "project": step.key, "written": *outcome == Outcome::Written,
        "settings": serde_json::from_str::<Value>(&step.imported.text).unwrap_or_default(),
        "notCarried": step.imported.left, "notes": step.imported.notes,
    })
}

fn human(page: &mut Page, (step, outcome): &(Step, Outcome)) {
    let entry = step.key.as_ref().map(|key| format!(", entry `{key}`")).unwrap_or_default();
    let to = format!("{}{entry}", step.to.display());
    let word = match outcome {
        Outcome::Tried => tinted("would write", Tint::Open),
        Outcome::Written => tinted("written", Tint::Good),
        Outcome::Unchanged => tinted("nothing changed, it was there already", Tint::Faint),
    };
    page.row("", &[word, cell(&to), tinted(&format!("from {}", step.from.display()), Tint::Faint)], &[]);
    if *outcome == Outcome::Tried {
        step.imported.text.lines().for_each(|line| page.row("  ", &[cell(line)], &[]));
    }
    let row = |left: &portcullis_settings::Left| {
        vec![tinted(&left.key, Tint::Bad), cell(&left.value.to_string()), cell(&left.reason)]
    };
    if !step.imported.left.is_empty() {
        page.line("not carried");
        page.table("  ", &step.imported.left.iter().map(row).collect::<Vec<_>>());
    }
    for note in &step.imported.notes {
        page.row("", &[tinted("note", Tint::Open), cell(note)], &[]);
    }
}
