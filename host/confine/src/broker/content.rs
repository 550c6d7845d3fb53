//! Files that are judged by what is in them.
//!
//! What has been judged is put in place as a copy that nobody else has ever had open: whoever wrote the text may
//! still hold its file, or have it mapped, and could change it after it was looked at.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use portcullis_names::git::{self, Content, Judgement};
use portcullis_names::{Change, Rule, completed};
use rustix::io::Errno;

use super::Broker;
use super::judge::ask_about;
use super::resolve::Place;
use super::worker::{Stop, Turn, Worker};
use crate::repository::{self, Examiner, read};

/// The longest text that is asked about: it is kept until there is an answer.
const ASKED_BYTES: usize = 64 << 10;

impl Broker {
    /// Whether a text may stand at a path in place of what is there.
    pub(super) fn is_harmless(
        &self,
        content: Content,
        path: &Path,
        (previous, text): (Option<&[u8]>, &[u8]),
    ) -> bool {
        self.site(|site| git::judge(content, path, previous, text, site)) == Judgement::Harmless
    }

    /// Judges a file that is to get the name `new`, and leaves a copy of it in its own place.
    pub(super) fn install(
        &self,
        turn: &Turn,
        (rule, content): (&'static Rule, Content),
        old: &Place,
        new: &Place,
    ) -> Result<(), Stop> {
        let text = read(old.directory.as_fd(), &old.name, content)?.ok_or(Errno::NOENT)?;
        let previous = read(new.directory.as_fd(), &new.name, content)?;
        let judgement = self.site(|site| git::judge(content, &new.path, previous.as_deref(), &text, site));
        permit_judged(turn, &judgement, (rule, &text), new)?;
        Ok(self.replace_by_copy(old.directory.as_fd(), &old.name, &text)?)
    }

    /// Puts a new file with this text in the place of a name.
    pub(super) fn replace_by_copy(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        text: &[u8],
    ) -> Result<(), Errno> {
        repository::replace_by_copy(self.processes.own_descriptors(), directory, name, text)
    }

    /// Gives a file without a name one.
    pub(super) fn give_name(
        &self,
        file: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<(), Errno> {
        repository::give_name(self.processes.own_descriptors(), file, directory, name)
    }

    fn examiner(&self) -> Examiner<'_> {
        Examiner {
            roots: &self.roots,
            lifted: &self.lifted,
            own_descriptors: self.processes.own_descriptors(),
        }
    }
}

impl Worker {
    /// Looks at what lies in a directory that a change makes a repository, as if it were one already.
    pub(super) fn examine(&self, directory: &Path, part: &Place) -> Result<(), Stop> {
        self.must_be_alone()?;
        Ok(self.broker.look_into(directory, part.directory.as_fd())?)
    }

    /// As [`Self::examine`], for what the directory `old` brings along as it becomes the part `new` of a repository.
    pub(super) fn examine_part(&self, old: &Place, new: &Place) -> Result<(), Stop> {
        let completed = self.broker.site(|site| completed(&new.path, Change::MoveTree, site));
        let Some(repository) = completed else { return Ok(()) };
        self.must_be_alone()?;
        let part = (old.directory.as_fd(), old.name.as_c_str());
        Ok(self.broker.examiner().examine_part(&repository, part, &new.path)?)
    }
}

impl Broker {
    /// Looks at what lies in the directory `holder`, which is called `directory`, as if it were a repository. Nobody
    /// else may do anything with names.
    pub(super) fn look_into(&self, directory: &Path, holder: BorrowedFd<'_>) -> Result<(), Errno> {
        self.examiner().examine(directory, holder)
    }
}

/// Lets a text that has been judged get the name `new`, or has the user asked about it.
pub(super) fn permit_judged(
    turn: &Turn,
    judgement: &Judgement,
    (rule, text): (&'static Rule, &[u8]),
    new: &Place,
) -> Result<(), Stop> {
    match judgement {
        Judgement::Harmless => Ok(()),
        Judgement::Asks(_) if text.len() <= ASKED_BYTES => {
            let reason = judgement.reason().unwrap_or_default();
            ask_about(turn, &Change::Install.into(), new, rule.id, Some((text.to_owned(), reason)))
        }
        Judgement::Asks(_) | Judgement::Unreadable(_) => Err(Errno::ACCESS.into()),
    }
}
