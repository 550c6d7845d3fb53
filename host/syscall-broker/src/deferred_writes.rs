//! Files that git writes in place although they are judged by content: `.git` files, `commondir`, `gitdir`, and
//! settings and options in a directory that the command has made.
//!
//! The writer gets a file without a name. When no process can write it any more, its text is judged, and a copy gets
//! the name. Until then, and if the text is harmful, the previous file stays, and the host is notified.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_exec_surface::git::Content;
use portcullis_exec_surface::{Change, Rule, completed};
use portcullis_sandbox::NameAccess;
use portcullis_sys::descriptor::has_writers;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, unlinkat};
use rustix::io::Errno;

use crate::broker::Broker;
use crate::outcome::RuleRefusal;
use crate::pending::PendingCall;
use crate::repository::{read, read_whole, unnamed};
use crate::resolved_name::ResolvedName;
use crate::staging::Staged;
use crate::threads::start;

/// The interval at which they are checked when no calls arrive.
const PAUSE: Duration = Duration::from_millis(5);

impl Broker {
    /// Returns a file to be written in place of a name.
    pub(crate) fn stage(
        &'static self,
        pending: &PendingCall,
        place: ResolvedName,
        (rule, content): (&'static Rule, Content),
        (flags, mode): (OFlags, Mode),
    ) -> Result<OwnedFd, Errno> {
        let file = unnamed(place.directory.as_fd(), mode)?;
        let wanted = flags & (OFlags::RWMODE | OFlags::APPEND | OFlags::NONBLOCK) | OFlags::CLOEXEC;
        let given = self.processes.open_anew(&file, wanted, Mode::empty())?;
        let kept = self.processes.open_anew(&file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let ResolvedName { directory, name, path, .. } = place;
        // Known before the command can have ended.
        self.processes.command(&pending.caller);
        let pending = pending.clone();
        if self.staging.add(Staged { file: kept, directory, name, path, content, rule, pending })? {
            start(move || self.watch()).map_err(|_no_thread| Errno::AGAIN)?;
        }
        Ok(given)
    }

    /// Returns true if such a file is being written.
    pub(crate) fn has_staged(&self) -> bool {
        !self.staging.is_empty()
    }

    fn watch(&self) {
        while self.has_staged() {
            std::thread::sleep(PAUSE);
            self.place_finished_writes();
        }
    }

    /// Judges the files that have no writers left, and puts them in place. The calling thread must not hold the lock on
    /// names.
    pub(crate) fn place_finished_writes(&self) {
        // Without the lock, the files are put in place later.
        let Ok(_nobody_else) = self.order.alone() else { return };
        self.staging.retain(|staged| {
            if has_writers(&staged.file) {
                return true;
            }
            // No caller is left to receive an error.
            if self.put_in_place(staged) == Err(Errno::ACCESS) {
                let Staged { pending, path, rule, .. } = staged;
                let refusal = RuleRefusal { attempt: NameAccess::Write, path: path.clone(), rule: rule.id };
                self.asking.tell(&self.processes, pending, refusal);
            }
            false
        });
    }

    fn put_in_place(&self, staged: &Staged) -> Result<(), Errno> {
        let Staged { file, directory, name, path, content, .. } = staged;
        let anew = self.processes.open_anew(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mode = Mode::from_raw_mode(fstat(file)?.st_mode & 0o7777);
        let text = read_whole(anew, *content)?;
        // The directory may have been renamed since.
        let mut now = PathBuf::from(OsStr::from_bytes(&self.processes.path_of(directory)?));
        now.push(path.file_name().unwrap_or_default());
        let previous = read(directory.as_fd(), name, *content)?;
        if now != *path || !self.is_harmless(*content, path, (previous.as_deref(), &text)) {
            return Err(Errno::ACCESS);
        }
        // The directory may contain more than when the file was opened.
        if let Some(directory_path) = self.site(|site| completed(path, Change::Install, site)) {
            self.look_into(&directory_path, directory.as_fd())?;
        }
        let place = ResolvedName {
            directory: rustix::io::dup(directory)?,
            name: name.clone(),
            path: path.clone(),
            as_directory: false,
        };
        self.record(&staged.pending, &place)?;
        let mut copy = File::from(unnamed(directory.as_fd(), mode)?);
        copy.write_all(&text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if previous.is_some() {
            unlinkat(directory, name, AtFlags::empty())?;
        }
        self.give_name(copy.as_fd(), directory.as_fd(), name)
    }
}
