//! What holds where no rule speaks.

use std::path::{Path, PathBuf};

use super::{Caller, Ruling};
use crate::profile::FileRight;
use crate::verdict::Effect;

/// What holds where nobody has an opinion: commands see the file system read-only except closed
/// regions, tools ask, the workspace and the session's temporary directory are read-write.
#[derive(Debug, Clone, Default)]
pub struct Base {
    /// Workspace roots, canonical.
    pub workspace: Vec<PathBuf>,
    /// The temporary directory as tools and commands see it.
    pub temp: PathBuf,
    /// Regions hidden from commands and asked for by tools (homes).
    pub closed: Vec<PathBuf>,
}

impl Base {
    pub(super) fn file(&self, path: &Path, right: FileRight, caller: Caller) -> Ruling {
        if self.workspace.iter().any(|root| lies_below(path, root)) {
            return Ruling::base(Effect::Allow, "base.workspace", "it lies in the workspace");
        }
        if lies_below(path, &self.temp) {
            return Ruling::base(Effect::Allow, "base.temp", "it lies in the session's temporary directory");
        }
        let closed = self.closed.iter().any(|region| lies_below(path, region));
        match (right, caller) {
            _ if closed => {
                Ruling::base(Effect::Ask, "base.closed", "it lies outside the workspace, in a closed region")
            }
            (FileRight::Read | FileRight::Execute, Caller::Command) => {
                Ruling::base(Effect::Allow, "base.system", "commands see the system read-only")
            }
            (FileRight::Write, Caller::Command)
            | (FileRight::Read | FileRight::Write | FileRight::Execute, Caller::Tool) => {
                Ruling::base(Effect::Ask, "base.outside", "it lies outside the workspace")
            }
        }
    }
}

/// Whether `path` is `top` or below it. Every path starts with the empty one, which must open nothing.
fn lies_below(path: &Path, top: &Path) -> bool {
    top.is_absolute() && path.starts_with(top)
}
