//! The names that the user's other programs execute, as a policy in force sees them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use portcullis_decision::facts::UNREADABLE;
use portcullis_decision::host_rules::{self, Surroundings};
use portcullis_decision::request::PathKind;
use portcullis_decision::{ContentVerdict, Decision, Fact, Grant, Request, Ruling};
use portcullis_exec_surface::git::{Content, Judgement, judge};
use portcullis_exec_surface::{
    Change, Class, NEW_DOT_FILES, Rule, Site, Treatment, class_under, completed, protected_name,
};
use portcullis_file_gate::{FileError, Gate, Identity, Limits, Located, Purpose};
use portcullis_session_sandbox::user_links::roots;

use crate::effective_policy::EffectivePolicy;
use crate::locate::locate;
use crate::setup::Settings;

/// Maximum length in bytes of a file that new content is compared with, the limit of the judge.
const LONGEST_JUDGED: u64 = 1 << 20;

/// New content that is judged before it is written.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The verdict; `None` if the decision does not depend on the content.
    pub(crate) verdict: Option<ContentVerdict>,
    /// The file that it was compared with; `None` if there is no file or the content does not matter.
    pub(crate) replaces: Option<Identity>,
}

impl Judged {
    /// Returns the fact for the request.
    pub(crate) fn facts(self) -> impl Iterator<Item = Fact> {
        self.verdict.map(Fact::Content).into_iter()
    }
}

/// The surroundings of names: the files that a policy in force shows, and the settings about them.
pub(crate) struct ExecSurface<'a> {
    effective: &'a EffectivePolicy,
    settings: Settings,
    roots: OnceCell<Vec<PathBuf>>,
}

impl<'a> ExecSurface<'a> {
    pub(crate) fn new(effective: &'a EffectivePolicy, settings: Settings) -> Self {
        Self { effective, settings, roots: OnceCell::new() }
    }

    /// Returns the directories in which the user's programs work.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        self.roots.get_or_init(|| roots(&self.settings))
    }

    /// Returns `decision`, tightened by the host's own rulings on `request`.
    pub(crate) fn tightened(&self, request: &Request, decision: Decision, grants: &[Grant]) -> Decision {
        self.with_surroundings(|surroundings| host_rules::tightened(request, decision, surroundings, grants))
    }

    /// Returns the ruling of the rules on names for `request`, if any applies.
    pub(crate) fn ruling(&self, request: &Request, grants: &[Grant]) -> Option<Ruling> {
        self.with_surroundings(|surroundings| host_rules::ruling_on_names(request, surroundings, grants))
    }

    fn with_surroundings<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let is_private = |path: &Path| self.is_private(path);
        let lifted = &self.settings.lifted;
        self.with_site(|site| work(&Surroundings { site: *site, lifted, is_private: &is_private }))
    }

    fn is_lifted(&self, rule: &str) -> bool {
        self.settings.lifted.iter().any(|lifted| lifted == rule)
    }

    /// Returns true if only this session sees the path.
    fn is_private(&self, path: &Path) -> bool {
        let base = self.effective.rules.base();
        let temp = &base.temp;
        let is_in = |root: &PathBuf| root.starts_with(temp) && path.starts_with(root);
        base.is_own(path) || path.starts_with(temp) && !self.roots().iter().any(is_in)
    }

    /// Returns the surroundings of paths from the settings and the user's links, without looking at the disk.
    fn bare_site(&self) -> Site<'_> {
        let site = Site::without_files(&self.settings.workspace, self.roots());
        Site { homes: &self.settings.homes, links: &self.effective.links.named, ..site }
    }

    /// Passes the surroundings of paths to `work`, with the files that the gate finds.
    fn with_site<T>(&self, work: impl FnOnce(&Site<'_>) -> T) -> T {
        let exists = |path: &Path| exists(&self.effective.gate, path);
        let is_link = |path: &Path| is_link(&self.effective.gate, path);
        work(&Site { exists: &exists, is_link: &is_link, ..self.bare_site() })
    }

    /// Judges `new`, the content to write to `located`, if the decision depends on content.
    pub(crate) fn judged(&self, located: &Located, new: &[u8]) -> Judged {
        if !self.is_judged(located.canonical()) {
            return Judged::default();
        }
        let limits = Limits { bytes: LONGEST_JUDGED, ..Limits::default() };
        match self.effective.gate.inspect(located, limits) {
            Ok(previous) => {
                let bytes = previous.as_ref().map(|previous| previous.bytes.as_slice());
                Judged {
                    verdict: self.content(located.canonical(), bytes, new),
                    replaces: previous.map(|previous| previous.identity),
                }
            }
            // The cause is not reported: the caller may have no right to learn it.
            Err(_) => {
                let reason = format!("{UNREADABLE}: the existing file cannot be read");
                Judged { verdict: Some(ContentVerdict::Unreadable(reason)), replaces: None }
            }
        }
    }

    /// Judges content for `located` that is too long to be judged, or cannot be read.
    pub(crate) fn unknown(&self, located: &Located) -> Judged {
        if !self.is_judged(located.canonical()) {
            return Judged::default();
        }
        let reason = format!("{UNREADABLE}: the new content is too long, or cannot be read");
        Judged { verdict: Some(ContentVerdict::Unreadable(reason)), replaces: None }
    }

    /// Returns the verdict on `new` at `path` in place of `previous`.
    ///
    /// `None` if the decision does not depend on content.
    pub(crate) fn content(&self, path: &Path, previous: Option<&[u8]>, new: &[u8]) -> Option<ContentVerdict> {
        self.with_site(|site| {
            let content = self.judged_as(path, site)?;
            let judgement = judge(content, path, previous, new, site);
            let reason = judgement.reason().unwrap_or_default();
            Some(match judgement {
                Judgement::Harmless => ContentVerdict::Harmless,
                Judgement::Asks(_) => ContentVerdict::Asks(reason),
                Judgement::Unreadable(_) => ContentVerdict::Unreadable(reason),
            })
        })
    }

    /// Returns true if the decision on `path` depends on its content.
    pub(crate) fn is_judged(&self, path: &Path) -> bool {
        self.with_site(|site| self.judged_as(path, site).is_some())
    }

    /// Returns the format in which the content of `path` is judged, if the decision depends on it.
    ///
    /// Other rules may ask about the name as well.
    fn judged_as(&self, path: &Path, site: &Site<'_>) -> Option<Content> {
        let holds = |rule: &'static Rule| rule.anywhere == Treatment::Judged && !self.is_lifted(rule.id);
        match class_under(path, Change::Write, site, &holds) {
            Class::Judged(_, content) => Some(content),
            Class::Free | Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_) => None,
        }
    }

    /// Returns the directory that becomes a repository when a file is created at `located`, if any.
    pub(crate) fn completed_by(&self, located: &Located) -> Option<PathBuf> {
        let made = located.missing_parents().into_iter().map(|path| (path, Change::MakeDirectory));
        let own = (located.canonical().to_owned(), Change::Write);
        let mut changes = std::iter::once(own).chain(made).filter(|(path, _)| !self.is_private(path));
        self.with_site(|site| changes.find_map(|(path, change)| completed(&path, change, site)))
    }

    /// Returns the place that one question about a change at `path` covers.
    ///
    /// `None` if the user's programs do not execute the name. The place is the name with all paths below it; for a new
    /// dot file, all new dot files in its directory.
    pub(crate) fn question_place(&self, path: &Path, rule: &str) -> Option<PathBuf> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let name = protected_name(path, &Site { exists: &exists, ..self.bare_site() })?;
        Some(if rule == NEW_DOT_FILES.id { name.holder } else { name.name })
    }
}

/// Returns true if this name is a symbolic link. A name that cannot be accessed counts as one.
fn is_link(gate: &Gate, path: &Path) -> bool {
    match locate(gate, path, Purpose::ForWriting) {
        Ok(located) => located.canonical() != path,
        Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => false,
        Err(_) => true,
    }
}

/// Returns true if this name exists, even as a dangling link. A name that cannot be accessed counts as existing.
fn exists(gate: &Gate, path: &Path) -> bool {
    match locate(gate, path, Purpose::ForWriting) {
        Ok(located) => located.kind() != PathKind::Missing || located.canonical() != path,
        Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => false,
        Err(_) => true,
    }
}
