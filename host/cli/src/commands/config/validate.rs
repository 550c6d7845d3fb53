//! `portcullis config validate`: every mistake with its line.

use std::path::PathBuf;

use portcullis_config::{
    Checked, ConfigError, FileKind, Layer, Places, Position, Problem, RealDisk, validate, validate_all,
};
use portcullis_session::visible;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::page::{Page, Tint, cell, tinted};
use crate::surroundings::Surroundings;

pub(super) fn run(
    around: &Surroundings,
    places: &Places,
    file: Option<PathBuf>,
    kind: Option<FileKind>,
    as_json: bool,
) -> crate::Outcome {
    let checked = match file {
        None => validate_all(places, &RealDisk),
        Some(file) => {
            let file = around.cwd.join(file);
            let machine = file == places.machine_file();
            let usual = if machine { FileKind::Tightening(Layer::Machine) } else { FileKind::of(&file) };
            vec![validate(&file, kind.unwrap_or(usual), &RealDisk)]
        }
    };
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

pub(super) fn human(page: &mut Page, checked: Checked) {
    let file = visible(&checked.file.to_string_lossy());
    if checked.mistakes.is_empty() {
        page.row("", &[tinted("valid", Tint::Good), cell(&file)], &[]);
    }
    for mistake in checked.mistakes {
        let Some((at, problem)) = within(&mistake) else {
            page.line(&visible(&causes(mistake)));
            continue;
        };
        page.line(&format!("{file}:{}:{}: {}", at.line, at.column, visible(&problem.to_string())));
        let line = usize::try_from(at.line).unwrap_or(0).checked_sub(1);
        if let Some(text) = line.and_then(|line| checked.text.as_ref()?.lines().nth(line)) {
            page.line(&format!("  {:>4} | {}", at.line, visible(text)));
            page.line(&format!("       | {}^", " ".repeat(shown_before(text, at.column))));
        }
    }
}

/// Where a column is once the characters before it have been made visible.
fn shown_before(text: &str, column: u32) -> usize {
    let before = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    visible(&text.chars().take(before).collect::<String>()).chars().count()
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

/// The place and the problem of a mistake inside a file.
fn within(mistake: &ConfigError) -> Option<(Position, &Problem)> {
    if let ConfigError::Invalid { at, problem, .. } = mistake { Some((*at, problem)) } else { None }
}

fn pointer(mistake: &ConfigError) -> &str {
    if let ConfigError::Invalid { pointer, .. } = mistake { pointer } else { "" }
}

fn causes(mistake: ConfigError) -> String {
    format!("{:#}", anyhow::Error::new(mistake))
}
