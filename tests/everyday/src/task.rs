//! The tasks, as the files in `tasks` describe them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The time that one run of a task has, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(120);

/// One task of a developer's day.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The file that it is in, without its ending.
    #[serde(skip)]
    pub area: String,
    /// What is done, in a few words.
    pub name: String,
    /// The programs that it calls.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A shell line that succeeds where everything else is there that it needs.
    #[serde(default)]
    pub probe: Option<String>,
    /// The hosts of package registries that it fetches from.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether it is part of every test run.
    #[serde(default)]
    pub quick: bool,
    /// Whether it counts for the time that builds take.
    #[serde(default)]
    pub build: bool,
    /// The longest that one run may take.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// A script that prepares it, outside, in the project.
    #[serde(default)]
    pub setup: String,
    /// A server of the machine's own, which runs outside beside it: a script that makes the file `$READY`, and may keep
    /// files in `$SERVICE`.
    #[serde(default)]
    pub service: Option<String>,
    /// The script that is the task, in the project.
    pub command: String,
    /// A script that finds out whether it did its work, outside, in the project; `$OUTPUT` is what it wrote.
    pub check: String,
    /// What a user does where it does not work.
    #[serde(default)]
    pub instead: Option<String>,
}

impl Task {
    /// Returns the time that one run has.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.seconds.map_or(PATIENCE, Duration::from_secs)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    task: Vec<Task>,
}

/// Returns all tasks, in the order of the areas' names.
///
/// # Errors
///
/// If a file cannot be read, has a mistake, or names two tasks alike.
pub fn all() -> Result<Vec<Task>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks");
    let entries = fs::read_dir(&folder).with_context(|| format!("listing `{}`", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut tasks: Vec<Task> = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("reading `{}`", file.display()))?;
        let area: Area = toml::from_str(&text).with_context(|| format!("reading `{}`", file.display()))?;
        let name = file.file_stem().and_then(|stem| stem.to_str()).context("a file name is text")?;
        for task in area.task {
            let is_known = |known: &Task| known.area == name && known.name == task.name;
            ensure!(!tasks.iter().any(is_known), "`{name}` has two tasks `{}`", task.name);
            tasks.push(Task { area: name.to_owned(), ..task });
        }
    }
    Ok(tasks)
}
