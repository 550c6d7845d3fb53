//! Former versions that are put beside what has their name now.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};

use super::attributes::give;
use super::{Stop, Undoer};
use crate::disk::{self, Spot, look};
use crate::interruption;
use crate::plan::Why;
use crate::recorder::Place;
use crate::state::State;

const BESIDE: &str = "portcullis-old";
/// The longest name that file systems have, in bytes.
const LONGEST_NAME: usize = 255;
/// How many former versions can be beside one name.
const BESIDES: u32 = 10_000;

impl Undoer<'_> {
    /// Puts a former version beside the present one, under a name that is free; returns its path. If its directory is
    /// gone or something else, it goes to a directory beside that, under its own name.
    pub(super) fn put_beside(&mut self, path: &Path, former: &State) -> io::Result<PathBuf> {
        let sheltered = self.shelter(path)?;
        let spot = disk::spot(&sheltered)?;
        for number in 0..BESIDES {
            let beside = numbered(&sheltered, number, sheltered != path);
            let name = beside.file_name().unwrap_or_default();
            let c_name = CString::new(name.as_bytes())?;
            if !look(&spot.directory, &c_name)?.is_absent() {
                continue;
            }
            let place = Place { directory: &spot.directory, name: c_name.as_c_str(), path: &beside };
            self.recorder.before(self.call, place)?;
            self.reaches(&beside, None)?;
            match self.make_beside(&spot, &c_name, former) {
                Ok(()) => {
                    let _unwritten = self.recorder.left_so_far(self.call, &beside, None);
                    return Ok(beside);
                }
                // Somebody was faster.
                Err(Stop::Left(Why::Occupied)) => {}
                Err(Stop::Failed(error)) => {
                    // On a full disk the unfinished copy must not stay.
                    let _gone = unlinkat(&spot.directory, &c_name, AtFlags::empty());
                    return Err(error);
                }
                Err(Stop::Left(_)) => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn make_beside(&self, spot: &Spot, name: &CStr, former: &State) -> Result<(), Stop> {
        match former {
            State::File(file) => {
                let flags =
                    OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                interruption::point();
                let open = openat(&spot.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
                // What is put beside is for reading; attributes that cannot be set are not missed there.
                self.fill(&open, file, None).map(drop)
            }
            State::Link { target, owner } => {
                symlinkat(target, &spot.directory, name)?;
                give(&spot.directory, name, *owner);
                Ok(())
            }
            State::Absent | State::Directory(_) | State::Special { .. } => Err(Stop::Left(Why::Changed)),
        }
    }

    /// Returns the path beside which a former version of `path` can be put: itself if its directory is there, and
    /// otherwise a path below a directory that is made beside the first name on the way that is none.
    fn shelter(&mut self, path: &Path) -> io::Result<PathBuf> {
        let is_directory = |path: &Path| matches!(disk::look_at(path), Ok(State::Directory(_)));
        let directory = path.parent().ok_or(io::ErrorKind::NotFound)?;
        if directory.parent().is_none() || is_directory(directory) {
            return Ok(path.to_owned());
        }
        // The topmost one that is missing or no directory; never the project itself or anything around it.
        let missing = directory.ancestors().take_while(|around| !is_directory(around)).last();
        let is_gone = || io::Error::new(io::ErrorKind::NotFound, "the project directory is not there");
        let top = missing.filter(|top| !self.project.starts_with(top)).ok_or_else(is_gone)?;
        let rest = path.strip_prefix(top).map_err(io::Error::other)?;
        let mut made = match self.shelters.get(top) {
            Some(made) => made.clone(),
            None => {
                let made = self.make_shelter(top)?;
                self.shelters.insert(top.to_owned(), made.clone());
                made
            }
        };
        for component in rest.parent().into_iter().flat_map(Path::components) {
            made.push(component);
            let plain = made.clone();
            // A former version of a file may have the name already.
            for number in 0..BESIDES {
                match disk::look_at(&made)? {
                    State::Directory(_) => break,
                    State::Absent => {
                        let spot = disk::spot(&made)?;
                        self.before_anything(&spot, &made)?;
                        mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
                        break;
                    }
                    State::File(_) | State::Link { .. } | State::Special { .. } => {
                        made = numbered(&plain, number, false);
                    }
                }
            }
        }
        Ok(made.join(path.file_name().unwrap_or_default()))
    }

    fn make_shelter(&self, top: &Path) -> io::Result<PathBuf> {
        for number in 0..BESIDES {
            let made = numbered(top, number, false);
            let spot = disk::spot(&made)?;
            if look(&spot.directory, &spot.name)?.is_absent() {
                self.before_anything(&spot, &made)?;
                mkdirat(&spot.directory, &spot.name, Mode::RWXU)?;
                return Ok(made);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Returns the path of a former version: with an ending, and a number after the first; `is_alone` if the first needs
/// none of both. A name that would be too long with it is cut.
fn numbered(path: &Path, number: u32, is_alone: bool) -> PathBuf {
    let ending = match number {
        0 if is_alone => return path.to_owned(),
        0 => format!(".{BESIDE}"),
        number => format!(".{BESIDE}-{number}"),
    };
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut length = name.len().min(LONGEST_NAME.saturating_sub(ending.len()));
    // Not in the middle of a character.
    while length < name.len() && name.get(length).is_some_and(|byte| byte & 0xc0 == 0x80) {
        length -= 1;
    }
    let name = [name.get(..length).unwrap_or_default(), ending.as_bytes()].concat();
    path.with_file_name(OsString::from_vec(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_a_character_begins() {
        let numbered = |name: &str, number| numbered(Path::new(name), number, false);
        assert_eq!(numbered("d/f", 0), Path::new("d/f.portcullis-old"));
        assert_eq!(numbered("d/f", 12), Path::new("d/f.portcullis-old-12"));
        for name in ["a".repeat(255), "ü".repeat(127), "\u{1f600}".repeat(63)] {
            let cut = numbered(&name, 3);
            let text = cut.to_str().expect("whole characters");
            assert!(text.len() > 250 && text.len() <= 255, "{text}");
            assert!(name.starts_with(text.strip_suffix(".portcullis-old-3").expect("an ending")));
        }
    }
}
