//! Files that are judged by their content.
//!
//! A judged file is put in place as a fresh copy that no other process has ever had open: the writer may still hold the
//! original open, or have it mapped, and could change it after the judgement.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use portcullis_exec_surface::git::{self, Content, Judgement};
use portcullis_exec_surface::{Change, Rule, completed};
use rustix::io::Errno;

use crate::broker::Broker;
use crate::judge::ask_about;
use crate::outcome::{CallResult, Outcome, Stop};
use crate::pending::PendingCall;
use crate::repository::{self, Examiner, read};
use crate::resolved_name::ResolvedName;
use crate::worker::Worker;

/// The longest text in a question, which is kept until the answer.
const ASKED_BYTES: usize = 64 << 10;

impl Broker {
    /// Returns true if a text may replace the content at a path.
    pub(crate) fn is_harmless(
        &self,
        content: Content,
        path: &Path,
        (previous, text): (Option<&[u8]>, &[u8]),
    ) -> bool {
        self.site(|site| git::judge(content, path, previous, text, site)) == Judgement::Harmless
    }

    /// Judges a file that is to get the name `new`, and replaces it by a copy.
    pub(crate) fn install(
        &self,
        pending: &PendingCall,
        (rule, content): (&'static Rule, Content),
        old: &ResolvedName,
        new: &ResolvedName,
    ) -> Result<(), Stop> {
        let text = self.permitted_text(pending, (rule, content), old, new)?;
        Ok(self.replace_by_copy(old.directory.as_fd(), &old.name, &text)?)
    }

    /// Returns the text of the file `old`, if it may get the name `new`.
    fn permitted_text(
        &self,
        pending: &PendingCall,
        (rule, content): (&'static Rule, Content),
        old: &ResolvedName,
        new: &ResolvedName,
    ) -> Result<Vec<u8>, Stop> {
        let text = read(old.directory.as_fd(), &old.name, content)?.ok_or(Errno::NOENT)?;
        let previous = read(new.directory.as_fd(), &new.name, content)?;
        let judgement = self.site(|site| git::judge(content, &new.path, previous.as_deref(), &text, site));
        permit_judged(pending, &judgement, (rule, &text), new)?;
        Ok(text)
    }

    /// Replaces a name by a new file with this text.
    pub(crate) fn replace_by_copy(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        text: &[u8],
    ) -> Result<(), Errno> {
        repository::replace_by_copy(self.processes.own_descriptors(), directory, name, text)
    }

    /// Gives a file without a name its name.
    pub(crate) fn give_name(
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
    /// Makes a copy of the file `old` in place of a hard link `new` to it, through which it could be written unjudged.
    ///
    /// libgit2 gives its files their names by a link, and then removes the former name.
    pub(crate) fn copy_in_place_of_link(
        &self,
        pending: &PendingCall,
        judged: (&'static Rule, Content),
        (old, new): (&ResolvedName, &ResolvedName),
    ) -> CallResult {
        let text = self.broker.permitted_text(pending, judged, old, new)?;
        self.check_still_waiting(pending)?;
        self.record(pending, new)?;
        let (from, to) = (old.directory.as_fd(), new.directory.as_fd());
        let copy = repository::copy(from, &old.name, &text, to)?;
        self.broker.give_name(copy.as_fd(), to, &new.name)?;
        Ok(Outcome::SUCCESS)
    }

    /// Examines a directory that a change makes a repository, as if it were one already.
    pub(crate) fn examine(&self, directory: &Path, part: &ResolvedName) -> Result<(), Stop> {
        self.must_be_alone()?;
        Ok(self.broker.look_into(directory, part.directory.as_fd())?)
    }

    /// As [`Self::examine`], for the content of the directory `old` when it becomes the part `new` of a repository.
    pub(crate) fn examine_part(&self, old: &ResolvedName, new: &ResolvedName) -> Result<(), Stop> {
        let completed = self.broker.site(|site| completed(&new.path, Change::MoveTree, site));
        let Some(repository) = completed else { return Ok(()) };
        self.must_be_alone()?;
        let part = (old.directory.as_fd(), old.name.as_c_str());
        Ok(self.broker.examiner().examine_part(&repository, part, &new.path)?)
    }
}

impl Broker {
    /// Examines the directory `holder`, whose path is `directory`, as if it were a repository. The caller holds the
    /// name order exclusively.
    pub(crate) fn look_into(&self, directory: &Path, holder: BorrowedFd<'_>) -> Result<(), Errno> {
        self.examiner().examine(directory, holder)
    }
}

/// Lets a judged text get the name `new`, or asks the user about it.
pub(crate) fn permit_judged(
    pending: &PendingCall,
    judgement: &Judgement,
    (rule, text): (&'static Rule, &[u8]),
    new: &ResolvedName,
) -> Result<(), Stop> {
    match judgement {
        Judgement::Harmless => Ok(()),
        Judgement::Asks(_) if text.len() <= ASKED_BYTES => {
            let reason = judgement.reason().unwrap_or_default();
            ask_about(pending, &Change::Install.into(), new, rule.id, Some((text.to_owned(), reason)))
        }
        Judgement::Asks(_) | Judgement::Unreadable(_) => Err(Errno::ACCESS.into()),
    }
}
