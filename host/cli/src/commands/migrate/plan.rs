//! The files that a migration writes.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_settings::{Disk as _, Foreign, Left, Places, RealDisk, bosun_project};
use portcullis_settings_format::{Change, FileKind, Layer};
use serde_json::Value;

use super::found::{OldFile, Setup, is_usable, kind_of};
use crate::commands::take_over::{Step, of_user};

/// A file to be written.
#[derive(Debug)]
pub(crate) struct Write {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its kind.
    pub(crate) kind: FileKind,
    /// Its current text.
    pub(crate) before: Option<Vec<u8>>,
    /// Its new text.
    pub(crate) text: String,
    /// The files that it is made of.
    pub(crate) from: Vec<PathBuf>,
    /// Values that are not carried.
    pub(crate) left: Vec<Left>,
}

/// The files to write for one set-up, and the problems that prevent it.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) writes: Vec<Write>,
    pub(crate) problems: Vec<String>,
    /// Files that stay as they are, because they have the same settings already.
    pub(crate) kept: Vec<PathBuf>,
}

/// Plans the files for a set-up.
pub(crate) fn plan(places: &Places, setup: &Setup, replace: bool) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    for file in &setup.files {
        match &file.settings {
            Err(why) => plan.problems.push(format!("{why}; correct it, or move it away")),
            Ok(_) if setup.source == Foreign::Oddsjam && is_usable(&file.file) => {
                plan.kept.push(file.file.clone());
            }
            Ok(settings) => {
                if let Some(why) = too_wide(places, setup.source, file) {
                    plan.problems.push(why);
                    continue;
                }
                for step in steps(places, setup.source, file, settings) {
                    plan.add(step, replace)?;
                }
            }
        }
    }
    let unchanged = |write: &Write| write.before.as_deref() == Some(write.text.as_bytes());
    let (kept, writes) = plan.writes.into_iter().partition(unchanged);
    plan.writes = writes;
    plan.kept.extend(Vec::into_iter(kept).map(|write: Write| write.file));
    Ok(plan)
}

/// Returns why a file is not taken over: an entry for the home directory would hold in every project below it.
fn too_wide(places: &Places, source: Foreign, file: &OldFile) -> Option<String> {
    let mut homes = std::iter::once(&places.home).chain(&places.other_homes);
    let is_wide = source == Foreign::Bosun && homes.any(|home| home.starts_with(&places.workspace));
    is_wide.then(|| {
        format!(
            "`{}` lies in or above your home directory, and would decide about every project there; run this in a \
             project, or move the file away",
            file.file.display()
        )
    })
}

fn steps(places: &Places, source: Foreign, file: &OldFile, settings: &Value) -> Vec<Step> {
    if source == Foreign::Bosun {
        let key = places.workspace.canonicalize().unwrap_or_else(|_| places.workspace.clone());
        return vec![Step {
            from: file.file.clone(),
            key: Some(key.to_string_lossy().into_owned()),
            to: places.sandbox_directory().join("projects.json"),
            kind: FileKind::Projects,
            imported: bosun_project(settings),
        }];
    }
    if file.is_of_project {
        return vec![Step {
            from: file.file.clone(),
            key: None,
            to: places.project_file(),
            kind: FileKind::Tightening(Layer::Project),
            imported: source.project(settings),
        }];
    }
    of_user(places, source, &file.file, settings)
}

impl Plan {
    fn add(&mut self, step: Step, replace: bool) -> anyhow::Result<()> {
        let index = match self.writes.iter().position(|write| write.file == step.to) {
            Some(index) => index,
            None => {
                self.writes.push(Write::of(&step.to)?);
                self.writes.len() - 1
            }
        };
        let Some(write) = self.writes.get_mut(index) else { return Ok(()) };
        write.kind = step.kind;
        // A file that is corrected in its own place replaces nobody else's settings.
        let may_replace = replace || step.from == step.to;
        match write.take(&step, may_replace) {
            Ok(()) => {
                write.left.extend(step.imported.left);
                if !write.from.contains(&step.from) {
                    write.from.push(step.from);
                }
            }
            Err(why) => self.problems.push(format!("{why:#}")),
        }
        Ok(())
    }
}

impl Write {
    fn of(file: &Path) -> anyhow::Result<Self> {
        let before = match RealDisk.read(file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("reading `{}`", file.display())),
        };
        let text = match &before {
            Some(bytes) => {
                String::from_utf8(bytes.clone()).with_context(|| format!("reading `{}`", file.display()))?
            }
            None => "{}\n".to_owned(),
        };
        let (from, left) = (Vec::new(), Vec::new());
        Ok(Self { file: file.to_owned(), kind: kind_of(file), before, text, from, left })
    }

    /// Adds the settings of a step.
    fn take(&mut self, step: &Step, may_replace: bool) -> anyhow::Result<()> {
        let file = self.file.display();
        let wanted: Value = serde_json::from_str(&step.imported.text)?;
        match &step.key {
            None => {
                let known: Option<Value> = serde_json::from_str(&self.text).ok();
                if self.before.is_some() && !may_replace && known.as_ref() != Some(&wanted) {
                    anyhow::bail!(
                        "`{file}` is there already; `--replace` replaces it, with a copy beside it"
                    );
                }
                if known.as_ref() != Some(&wanted) {
                    self.text = step.imported.text.clone();
                }
            }
            Some(key) => {
                let known: Value =
                    serde_json::from_str(&self.text).with_context(|| format!("reading `{file}`"))?;
                let entry = known.get(key);
                if entry == Some(&wanted) {
                    return Ok(());
                }
                if entry.is_some() && !may_replace {
                    anyhow::bail!(
                        "`{file}` has an entry for `{key}`; `--replace` replaces it, with a copy beside it"
                    );
                }
                self.text = Change::Copy(vec![key.clone()], step.imported.text.clone()).apply(&self.text)?;
            }
        }
        Ok(())
    }
}
