//! Finds settings files of other sandboxes for pi, which Portcullis does not read.
//!
//! The user may rely on such a file, so a warning says that it has no effect and how to import it.

use std::path::{Path, PathBuf};

use portcullis_settings_format::{ConfigError, Layout, Origin, Position, Warning};

use crate::disk::Disk;
use crate::places::Places;
use crate::settings_text;

/// A settings file of another sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldFile {
    /// The path.
    pub file: PathBuf,
    /// The sandbox, as `config import --from` names it.
    pub source: &'static str,
    /// The owner of the settings.
    pub owner: Owner,
}

/// The owner of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user, for all projects.
    User,
    /// The project.
    Project,
}

/// Finds the files.
///
/// The user's are ignored once `default.json` chooses a layout, which it does after an import; a project's file is
/// ignored if `.pi/portcullis.json` exists.
pub(crate) fn find(places: &Places, layout: Layout, disk: &dyn Disk) -> Result<Vec<OldFile>, ConfigError> {
    let mut files = Vec::new();
    let old = |file: PathBuf, source, owner| OldFile { file, source, owner };
    if !has_chosen(&places.default_file(), disk)? {
        files.push(old(places.layered_file(), "sysid", Owner::User));
        files.push(old(places.agent_directory.join("sandbox.json"), "pi-sandbox", Owner::User));
    }
    let is_there = |file: &Path| disk.look(file).is_ok();
    if layout == Layout::Projects && !is_there(&places.project_file()) {
        files.push(old(places.layered_project_file(), "sysid", Owner::Project));
    }
    files.retain(|old| is_there(&old.file));
    Ok(files)
}

/// Returns true if `default.json` chooses a layout.
fn has_chosen(default: &Path, disk: &dyn Disk) -> Result<bool, ConfigError> {
    let Some(text) = settings_text::read(default, disk)? else { return Ok(false) };
    // An invalid file is reported elsewhere.
    Ok(portcullis_settings_format::json::read(&text)
        .is_ok_and(|document| document.member("layout").is_some()))
}

impl OldFile {
    /// Returns the warning: the file has no effect, and how to change that.
    #[must_use]
    pub fn warning(&self) -> Warning {
        let import = format!("`portcullis config import --from {}`", self.source);
        let text = match self.owner {
            Owner::User => format!(
                "these settings of another sandbox have no effect here; {import} takes them over, and `\"layout\": \
                 \"projects\"` in default.json leaves them unused"
            ),
            Owner::Project => format!(
                "these settings of the project have no effect here; {import} takes what they deny over into \
                 .pi/portcullis.json"
            ),
        };
        let at = Position { line: 1, column: 1 };
        Warning { text, origin: Origin { file: self.file.clone(), pointer: String::new(), at } }
    }
}
