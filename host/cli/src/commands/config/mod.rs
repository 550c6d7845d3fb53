//! `portcullis config`: shows and checks settings.

mod edit;
mod import;
mod in_use;
mod kept_back;
mod show;
mod validate;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_settings::{FoundSettings, Places, RealDisk, Source, discover};
use portcullis_settings_format::{FileKind, Layer, json_schema};
use portcullis_text::escape;
use serde_json::json;

use in_use::file_in_use;
pub(super) use in_use::places;
use portcullis_command_line::args::config::{Config, SettingsKind};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human;
use portcullis_command_line::output::{Page, Tint, cell, tinted};

/// Runs the subcommand.
pub(crate) fn run(config: Config) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match config {
        Config::Show { place, changed, json } => show::run(&around, &place, changed, json),
        Config::Validate { place, file, kind, json } => {
            let kind = kind.map(file_kind);
            validate::run(&around, &places(&around, &place)?, file, kind, json)
        }
        Config::Schema { kind } => {
            let mut page = Page::new(&around);
            page.pretty_json(&json_schema(file_kind(kind)));
            page.print()?;
            Ok(Exit::Done)
        }
        Config::Edit { place, which } => edit::run(&around, &places(&around, &place)?, which),
        Config::Import(options) => import::run(&around, &options),
        Config::Path { place, all, json } => path(&around, &places(&around, &place)?, all, json),
    }
}

/// Returns the kind of file that has settings of a kind.
fn file_kind(kind: SettingsKind) -> FileKind {
    match kind {
        SettingsKind::Settings => FileKind::Settings,
        SettingsKind::Projects => FileKind::Projects,
        SettingsKind::Layered => FileKind::Part,
        SettingsKind::LayeredProjects => FileKind::Parts,
        SettingsKind::LayeredProject => FileKind::Tightening(Layer::Sandbox),
        SettingsKind::Project => FileKind::Tightening(Layer::Project),
        SettingsKind::Machine => FileKind::Tightening(Layer::Machine),
    }
}

fn path(around: &ProcessEnv, places: &Places, all: bool, as_json: bool) -> exit::Outcome {
    let mut page = Page::new(around);
    if !all {
        let file = file_in_use(places)?;
        let is_there = file.symlink_metadata().is_ok();
        if as_json {
            page.json(&json!({ "file": file, "isThere": is_there }));
            page.print()?;
            return Ok(Exit::Done);
        }
        print_path(around, &file)?;
        if !is_there {
            say(
                "portcullis: there is no such file yet, so the defaults apply; `portcullis config edit` creates it",
            );
        }
        return Ok(Exit::Done);
    }
    let found = discover(places, &RealDisk)?;
    let standing = |file: &PathBuf| match (file.exists(), is_in_use(&found, file)) {
        (true, true) => ("in use", Tint::Good),
        (true, false) => ("does not apply here", Tint::Plain),
        (false, _) => ("missing", Tint::Faint),
    };
    let files = found.watched.iter().map(|file| (file, standing(file)));
    if as_json {
        let file = |(file, (word, _))| json!({ "file": file, "standing": word });
        page.json(&json!({ "files": files.map(file).collect::<Vec<_>>() }));
    } else {
        let row =
            |(file, (word, tint)): (&PathBuf, _)| vec![tinted(word, tint), cell(&human::path(around, file))];
        page.table("", &files.map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Returns true if a settings file applies.
pub(super) fn is_in_use(found: &FoundSettings, file: &Path) -> bool {
    let is_used = found.layers.iter().any(|layer| layer.file == *file) || is_layer(&found.source, file);
    is_used || found.source.file().is_some_and(|used| used == file)
}

/// Returns true if a file is part of the layered settings besides the file for all projects.
///
/// This is the file with the entry that applies, or the file that chooses the layout.
fn is_layer(source: &Source, file: &Path) -> bool {
    let Source::Layered { key, .. } = source else { return false };
    match file.file_name().and_then(|name| name.to_str()) {
        Some("layered.json") => key.is_some(),
        Some("default.json") => true,
        _ => false,
    }
}

/// Prints a path: raw for programs, escaped for people.
fn print_path(around: &ProcessEnv, file: &Path) -> anyhow::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;

    let mut out = portcullis_bootstrap::streams::output();
    if out.is_terminal() {
        let mut page = Page::new(around);
        page.line(&escape(&file.to_string_lossy()));
        page.print()?;
    } else {
        out.write_all(&[file.as_os_str().as_bytes(), b"\n"].concat())?;
    }
    Ok(())
}
