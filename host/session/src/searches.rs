//! Listing and searching: results contain no file that must not be read, not even its name.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_approvals::Cancel;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, SearchQuery,
};
use portcullis_decision::rules::Caller;
use portcullis_decision::{AnsweredBy, Decision, Effect, Mode};
use portcullis_file_gate::{
    FileError, FindQuery, Flow, FoundName, GrepQuery, Inode, Limits, Line, Located, Purpose, SearchEnd,
    SearchError, SearchGuard,
};
use portcullis_session_sandbox::kept_back::KeptBack;

use crate::authorized::Granted;
use crate::effective_policy::EffectivePolicy;
use crate::files::{FileCall, FileFailure, located, outcome_text};
use crate::paths;
use crate::session::Session;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: OsString,
    /// Its kind, links followed; [`PathKind::Missing`] for a dangling link or a hidden target.
    pub kind: PathKind,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchFailure {
    /// It was not allowed, or the path does not exist.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// It failed.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// Lists a directory, sorted by the bytes of the names.
///
/// # Errors
/// When it is not allowed, is not a directory, or has more names than the limit.
pub fn list(session: &Session, call: FileCall<'_>) -> Result<Vec<Listed>, FileFailure> {
    let effective = session.effective_policy();
    let (located, granted, guard) = searchable(session, &effective, call, FileOperation::List)?;
    let limits = Limits::default();
    let place = located.canonical_text().to_owned();
    let top = located.canonical().to_owned();
    let mut keep = |path: &Path, kind| guard.may_enter(path, kind) && guard.may_show(path, kind);
    let listing = effective.gate.list(located, granted.permit, limits, &mut keep);
    session.outcome(&granted.request, &outcome_text(&listing));
    let listing = listing?;
    if listing.truncated {
        return Err(FileError::TooManyNames { path: place, limit: limits.entries }.into());
    }
    let listed = |entry: portcullis_file_gate::Entry| {
        let is_link = entry.kind == PathKind::Symlink;
        let kind = if is_link { guard.behind(&top.join(&entry.name)) } else { entry.kind };
        Listed { name: entry.name, kind }
    };
    let mut names: Vec<Listed> = listing.entries.into_iter().map(listed).collect();
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(names)
}

/// Finds names below a directory.
///
/// # Errors
/// When it is not allowed, or the path or the query is invalid.
pub fn find(
    session: &Session,
    call: FileCall<'_>,
    query: &FindQuery,
    tell: &mut dyn FnMut(&FoundName<'_>) -> Flow,
) -> Result<SearchEnd, SearchFailure> {
    let effective = session.effective_policy();
    let operation = FileOperation::Search(SearchQuery { pattern: query.glob.clone(), glob: None });
    let (located, granted, guard) = searchable(session, &effective, call, operation)?;
    let found = effective.gate.find(located, granted.permit, query, &guard, tell);
    session.outcome(&granted.request, &outcome_text(&found));
    Ok(found?)
}

/// Finds lines in a file, or in the files below a directory. `begin` gets the kind of the starting path.
///
/// # Errors
/// As for [`find`].
pub fn grep(
    session: &Session,
    call: FileCall<'_>,
    query: &GrepQuery,
    begin: &mut dyn FnMut(PathKind),
    tell: &mut dyn FnMut(&Line<'_>) -> Flow,
) -> Result<SearchEnd, SearchFailure> {
    let effective = session.effective_policy();
    let search = SearchQuery { pattern: query.pattern.clone(), glob: query.glob.clone() };
    let (located, granted, guard) = searchable(session, &effective, call, FileOperation::Search(search))?;
    begin(located.kind());
    let found = effective.gate.grep(located, granted.permit, query, &guard, tell);
    session.outcome(&granted.request, &outcome_text(&found));
    Ok(found?)
}

/// Locates the start of a search and authorizes the search.
fn searchable<'a>(
    session: &'a Session,
    effective: &'a Arc<EffectivePolicy>,
    call: FileCall<'a>,
    operation: FileOperation,
) -> Result<(Located, Granted, Guard<'a>), FileFailure> {
    let (located, authorized) = located(session, effective, call, Purpose::Existing, operation)?;
    let covered = covered(effective, &located, &authorized.decision);
    let granted = authorized.granted()?;
    let is_judged =
        |member: &portcullis_decision::Member| member.mode != Mode::Observe && member.policy.handles().file;
    let judged = session.basis().chain.members.iter().any(is_judged);
    let kept_back = OnceCell::new();
    Ok((located, granted, Guard { session, effective, cancel: call.cancel, covered, judged, kept_back }))
}

/// Returns policy and rule of the questions that permission for the search also answers.
///
/// The same rule asks the same about all paths below.
fn covered(effective: &EffectivePolicy, located: &Located, decision: &Decision) -> Vec<(String, String)> {
    let mut covered = Vec::new();
    if decision.answered_by() != AnsweredBy::Nothing {
        covered.push((decision.policy().to_owned(), decision.cause().rule.clone()));
    }
    let ruling = effective.rules.file(located.canonical(), FileRight::Read, Caller::Tool);
    if ruling.effect == Effect::Ask {
        covered.push((ruling.policy, ruling.rule));
    }
    covered
}

/// Filters files that must not be read out of a search.
struct Guard<'a> {
    session: &'a Session,
    effective: &'a EffectivePolicy,
    cancel: &'a Cancel,
    /// Policy and rule of the questions that are answered.
    covered: Vec<(String, String)>,
    /// Whether policies decide about single files in addition to their rules.
    judged: bool,
    /// Files that must not be read under any name; searched on first use.
    kept_back: OnceCell<KeptBack>,
}

impl SearchGuard for Guard<'_> {
    fn may_enter(&self, path: &Path, _kind: PathKind) -> bool {
        let answer = self.effective.rules.answer(path, FileRight::Read, Caller::Tool);
        self.allows(answer.effect, answer.policy, answer.rule)
    }

    fn may_show(&self, path: &Path, kind: PathKind) -> bool {
        if !self.judged {
            return true;
        }
        let context = &self.session.setup.context;
        let given = portcullis_decision::path_text::encode(path);
        let action = Action::File(FileAccess {
            path: paths::reference(context, &given, path, path, kind),
            operation: if kind == PathKind::Directory { FileOperation::List } else { FileOperation::Read },
            facts: FileFacts::default(),
        });
        let decision = self.session.decide(&self.session.request(Origin::Agent, action));
        self.allows(decision.effect(), decision.policy(), &decision.cause().rule)
    }

    fn may_read_linked(&self, file: Inode) -> bool {
        let find = || KeptBack::from_tools(&self.effective.rules, &self.session.setup.own);
        !self.kept_back.get_or_init(find).holds(file)
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

impl Guard<'_> {
    fn allows(&self, effect: Effect, policy: &str, rule: &str) -> bool {
        match effect {
            Effect::Allow => true,
            Effect::Ask => self.covered.iter().any(|(by, of)| by == policy && of == rule),
            Effect::Deny => false,
        }
    }

    /// Returns the kind of a link's target.
    ///
    /// A hidden target counts as missing, so that a link does not reveal which files exist elsewhere.
    fn behind(&self, link: &Path) -> PathKind {
        let Ok(located) = self.effective.gate.locate(link, Purpose::Existing) else {
            return PathKind::Missing;
        };
        let (path, kind): (PathBuf, _) = (located.canonical().to_owned(), located.kind());
        if self.may_enter(&path, kind) { kind } else { PathKind::Missing }
    }
}
