//! The files that are attacked.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Directories for one test, removed on drop. The profile must be written for them.
#[derive(Debug)]
pub struct Scene<'a> {
    /// A directory that commands may neither read nor write.
    pub closed: PathBuf,
    /// A directory that commands may write.
    pub open: PathBuf,
    /// A directory in it in which names that the user's programs execute are protected.
    pub project: PathBuf,
    /// Names that are protected there, the second one a hook of git.
    pub protected: [&'a str; 2],
    /// The port of the gate.
    pub gate: u16,
}

impl<'a> Scene<'a> {
    /// Makes the directories: one below `closed`, the others below `open`.
    ///
    /// # Errors
    /// The system's.
    pub fn make(
        (closed, open): (&Path, &Path),
        name: &str,
        protected: [&'a str; 2],
        gate: u16,
    ) -> io::Result<Self> {
        let directory = format!("self-test-{name}");
        let (closed, open) = (closed.join(&directory), open.join(&directory));
        let project = open.join("project");
        let scene = Self { closed, open, project, protected, gate };
        scene.prepare()?;
        Ok(scene)
    }

    /// Makes all files as they are before an attack.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.remove()?;
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        [&self.closed, &self.open, &self.project].into_iter().try_for_each(|place| builder.create(place))?;
        std::fs::write(self.closed.join("key"), "secret\n")?;
        std::fs::write(self.closed.join("file"), "")
    }

    fn remove(&self) -> io::Result<()> {
        [&self.closed, &self.open].into_iter().try_for_each(|place| match std::fs::remove_dir_all(place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let _removed_with_the_session = self.remove();
    }
}
