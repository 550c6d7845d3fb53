//! The installed parts: this program, pi and the extension.

use std::path::{Path, PathBuf};

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::human::path;
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_policy_runtime::Compiler;
use portcullis_settings::Places;
use serde::Serialize;

use crate::commands::migrate;
use crate::commands::migrate::extensions::OldExtension;
use crate::commands::pi::{self, FoundPi};
use crate::commands::pi_extension::{self, Installed};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The parts that are installed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Installation {
    /// This program.
    program: PathBuf,
    /// Its version.
    version: &'static str,
    /// The file of the compiling program, if it is missing.
    missing_compiler: Option<PathBuf>,
    /// The pi that `portcullis pi` starts.
    pi: Option<FoundPi>,
    /// The extension for plain `pi`.
    extension: Option<Installed>,
    /// Extensions of other sandboxes that pi loads.
    other_sandboxes: Vec<OldExtension>,
    /// Sandboxes of which something is left to take over.
    to_take_over: Vec<&'static str>,
}

impl Installation {
    pub(super) fn find(around: &ProcessEnv, places: &Places) -> Self {
        Self {
            other_sandboxes: migrate::old_extensions(around, &places.workspace),
            to_take_over: migrate::left_to_take_over(around, places),
            program: around.executable.clone(),
            version: VERSION,
            missing_compiler: Compiler::of_program(&around.executable).missing().map(Path::to_owned),
            pi: pi::find(around),
            extension: pi_extension::installed(around),
        }
    }

    pub(super) fn print(&self, page: &mut Page, around: &ProcessEnv) {
        let pi = match &self.pi {
            None => tinted("not found; npm install -g @earendil-works/pi-coding-agent", Tint::Open),
            Some(FoundPi { program, version }) => {
                let version = version.as_deref().unwrap_or("of an unknown version");
                cell(&format!("{version}, {}", path(around, program)))
            }
        };
        let program = format!("{}, {}", self.version, path(around, &self.program));
        let mut rows = vec![vec![cell("portcullis"), cell(&program)]];
        if let Some(missing) = &self.missing_compiler {
            rows.push(vec![cell("compiler"), tinted(&without_compiler(&path(around, missing)), Tint::Bad)]);
        }
        rows.push(vec![cell("pi"), pi]);
        match &self.extension {
            None => {
                let text = "not installed; `portcullis pi` needs none, plain `pi` is NOT protected";
                rows.push(vec![cell("extension"), tinted(text, Tint::Open)]);
            }
            Some(installed) => {
                let version = installed.version.as_deref().unwrap_or("of an unknown version");
                let text = format!("{version}, {}", path(around, &installed.place));
                rows.push(vec![cell("extension"), cell(&text)]);
                if !installed.is_current {
                    let text = "differs from this program's; `portcullis pi-extension install` updates it";
                    rows.push(vec![cell(""), tinted(text, Tint::Open)]);
                }
                let starts = match &installed.host {
                    None => "starts the `portcullis` that is first on PATH".to_owned(),
                    Some(host) if *host == self.program => "starts this program".to_owned(),
                    Some(host) => format!("starts {}", path(around, host)),
                };
                rows.push(vec![cell(""), cell(&starts)]);
            }
        }
        for old in &self.other_sandboxes {
            rows.push(vec![cell("other"), tinted(&old.warning(), Tint::Bad)]);
        }
        if !self.to_take_over.is_empty() {
            let text = format!("{}; `portcullis migrate` shows how", self.to_take_over.join(", "));
            rows.push(vec![cell("take over"), tinted(&text, Tint::Open)]);
        }
        page.line("\ninstalled");
        page.table("  ", &rows);
    }
}

/// Says what does not work without the compiling program.
fn without_compiler(file: &str) -> String {
    format!(
        "{file} is missing: shipped policies work, but no other policy or pack can be used; install the package again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_said_with_what_it_means() {
        let text = without_compiler("/usr/bin/portcullis-compile");
        assert!(text.starts_with("/usr/bin/portcullis-compile is missing: shipped policies work"), "{text}");
        assert!(text.ends_with("install the package again"), "{text}");
    }
}
