//! `portcullis migrate`: takes over the settings of another sandbox for pi, and undoes that.

mod answers;
mod apply;
pub(crate) mod extensions;
mod found;
mod migration;
mod plan;
mod print;
mod prompts;
mod record;

use std::path::Path;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_settings::{Places, RealDisk, forget_imports};
use serde_json::{Value, json};

use crate::commands::pi_extension;
use extensions::OldExtension;
use found::Setup;
use migration::Migration;
use portcullis_command_line::args::migrate::Migrate;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use record::Record;

/// Runs the subcommand.
pub(crate) fn run(options: &Migrate) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    around.ensure_outside()?;
    let places = loaded_settings::places(&around, options.project.as_deref().unwrap_or(&around.cwd), None)?;
    if options.undo {
        return undo(&around, &places, options.json);
    }
    let mut migration = Migration::planned(&around, &places, options)?;
    if options.apply && migration.problems.is_empty() {
        migration.apply(&around, &places)?;
    }
    migration.compare(&around, &places);
    let mut page = Page::new(&around);
    if options.json {
        page.json(&migration.to_json());
    } else {
        print::print(&mut page, &around, &migration);
    }
    page.print()?;
    let is_stuck = options.apply && !migration.problems.is_empty();
    Ok(if is_stuck { Exit::Bad } else { Exit::Done })
}

/// Returns the extensions of other sandboxes that pi loads for a project.
pub(crate) fn old_extensions(around: &ProcessEnv, project: &Path) -> Vec<OldExtension> {
    extensions::find(&around.agent_directory, project)
}

/// Returns the sandboxes of which something is left to take over, by their names for `--from`.
pub(crate) fn left_to_take_over(around: &ProcessEnv, places: &Places) -> Vec<&'static str> {
    let found = found::find(around, places, None);
    let is_left = |setup: &&Setup| {
        let is_planned = plan::plan(places, setup, false)
            .is_ok_and(|plan| !plan.writes.is_empty() || !plan.problems.is_empty() && !is_chosen(places));
        is_planned || !setup.extensions.is_empty()
    };
    found.setups.iter().filter(is_left).map(|setup| setup.name).collect()
}

/// Returns true if the settings for all projects were chosen by an import.
fn is_chosen(places: &Places) -> bool {
    let text = std::fs::read(places.sandbox_directory().join("default.json")).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok_and(|settings| settings.get("layout").is_some())
}

fn undo(around: &ProcessEnv, places: &Places, as_json: bool) -> exit::Outcome {
    let record = Record::open(&around.state)?;
    if record.changes().is_empty() {
        bail!("there is nothing to take back: no `portcullis migrate --apply` is recorded for this user");
    }
    let count = record.changes().len();
    let kept = record.undo(pi_extension::remove)?;
    forget_imports(places, "portcullis migrate", &RealDisk).context("forgetting what was taken over")?;
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({ "takenBack": count - kept.len(), "kept": kept }));
    } else {
        kept.iter().for_each(|why| page.line(why));
        page.line(&format!("taken back: {} of {count} changes", count - kept.len()));
    }
    page.print()?;
    Ok(if kept.is_empty() { Exit::Done } else { Exit::Bad })
}
