//! The user as whom a test runs its programs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// The user and group id of an ordinary user when the tests themselves run as root.
const ORDINARY_ID: u32 = 1000;

/// The user of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests: root on most build machines.
    Caller,
    /// A user without privileges; the same as the caller if the caller has none.
    Ordinary,
}

impl User {
    /// Returns the id to change to; `None` if the caller is this user already.
    fn other_id(self) -> Option<u32> {
        let changes = self == Self::Ordinary && rustix::process::geteuid().is_root();
        changes.then_some(ORDINARY_ID)
    }

    /// Returns true if files must be made reachable for a user who is not their owner.
    #[must_use]
    pub fn is_stranger(self) -> bool {
        self.other_id().is_some()
    }

    /// Returns a command that runs `program` as this user, without privileges for an ordinary one.
    #[must_use]
    pub fn command(self, program: &Path) -> Command {
        let Some(id) = self.other_id() else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        let id = id.to_string();
        command.args([
            "--reuid",
            &id,
            "--regid",
            &id,
            "--clear-groups",
            "--inh-caps=-all",
            "--no-new-privs",
            "--",
        ]);
        command.arg(program);
        command
    }

    /// Returns the same as [`Self::command`] as a list of words, for programs that start other programs.
    #[must_use]
    pub fn command_line(self, program: &Path) -> Vec<OsString> {
        let command = self.command(program);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(OsString::from).collect()
    }

    /// Makes this user the owner of `path`.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn own(self, path: &Path) -> anyhow::Result<()> {
        let Some(id) = self.other_id() else { return Ok(()) };
        std::os::unix::fs::lchown(path, Some(id), Some(id))
            .with_context(|| format!("giving `{}` to user {id}", path.display()))
    }
}
