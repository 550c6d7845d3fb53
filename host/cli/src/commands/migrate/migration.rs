//! A migration: the set-ups found, the planned changes, and the comparison of answers.

use std::path::PathBuf;

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::migrate::Migrate;
use portcullis_settings::{Foreign, Places};
use serde_json::{Value, json};

use super::answers::{self, Compared};
use super::found::{self, Found, Setup};
use super::plan::{self, Plan};
use super::prompts::{self, Mention};
use crate::commands::pi_extension;
use crate::commands::take_over::SOURCES;
use crate::commands::take_over::written::Written;

/// The name of a set-up, with the compared answers or the reason why they cannot be compared.
pub(super) type Comparison = (&'static str, Result<Vec<Compared>, String>);

/// The set-ups found, the planned changes, and the comparison of answers.
pub(super) struct Migration {
    pub(super) found: Found,
    pub(super) mentions: Vec<Mention>,
    pub(super) plans: Vec<Plan>,
    pub(super) problems: Vec<String>,
    /// Whether the extension of this program is installed in place of an old one.
    pub(super) installs: bool,
    pub(super) is_done: bool,
    pub(super) compared: Vec<Comparison>,
}

impl Migration {
    /// Finds the set-ups and plans the changes.
    pub(super) fn planned(around: &ProcessEnv, places: &Places, options: &Migrate) -> anyhow::Result<Self> {
        let found = found::find(around, places, options.from.as_deref().map(source).transpose()?);
        let plans: Vec<Plan> = found
            .setups
            .iter()
            .map(|setup| plan::plan(places, setup, options.replace))
            .collect::<anyhow::Result<_>>()?;
        let mut problems: Vec<String> = plans.iter().flat_map(|plan| plan.problems.clone()).collect();
        problems.extend(clash(&found.setups, &plans));
        let has_old = found.setups.iter().any(|setup| !setup.extensions.is_empty());
        let installs = has_old && pi_extension::installed(around).is_none();
        let mentions = prompts::find(&places.agent_directory, &places.workspace);
        let (is_done, compared) = (false, Vec::new());
        Ok(Self { found, mentions, plans, problems, installs, is_done, compared })
    }

    /// Compares the answers of each old sandbox with ours, as if the planned files were written.
    pub(super) fn compare(&mut self, around: &ProcessEnv, places: &Places) {
        let writes = self.plans.iter().flat_map(|plan| &plan.writes);
        let disk = Written::with(writes.map(|write| (write.file.clone(), write.text.clone())));
        let rules = |setup: &Setup| Some((setup.name, setup.rules(around, places)?));
        for (name, rules) in self.found.setups.iter().filter_map(rules) {
            let compared = answers::compare(around, &places.workspace, &rules, &disk);
            self.compared.push((name, compared.map_err(|error| format!("{error:#}"))));
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let setups = self.found.setups.iter().zip(&self.plans).map(|(setup, plan)| {
            let files = setup.files.iter().map(|file| json!({ "file": file.file, "error": file.settings.as_ref().err() }));
            let writes = plan.writes.iter().map(|write| {
                json!({
                    "file": write.file, "from": write.from, "replaces": write.before.is_some(),
                    "settings": serde_json::from_str::<Value>(&write.text).unwrap_or_default(), "notCarried": write.left,
                })
            });
            json!({
                "sandbox": setup.name, "extensions": setup.extensions, "files": files.collect::<Vec<_>>(),
                "writes": writes.collect::<Vec<_>>(), "keeps": plan.kept,
            })
        });
        let answers = self.compared.iter().map(|(name, compared)| match compared {
            Ok(compared) => json!({ "sandbox": name, "answers": answers::to_json(compared) }),
            Err(error) => json!({ "sandbox": name, "error": error }),
        });
        json!({
            "applied": self.is_done, "sandboxes": setups.collect::<Vec<_>>(), "others": self.found.strangers,
            "installsExtension": self.installs, "mentions": self.mentions, "problems": self.problems,
            "comparison": answers.collect::<Vec<_>>(),
        })
    }
}

/// Returns the sandbox of a value of `--from`.
fn source(name: &str) -> anyhow::Result<Foreign> {
    let known = SOURCES.iter().find(|(known, _)| *known == name).map(|(_, source)| *source);
    known.with_context(|| {
        let names: Vec<_> = SOURCES.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("`{}` is none of {}", name.escape_debug(), names.join(", "))
    })
}

/// Returns a problem if the settings of two sandboxes would be written to the same file.
fn clash(setups: &[Setup], plans: &[Plan]) -> Option<String> {
    let mut files: Vec<(&PathBuf, &str)> = Vec::new();
    for (setup, plan) in setups.iter().zip(plans) {
        for write in &plan.writes {
            if let Some((file, other)) = files.iter().find(|(file, _)| **file == write.file) {
                return Some(format!(
                    "`{}` can hold the settings of `{other}` or of `{name}`, not of both; choose: `--from {other}` or \
                     `--from {name}`",
                    file.display(),
                    name = setup.name
                ));
            }
            files.push((&write.file, setup.name));
        }
    }
    None
}
