//! Files that lose their names, and whose content is kept by a link to them in the store.
//!
//! A link is no copy: a process that has the file open for writing changes what is kept. So a lease keeps processes from
//! opening it while it loses its name. If one has tried, or the file has kept a name, the link is replaced by a copy
//! before that process can write.

use portcullis_sys::descriptor::ReadLease;
use rustix::fs::fstat;

use crate::contents::Contents;

/// A file that is about to lose its name.
#[derive(Debug)]
#[must_use]
pub struct Spared<'a> {
    contents: &'a Contents,
    lease: ReadLease,
    kept: String,
    size: u64,
    /// The link needs no more care.
    is_settled: bool,
}

impl<'a> Spared<'a> {
    pub(crate) fn new(contents: &'a Contents, lease: ReadLease, kept: String, size: u64) -> Self {
        Self { contents, lease, kept, size, is_settled: false }
    }

    /// The file has lost its name.
    pub fn removed(mut self) {
        let has_other_names = fstat(self.lease.file()).map_or(true, |status| status.st_nlink != 1);
        self.is_settled = self.lease.is_whole() && !has_other_names;
    }

    /// It is not kept in this way.
    pub(crate) fn forget(mut self) {
        self.contents.remove(&self.kept);
        self.is_settled = true;
    }
}

impl Drop for Spared<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        // Without room for a copy nothing is kept, and undoing says so: that is better than a wrong content.
        if self.contents.copy_instead(self.lease.file(), &self.kept, self.size).is_err() {
            self.contents.remove(&self.kept);
        }
    }
}
