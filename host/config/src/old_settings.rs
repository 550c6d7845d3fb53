//! Settings files of other sandboxes for pi that lie where those sandboxes read them, and that nothing here reads.
//!
//! Whoever has written such a file believes in it, so that it is there is told, with what makes it hold.

use std::path::{Path, PathBuf};

use crate::discover;
use crate::disk::Disk;
use crate::error::ConfigError;
use crate::json::Position;
use crate::layout::Layout;
use crate::places::Places;
use crate::resolved::Warning;
use crate::settings::Origin;

/// A file that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldFile {
    /// Where it lies.
    pub file: PathBuf,
    /// What `config import --from` calls its sandbox.
    pub source: &'static str,
    /// Whose settings they are.
    pub owner: Owner,
}

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user's, for all projects.
    User,
    /// The project's own.
    Project,
}

/// Finds them. The user's are none any more once `default.json` chooses a layout, as it does after they were taken
/// over; a project's own file is none beside a `.pi/portcullis.json`.
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

/// Whether `default.json` says which layout holds.
fn has_chosen(default: &Path, disk: &dyn Disk) -> Result<bool, ConfigError> {
    let Some(text) = discover::read(default, disk)? else { return Ok(false) };
    // A file that cannot be used is told as that.
    Ok(crate::json::read(&text).is_ok_and(|document| document.member("layout").is_some()))
}

impl OldFile {
    /// Returns what is told of it: that it has no effect, and what to do.
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
