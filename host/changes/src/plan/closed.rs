//! Looks into directories that the session has closed.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::step::World;
use crate::history::History;
use crate::state::{FileState, State};

/// What planning looks at. Directories that are as the session has left them are opened for a look.
pub(super) struct Through<'a> {
    pub(super) history: &'a History,
    pub(super) world: &'a dyn World,
}

impl Through<'_> {
    /// Looks, and if the result may be that of a closed directory on the way to `path`, looks again while that is open.
    fn look_through<T>(
        &self,
        path: &Path,
        look: impl Fn() -> io::Result<T>,
        may_be_closed: impl Fn(&io::Result<T>) -> bool,
    ) -> io::Result<T> {
        let mut result = look();
        if may_be_closed(&result) {
            let may_open = |directory: &Path, found: &State| self.history.has_left(directory, found);
            self.world.with_open_way(path, &may_open, &mut || result = look());
        }
        result
    }
}

fn is_denied<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn is_unknown<T>(result: &io::Result<Option<T>>) -> bool {
    is_denied(result) || matches!(result, Ok(None))
}

impl World for Through<'_> {
    fn look(&self, path: &Path) -> io::Result<State> {
        self.look_through(path, || self.world.look(path), is_denied)
    }

    fn digest(&self, path: &Path, file: &FileState) -> io::Result<Option<String>> {
        self.look_through(path, || self.world.digest(path, file), is_unknown)
    }

    fn digest_of_kept(&self, file: &FileState) -> io::Result<Option<String>> {
        self.world.digest_of_kept(file)
    }

    fn text(&self, path: &Path, file: &FileState) -> io::Result<Option<Vec<u8>>> {
        self.look_through(path, || self.world.text(path, file), is_unknown)
    }

    fn kept(&self, file: &FileState) -> io::Result<Option<Vec<u8>>> {
        self.world.kept(file)
    }

    fn is_beginning(&self, path: &Path, file: &FileState, of: &FileState) -> io::Result<bool> {
        let look = || self.world.is_beginning(path, file, of);
        self.look_through(path, look, |result| is_denied(result) || matches!(result, Ok(false)))
    }

    fn keeps(&self, size: u64) -> bool {
        self.world.keeps(size)
    }

    fn changed_at(&self, path: &Path) -> io::Result<(i64, u32)> {
        self.look_through(path, || self.world.changed_at(path), is_denied)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.look_through(&path.join("name"), || self.world.names(path), is_denied)
    }

    fn with_open_way(&self, path: &Path, may: &dyn Fn(&Path, &State) -> bool, look: &mut dyn FnMut()) {
        self.world.with_open_way(path, may, look);
    }
}
