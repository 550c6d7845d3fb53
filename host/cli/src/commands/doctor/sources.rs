//! The settings files that apply, and the values that they set.

use std::path::{Path, PathBuf};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::config::SettingsChoice;
use portcullis_command_line::human::{path, value};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_settings::{RealDisk, Setting, discover, report, resolve};
use serde::Serialize;

use crate::commands::config;

/// The settings of a project, with the origin of each value.
#[derive(Debug, Serialize)]
pub(super) struct Sources {
    files: Vec<File>,
    /// The values that a file sets.
    values: Vec<Setting>,
}

fn is_of(value: &Setting, file: &Path) -> bool {
    value.origin.as_ref().is_some_and(|origin| origin.file == file)
}

/// A settings file that is looked for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    file: PathBuf,
    exists: bool,
    in_use: bool,
}

impl Sources {
    pub(super) fn read(around: &ProcessEnv, place: &SettingsChoice) -> anyhow::Result<Self> {
        let places = config::places(around, place)?;
        let found = discover(&places, &RealDisk)?;
        let resolved = resolve(&found, &places, &RealDisk)?;
        let mut values = report(&found, &resolved, &portcullis_session::default_limits()).values;
        values.retain(|setting| setting.origin.as_ref().is_some_and(|origin| !origin.is_built_in()));
        let file = |file: &PathBuf| File {
            file: file.clone(),
            exists: file.exists(),
            in_use: config::is_in_use(&found, file) || values.iter().any(|value| is_of(value, file)),
        };
        let files = found.watched.iter().map(file).collect();
        Ok(Self { files, values })
    }

    pub(super) fn print(&self, page: &mut Page, around: &ProcessEnv) {
        page.line("\nsettings");
        let there: Vec<_> = self.files.iter().filter(|file| file.exists).collect();
        if there.is_empty() {
            page.line("  no settings file; every value is a default");
            return;
        }
        for file in there {
            let word = if file.in_use {
                tinted("in use", Tint::Good)
            } else {
                tinted("does not apply here", Tint::Faint)
            };
            page.row("  ", &[cell(&path(around, &file.file)), word], &[]);
        }
        let rows = self.values.iter().filter_map(|setting| {
            let origin = setting.origin.as_ref()?;
            let place = format!("{}:{}", path(around, &origin.file), origin.at.line);
            Some(vec![cell(setting.field), cell(&value(around, &setting.value)), tinted(&place, Tint::Faint)])
        });
        page.table("    ", &rows.collect::<Vec<_>>());
    }
}
