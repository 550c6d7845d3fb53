//! `portcullis config validate`: prints every mistake with its line.

use std::path::PathBuf;

use anyhow::bail;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_settings::{Checked, Places, RealDisk, discover, resolve, validate, validate_all};
use portcullis_settings_format::{ConfigError, FileKind, Layer, Origin, Position, Problem};
use portcullis_text::escape;
use serde_json::{Value, json};

use super::in_use;

pub(super) fn run(
    around: &ProcessEnv,
    places: &Places,
    file: Option<PathBuf>,
    kind: Option<FileKind>,
    as_json: bool,
) -> exit::Outcome {
    let (mut checked, holding) = match file {
        None => (validate_all(places, &RealDisk), Some(places.clone())),
        Some(file) => {
            let file = around.cwd.join(file);
            let machine = file == places.machine_file();
            let usual =
                if machine { FileKind::Tightening(Layer::Machine) } else { FileKind::from_name(&file) };
            let kind = kind.unwrap_or(usual);
            let checked = vec![validate(&file, kind, &RealDisk)];
            (checked, (kind == FileKind::Settings).then(|| Places { settings: Some(file), ..places.clone() }))
        }
    };
    // Files with mistakes cannot be tried together.
    if let Some(places) = holding.filter(|_| checked.iter().all(|file| file.mistakes.is_empty())) {
        for mistake in of_policies(around, &places)? {
            add(&mut checked, mistake);
        }
    }
    let valid = checked.iter().all(|file| file.mistakes.is_empty());
    let mut page = Page::new(around);
    if as_json {
        let files: Vec<Value> = checked.into_iter().map(file_json).collect();
        page.json(&json!({ "valid": valid, "files": files }));
    } else {
        if checked.is_empty() {
            page.line("there are no settings files; the built-in settings hold");
        }
        checked.into_iter().for_each(|file| human(&mut page, file));
    }
    page.print()?;
    Ok(if valid { Exit::Done } else { Exit::Bad })
}

/// Returns the reasons for which a session would refuse the policies of these settings.
fn of_policies(around: &ProcessEnv, places: &Places) -> anyhow::Result<Vec<ConfigError>> {
    let found = match discover(places, &RealDisk) {
        Ok(found) => found,
        Err(error) => return Ok(vec![error]),
    };
    let resolved = match resolve(&found, places, &RealDisk) {
        Ok(resolved) => resolved,
        Err(error) => return Ok(vec![error]),
    };
    let mut mistakes = Vec::new();
    for (policy, at) in in_use::chain(around, &resolved)?.into_iter().zip(&resolved.policies_at) {
        let Some(reason) = policy.problem else { continue };
        // The default policy has no origin.
        let Some(Origin { file, pointer, at }) = at.origin.clone() else { bail!("{reason}") };
        let problem = Problem::BadValue { field: pointer.clone(), reason };
        mistakes.push(ConfigError::Invalid { file, at, pointer, problem });
    }
    Ok(mistakes)
}

/// Adds a mistake to the file that contains it.
fn add(checked: &mut Vec<Checked>, mistake: ConfigError) {
    let file = if let ConfigError::Invalid { file, .. } = &mistake { Some(file.clone()) } else { None };
    let place = checked.iter().position(|checked| Some(&checked.file) == file.as_ref());
    match place.and_then(|place| checked.get_mut(place)) {
        Some(known) => known.mistakes.push(mistake),
        None => checked.push(Checked { file: file.unwrap_or_default(), text: None, mistakes: vec![mistake] }),
    }
}

pub(super) fn human(page: &mut Page, checked: Checked) {
    let file = escape(&checked.file.to_string_lossy());
    if checked.mistakes.is_empty() {
        page.row("", &[tinted("valid", Tint::Good), cell(&file)], &[]);
    }
    for mistake in checked.mistakes {
        let Some((at, problem)) = within(&mistake) else {
            page.line(&escape(&causes(mistake)));
            continue;
        };
        page.line(&format!("{file}:{}:{}: {}", at.line, at.column, escape(&problem.to_string())));
        let line = usize::try_from(at.line).unwrap_or(0).checked_sub(1);
        if let Some(text) = line.and_then(|line| checked.text.as_ref()?.lines().nth(line)) {
            page.line(&format!("  {:>4} | {}", at.line, escape(text)));
            page.line(&format!("       | {}^", " ".repeat(shown_before(text, at.column))));
        }
    }
}

/// Returns the width of the escaped text before a column.
fn shown_before(text: &str, column: u32) -> usize {
    let before = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    escape(&text.chars().take(before).collect::<String>()).chars().count()
}

fn file_json(checked: Checked) -> Value {
    let mistakes: Vec<Value> = checked.mistakes.into_iter().map(mistake_json).collect();
    json!({ "file": checked.file, "mistakes": mistakes })
}

fn mistake_json(mistake: ConfigError) -> Value {
    let Some((at, problem)) = within(&mistake) else {
        return json!({ "message": causes(mistake) });
    };
    let suggestion =
        if let Problem::UnknownKey { nearest, .. } = problem { nearest.as_deref() } else { None };
    json!({
        "line": at.line, "column": at.column, "pointer": pointer(&mistake), "message": problem.to_string(),
        "suggestion": suggestion,
    })
}

/// Returns position and problem of a mistake inside a file.
fn within(mistake: &ConfigError) -> Option<(Position, &Problem)> {
    if let ConfigError::Invalid { at, problem, .. } = mistake { Some((*at, problem)) } else { None }
}

fn pointer(mistake: &ConfigError) -> &str {
    if let ConfigError::Invalid { pointer, .. } = mistake { pointer } else { "" }
}

fn causes(mistake: ConfigError) -> String {
    format!("{:#}", anyhow::Error::new(mistake))
}
