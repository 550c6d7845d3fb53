//! Names that the user's other programs execute: what the rules on them add to a decision about a file.
//!
//! A rule on names restricts and never allows. Where the content decides, the request carries what it came to, as
//! the attribute [`CONTENT`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::Resolved;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::request::{Action, Attribute, FileOperation, PathKind};
use portcullis_decision::{Decision, Effect, Grant, GrantPattern, Request, Ruling, path_text};
use portcullis_file_gate::{FileError, Gate, Identity, Limits, Located, Purpose};
use portcullis_names::git::{Content, Judgement, judge};
use portcullis_names::{
    Anywhere, Change, Class, GIT_CONFIG, GIT_POINTERS, NEW_DOT_FILES, Rule, Site, class, class_under,
    completed, protected_name,
};

use crate::files::locate;
use crate::force::Force;
use crate::links::{HARD_LINKS, is_for_one_file};
use crate::session::Session;
use crate::user_links::UserLinks;

/// Name of the attribute that says what the content of one of git's own files came to: a JSON text, empty for
/// content that does nothing, else the reason to ask or, behind [`UNREADABLE`], to refuse.
pub(crate) const CONTENT: &str = "host:git-content";

/// Whose the rules on names are.
pub(crate) const HOST: &str = "host";

/// Begins the reason for content that nobody can judge.
const UNREADABLE: &str = "it cannot be judged";

/// Longest file that new content is compared with, in bytes: as long as the judge reads.
const LONGEST_JUDGED: u64 = 1 << 20;

/// Content that was judged before it is written.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// What is told of it with the request.
    pub(crate) attributes: Vec<Attribute>,
    /// The state of the file that it was compared with; none where there is no file, or nothing to judge.
    pub(crate) replaces: Option<Identity>,
}

impl Session {
    /// What the rules on names say of `request`; none when nothing.
    pub(crate) fn ruling_on_names(
        &self,
        request: &Request,
        force: &Force,
        grants: &[Grant],
    ) -> Option<Ruling> {
        let Action::File(access) = &request.action else { return None };
        let path = path_text::decode(&access.path.canonical)?;
        let (settings, roots) = (self.settings(), self.roots());
        let exists = |path: &Path| exists(&force.gate, path);
        let is_link = |path: &Path| is_link(&force.gate, path);
        let site = Site { exists: &exists, is_link: &is_link, ..bare_site(&settings, &roots, &force.links) };
        let own = changes(&path, access.path.kind, &access.operation);
        let made = path.ancestors().skip(1).map(|above| (above.to_owned(), Change::MakeDirectory));
        let made =
            made.filter(|_| own.iter().any(|(_, change)| *change == Change::Write)).collect::<Vec<_>>();
        let granted = |rule: &'static Rule| {
            let covers = |grant: &Grant| grant.covers(request) && may_be_granted(rule, &grant.pattern, &site);
            grants.iter().any(covers)
        };
        // One rule that is lifted or granted must not hide another that speaks of the same name.
        let holds = |rule: &'static Rule| {
            !(self.is_lifted(rule) || rule.anywhere == Anywhere::Asked && granted(rule))
        };
        let mut strictest: Option<Ruling> = None;
        for (path, change) in own.iter().chain(&made) {
            if self.is_private(path, force, &roots) {
                continue;
            }
            let Some(ruling) = ruling(class_under(path, *change, &site, &holds), request) else { continue };
            if strictest.as_ref().is_none_or(|known| ruling.effect > known.effect) {
                strictest = Some(ruling);
            }
        }
        strictest
    }

    /// Judges `new`, which is to be written to what was located, if the content decides there.
    pub(crate) fn judged(&self, force: &Force, located: &Located, new: &[u8]) -> Judged {
        if !self.is_judged(force, located.canonical()) {
            return Judged::default();
        }
        let limits = Limits { bytes: LONGEST_JUDGED, ..Limits::default() };
        match force.gate.inspect(located, limits) {
            Ok(previous) => {
                let bytes = previous.as_ref().map(|previous| previous.bytes.as_slice());
                Judged {
                    attributes: self.content(force, located.canonical(), bytes, new).into_iter().collect(),
                    replaces: previous.map(|previous| previous.identity),
                }
            }
            // Why, is told to nobody who may not even look there.
            Err(_) => {
                let reason = format!("{UNREADABLE}: what stands there cannot be read");
                Judged { attributes: vec![attribute(reason)], replaces: None }
            }
        }
    }

    /// What `new` comes to at `path` in place of `previous`; none where the content does not decide.
    pub(crate) fn content(
        &self,
        force: &Force,
        path: &Path,
        previous: Option<&[u8]>,
        new: &[u8],
    ) -> Option<Attribute> {
        let (settings, roots) = (self.settings(), self.roots());
        let exists = |path: &Path| exists(&force.gate, path);
        let is_link = |path: &Path| is_link(&force.gate, path);
        let site = Site { exists: &exists, is_link: &is_link, ..bare_site(&settings, &roots, &force.links) };
        let content = self.judged_as(path, &site)?;
        let reason = match judge(content, path, previous, new, &site) {
            Judgement::Harmless => String::new(),
            judgement @ (Judgement::Asks(_) | Judgement::Unreadable(_)) => {
                judgement.reason().unwrap_or_default()
            }
        };
        Some(attribute(reason))
    }

    pub(crate) fn is_judged(&self, force: &Force, path: &Path) -> bool {
        let (settings, roots) = (self.settings(), self.roots());
        let exists = |path: &Path| exists(&force.gate, path);
        let is_link = |path: &Path| is_link(&force.gate, path);
        let site = Site { exists: &exists, is_link: &is_link, ..bare_site(&settings, &roots, &force.links) };
        self.judged_as(path, &site).is_some()
    }

    /// What the content of `path` is read as, where that decides, whatever else is asked about the name.
    fn judged_as(&self, path: &Path, site: &Site<'_>) -> Option<Content> {
        let holds = |rule: &'static Rule| rule.anywhere == Anywhere::Judged && !self.is_lifted(rule);
        match class_under(path, Change::Write, site, &holds) {
            Class::Judged(_, content) => Some(content),
            Class::Free | Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_) => None,
        }
    }

    /// The directory that becomes a repository when a file is made where it was located; none where none does.
    pub(crate) fn completed_by(&self, force: &Force, located: &Located) -> Option<PathBuf> {
        let (settings, roots) = (self.settings(), self.roots());
        let exists = |path: &Path| exists(&force.gate, path);
        let is_link = |path: &Path| is_link(&force.gate, path);
        let site = Site { exists: &exists, is_link: &is_link, ..bare_site(&settings, &roots, &force.links) };
        let made = located.missing_parents().into_iter().map(|path| (path, Change::MakeDirectory));
        let own = (located.canonical().to_owned(), Change::Write);
        let is_seen_by_others = |path: &Path| !self.is_private(path, force, &roots);
        let mut changes = std::iter::once(own).chain(made).filter(|(path, _)| is_seen_by_others(path));
        changes.find_map(|(path, change)| completed(&path, change, &site))
    }

    fn is_lifted(&self, rule: &Rule) -> bool {
        self.settings().lifted.iter().any(|lifted| lifted == rule.id)
    }

    /// What one question about a change at `path` covers, if programs of the user's execute the name: the name with all
    /// below it; for new dot files, all of them in that directory.
    pub(crate) fn question_place(&self, path: &Path, rule: &str) -> Option<PathBuf> {
        let (settings, roots, links) = (self.settings(), self.roots(), self.user_links());
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let site = Site { exists: &exists, ..bare_site(&settings, &roots, &links) };
        let name = protected_name(path, &site)?;
        Some(if rule == NEW_DOT_FILES.id { name.holder } else { name.name })
    }

    /// Where the user's programs work.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        roots(&self.settings())
    }

    /// The user's links as they were when the session began.
    pub(crate) fn user_links(&self) -> Arc<UserLinks> {
        Arc::clone(&self.force().links)
    }

    /// Whether only this session sees what lies there.
    pub(crate) fn is_private(&self, path: &Path, force: &Force, roots: &[PathBuf]) -> bool {
        let temp = &force.rules.base().temp;
        path.starts_with(temp) && !roots.iter().any(|root| root.starts_with(temp) && path.starts_with(root))
    }
}

/// Where the user's programs work: the workspace, and what else the settings make writable.
pub(crate) fn roots(resolved: &Resolved) -> Vec<PathBuf> {
    let written = resolved.allow_write.iter().filter_map(|pattern| match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path.clone()),
        FilePattern::Glob(_) | FilePattern::Name { .. } => None,
    });
    std::iter::once(resolved.workspace.clone()).chain(written).collect()
}

/// What surrounds paths by the settings and the user's links, as if nothing else lay on the disk.
pub(crate) fn bare_site<'a>(settings: &'a Resolved, roots: &'a [PathBuf], links: &'a UserLinks) -> Site<'a> {
    Site { homes: &settings.homes, links: &links.named, ..Site::of(&settings.workspace, roots) }
}

/// What an operation changes, and how.
fn changes(path: &Path, kind: PathKind, operation: &FileOperation) -> Vec<(PathBuf, Change)> {
    let here = |change| vec![(path.to_owned(), change)];
    let and = |change, other: &str, there| {
        let other = path_text::decode(other).map(|other| (other, there));
        here(change).into_iter().chain(other).collect()
    };
    match operation {
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => Vec::new(),
        FileOperation::Write(_) | FileOperation::Edit(_) | FileOperation::Other(_) => here(Change::Write),
        FileOperation::CreateDirectory => here(Change::MakeDirectory),
        FileOperation::Delete => here(Change::Remove),
        FileOperation::Move(to) if kind == PathKind::Directory => {
            and(Change::MoveAway, &to.canonical, Change::MoveTree)
        }
        FileOperation::Move(to) => and(Change::MoveAway, &to.canonical, Change::Install),
        FileOperation::Link(to) => and(Change::Link, &to.canonical, Change::Install),
        FileOperation::Symlink(_) => here(Change::Symlink),
        FileOperation::ChangeMetadata => here(Change::Metadata),
    }
}

fn ruling(class: Class, request: &Request) -> Option<Ruling> {
    let (effect, rule, reason) = match class {
        Class::Free => return None,
        Class::Denied(rule) => (Effect::Deny, rule, rule.reason.to_owned()),
        Class::Asked(rule) => (Effect::Ask, rule, rule.reason.to_owned()),
        Class::Walk => {
            (Effect::Ask, &GIT_POINTERS, "what lies in it means something else under that name".to_owned())
        }
        Class::Completes(_) => (Effect::Ask, &GIT_CONFIG, "it makes a repository of a directory".to_owned()),
        Class::Judged(rule, _) => {
            let (effect, reason) = on_content(request, rule)?;
            (effect, rule, reason)
        }
    };
    Some(Ruling {
        effect,
        policy: HOST.to_owned(),
        rule: rule.id.to_owned(),
        reason,
        setting: String::new(),
        conceal: false,
    })
}

pub(crate) fn attribute(reason: String) -> Attribute {
    Attribute { name: CONTENT.to_owned(), value: serde_json::Value::String(reason).to_string() }
}

/// What was found out about the content that is to be written.
fn on_content(request: &Request, rule: &Rule) -> Option<(Effect, String)> {
    let known = request.attributes.iter().find(|attribute| attribute.name == CONTENT);
    let is_edit =
        matches!(&request.action, Action::File(access) if matches!(access.operation, FileOperation::Edit(_)));
    match known.map(|attribute| serde_json::from_str::<String>(&attribute.value)) {
        Some(Ok(reason)) if reason.is_empty() => None,
        Some(Ok(reason)) if reason.starts_with(UNREADABLE) => Some((Effect::Deny, reason)),
        Some(Ok(reason)) => Some((Effect::Ask, reason)),
        // What an edit makes of a file is judged when it is there to be judged.
        None if is_edit => None,
        Some(Err(_)) | None => Some((Effect::Ask, rule.reason.to_owned())),
    }
}

/// Whether the host offers to remember a yes to `decision` as `pattern`.
pub(crate) fn is_offered(decision: &Decision, pattern: &GrantPattern) -> bool {
    if decision.policy() == HOST && decision.cause().rule == HARD_LINKS {
        return is_for_one_file(pattern);
    }
    let rule = portcullis_names::rule(&decision.cause().rule).filter(|_| decision.policy() == HOST);
    rule.is_none_or(|rule| may_be_granted(rule, pattern, &Site::of(Path::new("/"), &[])))
}

/// Whether a grant on paths speaks of names under `rule`: one for a directory around them was given for what
/// else lies there, and content that nobody has seen cannot have been allowed.
pub(crate) fn may_be_granted(rule: &Rule, pattern: &GrantPattern, site: &Site<'_>) -> bool {
    match pattern {
        GrantPattern::Exact(_) => true,
        GrantPattern::Path(granted) => match &granted.pattern {
            FilePattern::Exact(_) => rule.anywhere == Anywhere::Asked,
            FilePattern::Tree(top) => {
                matches!(class(top, Change::Write, site), Class::Asked(own) if own == rule)
            }
            FilePattern::Glob(_) | FilePattern::Name { .. } => false,
        },
        GrantPattern::Command(_) | GrantPattern::Network(_) | GrantPattern::Tool(_) => false,
    }
}

/// Whether this name is a symbolic link. What cannot be looked at counts as one.
fn is_link(gate: &Gate, path: &Path) -> bool {
    match locate(gate, path, Purpose::ForWriting) {
        Ok(located) => located.canonical() != path,
        Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => false,
        Err(_) => true,
    }
}

/// Whether anything has this name, be it a link that leads nowhere. What cannot be looked at counts as there.
fn exists(gate: &Gate, path: &Path) -> bool {
    match locate(gate, path, Purpose::ForWriting) {
        Ok(located) => located.kind() != PathKind::Missing || located.canonical() != path,
        Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => false,
        Err(_) => true,
    }
}
