//! Files that a command removes or replaces, and the status of their names afterwards.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};

use crate::broker::Broker;
use crate::identity::{Identity, identify};
use crate::outcome::Stop;
use crate::resolved_name::{ResolvedName, kind_of};
use crate::worker::Worker;

/// The file at a place before a command removes or replaces it.
pub(crate) struct Displaced {
    /// Its identity, and that of its directory; `None` if it is neither a directory nor a link.
    found: Option<(Identity, Identity)>,
    name: Vec<u8>,
    /// Whether its name has become a user's place by this.
    is_noted: bool,
}

/// The way in which a file leaves its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It no longer exists.
    Removed,
    /// It was renamed.
    Moved,
}

impl Displaced {
    /// Examines the file at `place`. If it is a directory or link of the user's, its name becomes a user's place; the
    /// caller must then hold the name order exclusively.
    pub(crate) fn from(worker: &Worker, place: &ResolvedName) -> Result<Self, Stop> {
        let name = place.name.to_bytes().to_vec();
        let found = match kind_of(place.directory.as_fd(), &place.name) {
            Ok(FileType::Directory | FileType::Symlink) => {
                let found = identify(&place.directory, &place.name);
                found.and_then(|found| Ok((found, identify(&place.directory, c"")?))).ok()
            }
            Ok(_) | Err(_) => None,
        };
        let known = &worker.broker.known;
        let is_noted = match &found {
            Some((found, holder)) if !known.is_ours(found) => {
                // If two calls take it away at once, one of them fails and takes its note back.
                worker.must_be_alone()?;
                known.add_name(holder.clone(), &name)?
            }
            Some(_) | None => false,
        };
        Ok(Self { found, name, is_noted })
    }

    /// The file has left its place.
    pub(crate) fn finish(self, broker: &Broker, how: Departure) {
        if let (Departure::Removed, Some((found, _))) = (how, self.found) {
            broker.known.forget(&found);
        }
    }

    /// The file has not left its place.
    pub(crate) fn undo(self, broker: &Broker) {
        if let (true, Some((_, holder))) = (self.is_noted, self.found) {
            broker.known.remove_name(&holder, &self.name);
        }
    }
}

impl Broker {
    /// Makes user's places of the targets of the user's dangling links: of the first missing name on the way.
    pub(crate) fn note_leading_nowhere(&self, ends: &[PathBuf]) -> io::Result<()> {
        if ends.is_empty() {
            return Ok(());
        }
        let _nobody_else = self.order.alone()?;
        for end in ends {
            let mut way = end.ancestors().zip(end.ancestors().skip(1));
            let found = way.find_map(|(below, holder)| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let holder = openat(CWD, holder, flags, Mode::empty()).ok()?;
                Some((identify(holder, c"").ok()?, below.file_name()?.as_bytes().to_vec()))
            });
            // A target elsewhere is out of reach for commands as well.
            if let Some((holder, name)) = found {
                self.known.add_name(holder, &name)?;
            }
        }
        Ok(())
    }
}
