//! `portcullis config import`: imports the settings of another sandbox.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::in_force::{self, InForce};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{
    Disk, Foreign, Imported, Places, RealDisk, Seen, Store, read_foreign, stays_in_project,
};
use portcullis_settings_format::{Change, FileKind, Layer};
use portcullis_text::escape;
use serde_json::{Value, json};

use crate::args::config::Import;
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted};

/// Values of `--from`.
const SOURCES: [(&str, Foreign); 5] = [
    ("oddsjam", Foreign::Oddsjam),
    ("sysid", Foreign::Sysid),
    ("pi-sandbox", Foreign::PiSandbox),
    ("srt", Foreign::Srt),
    ("bosun", Foreign::Bosun),
];

/// The conversion of one file.
struct Step {
    from: PathBuf,
    /// The key of the entry in `projects.json`.
    key: Option<String>,
    to: PathBuf,
    kind: FileKind,
    imported: Imported,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Not written, because of `--dry-run`.
    Tried,
    /// Written.
    Written,
    /// Already present with the same content.
    Unchanged,
}

pub(super) fn run(around: &ProcessEnv, options: &Import) -> crate::exit::Outcome {
    let places = loaded_settings::places(around, options.project.as_deref().unwrap_or(&around.cwd), None)?;
    let mut done = Vec::new();
    for step in steps(around, &places, options)? {
        let outcome = match options.dry_run {
            true => Outcome::Tried,
            false => write(&places, &step, options.replace)?,
        };
        done.push((step, outcome));
    }
    let disk = Written::by(&done)?;
    let in_force = in_force::in_force(around, &places.workspace, None, &disk, in_force::tier_here());
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

fn steps(around: &ProcessEnv, places: &Places, options: &Import) -> anyhow::Result<Vec<Step>> {
    let named = SOURCES.iter().find(|(name, _)| *name == options.from).map(|(_, source)| *source);
    let (source, file) = match (named, &options.file) {
        (Some(source), file) => (source, file.as_ref().map(|file| around.cwd.join(file))),
        (None, None) if options.from.contains(['/', '.']) => {
            let file = around.cwd.join(&options.from);
            let is_toml = file.extension().is_some_and(|ending| ending == "toml");
            (if is_toml { Foreign::Bosun } else { Foreign::Srt }, Some(file))
        }
        (None, _) => {
            let names: Vec<_> = SOURCES.iter().map(|(name, _)| format!("`{name}`")).collect();
            bail!("`{}` is neither {} nor the path of a file", options.from.escape_debug(), names.join(", "))
        }
    };
    let mut steps = Vec::new();
    let users = file.clone().map_or_else(|| usual(around, places, source), |file| vec![file]);
    for from in &users {
        if let Some(given) = read(from, source)? {
            steps.extend(of_user(places, source, from, &given));
        }
    }
    let projects = if file.is_none() { of_project(places, source) } else { None };
    if let Some(from) = &projects {
        stays_in_project(from, places, &RealDisk)?;
        if let Some(given) = read(from, source)? {
            let (to, kind) = (places.project_file(), FileKind::Tightening(Layer::Project));
            let from = from.clone();
            steps.push(Step { from, key: None, to, kind, imported: source.project(&given) });
        }
    }
    let looked: Vec<_> = users.iter().chain(&projects).map(|file| format!("`{}`", file.display())).collect();
    ensure!(!steps.is_empty(), "there is nothing to import: no settings in {}", looked.join(" and "));
    Ok(steps)
}

/// Returns the paths where a sandbox keeps the user's settings.
fn usual(around: &ProcessEnv, places: &Places, source: Foreign) -> Vec<PathBuf> {
    let agent = &places.agent_directory;
    match source {
        Foreign::Oddsjam => {
            ["default.json", "projects.json"].map(|name| agent.join("sandbox").join(name)).to_vec()
        }
        Foreign::Sysid => vec![agent.join("extensions/sandbox.json")],
        Foreign::PiSandbox => vec![agent.join("sandbox.json")],
        Foreign::Srt => vec![around.home.join(".srt-settings.json")],
        Foreign::Bosun => Vec::new(),
    }
}

/// Returns the path where a project keeps its own settings.
///
/// Only tightening values are imported from it, because an agent may have written it.
fn of_project(places: &Places, source: Foreign) -> Option<PathBuf> {
    match source {
        Foreign::Sysid | Foreign::PiSandbox => Some(places.workspace.join(".pi/sandbox.json")),
        Foreign::Bosun => Some(places.workspace.join("config.toml")),
        Foreign::Oddsjam | Foreign::Srt => None,
    }
}

fn read(file: &Path, source: Foreign) -> anyhow::Result<Option<Value>> {
    if source != Foreign::Bosun {
        return Ok(read_foreign(file, &RealDisk)?);
    }
    let reading = || format!("reading `{}`", file.display());
    match RealDisk.read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        bytes => {
            let text = String::from_utf8(bytes.with_context(reading)?).with_context(reading)?;
            toml::from_str(&text).with_context(reading).map(Some)
        }
    }
}

/// Returns a step for each project entry, and one for the default settings.
fn of_user(places: &Places, source: Foreign, from: &Path, given: &Value) -> Vec<Step> {
    let step = |key: Option<&String>, given: &Value| Step {
        from: from.to_owned(),
        key: key.cloned(),
        to: places.sandbox_directory().join(if key.is_some() { "projects.json" } else { "default.json" }),
        kind: if key.is_some() { FileKind::Projects } else { FileKind::Settings },
        imported: source.user(given),
    };
    let projects = given.as_object().filter(|members| {
        let is_project = |(key, value): (&String, &Value)| key.starts_with('/') && value.is_object();
        !members.is_empty() && members.iter().all(is_project)
    });
    match projects {
        Some(projects) => projects.iter().map(|(key, given)| step(Some(key), given)).collect(),
        None => vec![step(None, given)],
    }
}

/// The disk with all converted files in place.
struct Written(HashMap<PathBuf, String>);

impl Written {
    fn by(done: &[(Step, Outcome)]) -> anyhow::Result<Self> {
        let mut files: HashMap<PathBuf, String> = HashMap::new();
        for (step, _) in done.iter().filter(|(_, outcome)| *outcome == Outcome::Tried) {
            let text = match &step.key {
                None => step.imported.text.clone(),
                Some(key) => {
                    let known =
                        files.get(&step.to).cloned().or_else(|| std::fs::read_to_string(&step.to).ok());
                    Change::Copy(vec![key.clone()], step.imported.text.clone())
                        .apply(known.as_deref().unwrap_or("{}\n"))?
                }
            };
            files.insert(step.to.clone(), text);
        }
        Ok(Self(files))
    }
}

impl Disk for Written {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => RealDisk.read(path),
        }
    }

    fn look(&self, path: &Path) -> std::io::Result<Seen> {
        match RealDisk.look(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.is_made(path) => {
                Ok(Seen::Other)
            }
            look => look,
        }
    }

    fn names(&self, directory: &Path) -> std::io::Result<Vec<OsString>> {
        RealDisk.names(directory)
    }
}

impl Written {
    /// Returns true if a path is one of the files, or a directory above one.
    fn is_made(&self, path: &Path) -> bool {
        self.0.keys().any(|file| file.starts_with(path))
    }
}

fn title(project: &Path, is_dry: bool) -> String {
    let when = if is_dry { "would be in force" } else { "in force" };
    format!("{when} in {}", escape(&project.to_string_lossy()))
}

fn write(places: &Places, step: &Step, replace: bool) -> anyhow::Result<Outcome> {
    if step.to == places.project_file() {
        stays_in_project(&step.to, places, &RealDisk)?;
    }
    let before = match std::fs::read(&step.to) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("reading `{}`", step.to.display())),
    };
    let text = match (&step.key, &before) {
        (None, Some(before)) if before == step.imported.text.as_bytes() => return Ok(Outcome::Unchanged),
        (None, _) => step.imported.text.clone(),
        (Some(key), before) => {
            let whole = before.as_ref().map_or("{}\n".into(), |bytes| String::from_utf8_lossy(bytes));
            let known: Value =
                serde_json::from_str(&whole).with_context(|| format!("reading `{}`", step.to.display()))?;
            let wanted: Value =
                serde_json::from_str(&step.imported.text).context("reading the imported settings")?;
            if known.get(key) == Some(&wanted) {
                return Ok(Outcome::Unchanged);
            }
            is_free(
                known.get(key).is_none(),
                replace,
                &format!("`{}` has an entry for `{key}`", step.to.display()),
            )?;
            Change::Copy(vec![key.clone()], step.imported.text.clone()).apply(&whole)?
        }
    };
    if step.key.is_none() {
        is_free(before.is_none(), replace, &format!("`{}` is there already", step.to.display()))?;
    }
    Store::new(places).replace(&step.to, step.kind, before.as_deref(), &text)?;
    Ok(Outcome::Written)
}

fn is_free(free: bool, replace: bool, what: &str) -> anyhow::Result<()> {
    ensure!(free || replace, "{what}; look at the outcome with `--dry-run` and replace it with `--replace`");
    Ok(())
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
