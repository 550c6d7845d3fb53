//! Judges a change of a name: by the session's rules, and by the use of the name in the user's other programs.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use portcullis_exec_surface::git::Content;
use portcullis_exec_surface::{
    Change, Class, EXAMINED, GIT_POINTERS, Rule, Site, Treatment, class_under, completed, is_link_of_git,
    is_linked, protected_name,
};
use portcullis_sandbox::{CallDetails, FileId, Judgement, NameAccess};
use rustix::fs::{AtFlags, FileType, fstat, major, minor, statat};
use rustix::io::{self, Errno};

use crate::approval::Question;
use crate::broker::Broker;
use crate::identity::{Moving, identify};
use crate::outcome::{RuleRefusal, Stop};
use crate::pending::PendingCall;
use crate::repository;
use crate::resolved_name::{ResolvedName, has_packages, normalize};
use crate::shown_repository::is_readable_repository;
use crate::worker::Worker;

/// A change that may be made, possibly under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Unconditionally.
    Plain,
    /// If the new content of the file is harmless.
    ByContent(&'static Rule, Content),
    /// If every name below it is allowed there.
    Below,
}

/// A change of a name, and its description for a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameChange {
    pub(crate) change: Change,
    pub(crate) deed: CallDetails,
}

impl NameChange {
    pub(crate) fn new(change: Change, deed: CallDetails) -> Self {
        Self { change, deed }
    }

    fn attempt(&self) -> NameAccess {
        match self.change {
            Change::MakeDirectory => NameAccess::MakeDirectory,
            Change::Remove | Change::MoveAway => NameAccess::Remove,
            Change::Write
            | Change::Install
            | Change::Symlink
            | Change::MoveTree
            | Change::Special
            | Change::Link
            | Change::Metadata => NameAccess::Write,
        }
    }
}

impl From<Change> for NameChange {
    fn from(change: Change) -> Self {
        let deed = if change == Change::Special { CallDetails::Special } else { CallDetails::Plain };
        Self { change, deed }
    }
}

/// The rule on files that have hard links.
pub(crate) const HARD_LINKS: &str = "host.hard-links";

/// The rule on symbolic links at names below which other rules restrict.
pub(crate) const SYMBOLIC_LINKS: &str = "host.symbolic-links";

/// A name that no rule mentions.
const ANY_NAME: &str = "\u{1}";

/// Names that make a repository of their directory.
const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl Broker {
    /// Calls `ask` with the [`Site`] of this session. No name changes meanwhile, so a path keeps its meaning.
    pub(crate) fn site<T>(&self, ask: impl FnOnce(&Site<'_>) -> T) -> T {
        let was_there = |path: &Path| self.removed.holds(path);
        let is_shown_repository = |path: &Path| self.is_shown_repository(path);
        repository::site(&self.roots, |site| {
            ask(&Site {
                homes: &self.homes,
                was_there: &was_there,
                links: &self.links,
                is_shown_repository: &is_shown_repository,
                ..*site
            })
        })
    }

    /// Returns true if the path is a repository of the user, all of which commands can read: this process sees the same
    /// mounts as they do.
    fn is_shown_repository(&self, path: &Path) -> bool {
        let is_enforced_by_mounts = self.places.is_none() && !self.reads.are_judged();
        let is_whole = !self.hidden.iter().any(|hidden| hidden.starts_with(path));
        is_enforced_by_mounts && is_whole && !self.names.is_own(path) && is_readable_repository(path)
    }

    /// Returns the judgement of the session's rules on reading a name.
    pub(crate) fn judge_reading(&self, path: &Path) -> Judgement {
        if !self.reads.are_judged() {
            return Judgement::Free;
        }
        // Without mounts, commands use the session's temporary directory by its real path, which lies in a directory
        // that the rules hide. The rules know it as `/tmp`.
        let below = self.places.as_ref().and_then(|places| path.strip_prefix(places.temp()).ok());
        match below {
            Some(rest) => self.names.judge_reading(&Path::new("/tmp").join(rest)),
            None => self.names.judge_reading(path),
        }
    }

    /// Returns true for a file that must not be read by any of its names.
    pub(crate) fn is_kept_back(&self, file: &OwnedFd) -> io::Result<bool> {
        if self.kept_back.is_empty() {
            return Ok(false);
        }
        let status = fstat(file)?;
        let device = (major(status.st_dev), minor(status.st_dev));
        Ok(self.kept_back.contains(&FileId { device, inode: status.st_ino }))
    }

    /// Returns true if a link at `path` to `target` would escape restrictions that rules place on names below `path`.
    fn loosens(&self, path: &Path, target: &Path) -> bool {
        let holder = path.parent().unwrap_or(Path::new("/"));
        let aim = normalize(&holder.join(target));
        // Behind a symbolic link `..` may not lead to the lexical parent.
        let is_straight = target.components().skip_while(|part| !is_name(*part)).all(is_name);
        let keeps = |other: &Path| self.names.restricts_alike_below(path, other);
        // If the target is outside the judged places, commands cannot write there, and only names read through the link
        // matter.
        !(is_straight && keeps(&aim) || !self.is_judged(&aim) && keeps(&holder.join(ANY_NAME)))
    }

    /// Notes that the file at `place` was removed, if creating its name again would be asked about.
    pub(crate) fn note_removed(&self, place: &ResolvedName) {
        if self.site(|site| protected_name(&place.path, site)).is_some() {
            self.removed.note(&place.directory, &place.name);
        }
    }

    pub(crate) fn holds(&self, rule: &Rule) -> bool {
        !self.lifted.iter().any(|lifted| lifted == rule.id)
    }
}

impl Worker {
    /// Judges a change of a name, and returns [`Stop::Ask`] if the user must be asked.
    pub(crate) fn permit(
        &self,
        pending: &PendingCall,
        doing: impl Into<NameChange>,
        place: &ResolvedName,
    ) -> Result<Allowed, Stop> {
        self.permit_moving(pending, &doing.into(), place, None)
    }

    /// As [`Worker::permit`], for a name in a directory that is `moving`, or for that directory itself.
    pub(crate) fn permit_moving(
        &self,
        pending: &PendingCall,
        doing: &NameChange,
        place: &ResolvedName,
        moving: Option<&Moving<'_>>,
    ) -> Result<Allowed, Stop> {
        match self.broker.names.judge(&place.path) {
            Judgement::Free => {}
            Judgement::Asked => ask(pending, doing, place, "")?,
            Judgement::Refused => return Err(rule_refusal(doing, place, "")),
        }
        if self.broker.names.is_plain(&place.path) && !self.stays_plain(doing) {
            return Err(rule_refusal(doing, place, ""));
        }
        self.permit_names_below(pending, doing, place)?;
        // No other program of the user finds the name there.
        if self.broker.names.is_own(&place.path) {
            return Ok(Allowed::Plain);
        }
        // Two changes that make a repository together must be judged one after the other.
        if may_complete(&place.path) {
            self.must_be_alone()?;
        }
        // A rule that is disabled, or leaves the name to the command, must not hide another rule on the same name.
        let holds = |rule: &'static Rule| {
            let is_said = || pending.is_allowed((doing.attempt(), &doing.deed), &place.path, rule.id, None);
            let is_left = || self.is_own(pending, place, moving) || is_said();
            let is_of_git = || matches!(&doing.deed, CallDetails::Symlink(target) if is_link_of_git(&place.path, target.as_bytes()));
            self.broker.holds(rule)
                && !(rule.anywhere == Treatment::Asked && is_left())
                && !(rule == &GIT_POINTERS && is_of_git())
        };
        // This applies even if the change itself is judged: it can give a meaning to other files that are already
        // there.
        if let Some(directory) = self.broker.site(|site| completed(&place.path, doing.change, site)) {
            self.examine(&directory, place)?;
        }
        match self.broker.site(|site| class_under(&place.path, doing.change, site, &holds)) {
            Class::Free | Class::Completes(_) => Ok(Allowed::Plain),
            Class::Walk => Ok(Allowed::Below),
            Class::Judged(rule, content) => Ok(Allowed::ByContent(rule, content)),
            Class::Asked(rule) => ask(pending, doing, place, rule.id).map(|()| Allowed::Plain),
            Class::Denied(rule) => Err(rule_refusal(doing, place, rule.id)),
        }
    }

    /// As [`Worker::permit`], for changes without content that could be judged.
    pub(crate) fn permit_plain(
        &self,
        pending: &PendingCall,
        doing: impl Into<NameChange>,
        place: &ResolvedName,
    ) -> Result<(), Stop> {
        self.plain(pending, &doing.into(), place, None)
    }

    /// As [`Worker::permit_plain`], for a `moving` directory.
    pub(crate) fn plain(
        &self,
        pending: &PendingCall,
        doing: &NameChange,
        place: &ResolvedName,
        moving: Option<&Moving<'_>>,
    ) -> Result<(), Stop> {
        match self.permit_moving(pending, doing, place, moving)? {
            Allowed::Plain => Ok(()),
            Allowed::ByContent(rule, _) => ask(pending, doing, place, rule.id),
            Allowed::Below => Err(Errno::ACCESS.into()),
        }
    }

    /// Asks the user before a file with hard links is written: the write changes the file under all its names, wherever
    /// they are.
    pub(crate) fn permit_shared(&self, pending: &PendingCall, place: &ResolvedName) -> Result<(), Stop> {
        let status = match statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
            // The call is about to create it.
            Err(Errno::NOENT) => return Ok(()),
            status => status?,
        };
        let is_shared =
            FileType::from_raw_mode(status.st_mode) == FileType::RegularFile && status.st_nlink > 1;
        let is_lifted = || self.broker.lifted.iter().any(|lifted| lifted == HARD_LINKS);
        if !is_shared || self.broker.linked.holds(&place.directory, &place.name) || is_lifted() {
            return Ok(());
        }
        ask(pending, &Change::Write.into(), place, HARD_LINKS)
    }

    /// Asks the user about a symbolic link at a name below which rules restrict: the restrictions would not apply to
    /// its target.
    fn permit_names_below(
        &self,
        pending: &PendingCall,
        doing: &NameChange,
        place: &ResolvedName,
    ) -> Result<(), Stop> {
        let CallDetails::Symlink(target) = &doing.deed else { return Ok(()) };
        if self.broker.loosens(&place.path, Path::new(target)) {
            ask(pending, doing, place, SYMBOLIC_LINKS)?;
        }
        Ok(())
    }

    /// Returns true if the name is a file or directory of its own after the change.
    fn stays_plain(&self, doing: &NameChange) -> bool {
        match &doing.deed {
            CallDetails::Symlink(_) | CallDetails::Special => false,
            CallDetails::LinkOf(old) => self.broker.names.is_plain(old),
            // No file moves there from elsewhere, see `rename`.
            CallDetails::Plain | CallDetails::LinkTo(_) | CallDetails::MoveOf(_) | CallDetails::MoveTo(_) => {
                true
            }
        }
    }

    /// Returns true if the directory that holds the protected name was made by the calling command: not `.vscode`
    /// itself, but the project that contains it.
    fn is_own(&self, pending: &PendingCall, place: &ResolvedName, moving: Option<&Moving<'_>>) -> bool {
        let Some(command) = self.broker.processes.command(&pending.caller) else { return false };
        // It does not matter who made the directory: the user's link leads there.
        if self.broker.site(|site| is_linked(&place.path, site)) {
            return false;
        }
        let protected = self.broker.site(|site| protected_name(&place.path, site));
        let levels = protected.map_or(0, |name| depth(&place.path) - depth(&name.holder) - 1);
        self.broker.known.holds(command, &place.directory, levels, moving)
            // In a user's place no directory counts as a command's own, even if a command made it.
            && !moving.is_some_and(|moving| moving.replaces)
            && !self.broker.known.cover(place, moving)
    }

    /// Returns true if a directory that the command did not make leaves a place where names under [`Treatment::Asked`]
    /// are free to the command: its content was never asked about.
    pub(crate) fn leaves_free_place(
        &self,
        pending: &PendingCall,
        old: &ResolvedName,
        new: &ResolvedName,
    ) -> bool {
        if has_packages(&new.path) {
            return false;
        }
        let Some(command) = self.broker.processes.command(&pending.caller) else { return true };
        let known = &self.broker.known;
        let is_own = |holder: &OwnedFd| known.holds(command, holder, 0, None);
        let is_free = has_packages(&old.path) || is_own(&old.directory);
        let is_one = || {
            let found = identify(&old.directory, &old.name);
            found.is_ok_and(|found| known.is_own(command, &found))
        };
        is_free && !is_own(&new.directory) && !is_one()
    }
}

/// Lets a change pass that the user has approved; otherwise returns the question.
pub(crate) fn ask(
    pending: &PendingCall,
    doing: &NameChange,
    place: &ResolvedName,
    rule: &'static str,
) -> Result<(), Stop> {
    ask_about(pending, doing, place, rule, None)
}

/// Like [`ask`], about a text, with the reason.
pub(crate) fn ask_about(
    pending: &PendingCall,
    doing: &NameChange,
    place: &ResolvedName,
    rule: &'static str,
    content: Option<(Vec<u8>, String)>,
) -> Result<(), Stop> {
    if pending.is_allowed(
        (doing.attempt(), &doing.deed),
        &place.path,
        rule,
        content.as_ref().map(|(text, _)| text.as_slice()),
    ) {
        return Ok(());
    }
    let (attempt, deed) = (doing.attempt(), doing.deed.clone());
    Err(Stop::Ask(Box::new(Question {
        attempt,
        deed,
        path: place.path.clone(),
        rule,
        content,
        reachable: None,
        outside: None,
    })))
}

/// Like [`ask`], for a change that makes the names in `reachable` reachable: an answer holds for these names only.
pub(crate) fn ask_about_reachable(
    pending: &PendingCall,
    doing: &NameChange,
    place: &ResolvedName,
    rule: &'static str,
    reachable: Vec<u8>,
) -> Result<(), Stop> {
    let (attempt, deed) = (doing.attempt(), doing.deed.clone());
    if pending.is_allowed((attempt, &deed), &place.path, rule, Some(&reachable)) {
        return Ok(());
    }
    let (path, reachable) = (place.path.clone(), Some(reachable));
    Err(Stop::Ask(Box::new(Question { attempt, deed, path, rule, content: None, reachable, outside: None })))
}

/// Returns the refusal of a call by a rule.
fn rule_refusal(doing: &NameChange, place: &ResolvedName, rule: &'static str) -> Stop {
    Stop::Refused(Box::new(RuleRefusal { attempt: doing.attempt(), path: place.path.clone(), rule }))
}

fn is_name(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

fn depth(path: &Path) -> usize {
    path.iter().count()
}

/// Returns true if a name takes part in making a directory a repository.
fn may_complete(path: &Path) -> bool {
    let is_examined = |name: &OsStr| EXAMINED.iter().any(|known| name.eq_ignore_ascii_case(known));
    let is_part = |name: &OsStr| PARTS.iter().any(|part| name.eq_ignore_ascii_case(part));
    path.iter().any(is_examined) || path.file_name().is_some_and(is_part)
}
