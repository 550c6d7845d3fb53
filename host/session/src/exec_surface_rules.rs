//! Applies the rules on names that the user's other programs execute to decisions about files.
//!
//! A rule on names restricts and never allows. Where the decision depends on the content, the request has the verdict
//! on the content as the attribute [`CONTENT`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::Resolved;
use portcullis_decision::pattern::FilePattern;
use portcullis_decision::request::{Action, Attribute, FileOperation, PathKind};
use portcullis_decision::{Decision, Effect, Grant, GrantPattern, Request, Ruling, path_text};
use portcullis_exec_surface::git::{Content, Judgement, judge};
use portcullis_exec_surface::{
    Anywhere, Change, Class, GIT_CONFIG, GIT_POINTERS, NEW_DOT_FILES, Rule, Site, class, class_under,
    completed, protected_name,
};
use portcullis_file_gate::{FileError, Gate, Identity, Limits, Located, Purpose};

use crate::effective_policy::Force;
use crate::files::locate;
use crate::links::{HARD_LINKS, is_for_one_file};
use crate::session::Session;
use crate::user_links::UserLinks;

/// Name of the attribute with the verdict on the content of one of git's own files: a JSON string.
///
/// Empty for harmless content, else the reason to ask or, after [`UNREADABLE`], to refuse.
pub(crate) const CONTENT: &str = "host:git-content";

/// Name of the policy that the rules on names belong to.
pub(crate) const HOST: &str = "host";

/// Prefix of the reason for content that cannot be judged.
const UNREADABLE: &str = "it cannot be judged";

/// Maximum length in bytes of a file that new content is compared with, the limit of the judge.
const LONGEST_JUDGED: u64 = 1 << 20;

/// New content that is judged before it is written.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The attributes for the request.
    pub(crate) attributes: Vec<Attribute>,
    /// The file that it was compared with; `None` if there is no file or the content does not matter.
    pub(crate) replaces: Option<Identity>,
}

impl Session {
    /// Returns the ruling of the rules on names for `request`, if any applies.
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
        // A lifted or granted rule must not hide another rule on the same name.
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

    /// Judges `new`, the content to write to `located`, if the decision depends on content.
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
            // The cause is not reported: the caller may have no right to learn it.
            Err(_) => {
                let reason = format!("{UNREADABLE}: what stands there cannot be read");
                Judged { attributes: vec![attribute(reason)], replaces: None }
            }
        }
    }

    /// Returns the verdict on `new` at `path` in place of `previous`.
    ///
    /// `None` if the decision does not depend on content.
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

    /// Returns the format in which the content of `path` is judged, if the decision depends on it.
    ///
    /// Other rules may ask about the name as well.
    fn judged_as(&self, path: &Path, site: &Site<'_>) -> Option<Content> {
        let holds = |rule: &'static Rule| rule.anywhere == Anywhere::Judged && !self.is_lifted(rule);
        match class_under(path, Change::Write, site, &holds) {
            Class::Judged(_, content) => Some(content),
            Class::Free | Class::Walk | Class::Completes(_) | Class::Asked(_) | Class::Denied(_) => None,
        }
    }

    /// Returns the directory that becomes a repository when a file is created at `located`, if any.
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

    /// Returns the place that one question about a change at `path` covers.
    ///
    /// `None` if the user's programs do not execute the name. The place is the name with all paths below it; for a new
    /// dot file, all new dot files in its directory.
    pub(crate) fn question_place(&self, path: &Path, rule: &str) -> Option<PathBuf> {
        let (settings, roots, links) = (self.settings(), self.roots(), self.user_links());
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let site = Site { exists: &exists, ..bare_site(&settings, &roots, &links) };
        let name = protected_name(path, &site)?;
        Some(if rule == NEW_DOT_FILES.id { name.holder } else { name.name })
    }

    /// Returns the directories in which the user's programs work.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        roots(&self.settings())
    }

    /// Returns the user's links as they were at the start of the session.
    pub(crate) fn user_links(&self) -> Arc<UserLinks> {
        Arc::clone(&self.force().links)
    }

    /// Returns true if only this session sees the path.
    pub(crate) fn is_private(&self, path: &Path, force: &Force, roots: &[PathBuf]) -> bool {
        let temp = &force.rules.base().temp;
        path.starts_with(temp) && !roots.iter().any(|root| root.starts_with(temp) && path.starts_with(root))
    }
}

/// Returns the directories in which the user's programs work: the workspace, and the paths that settings make writable.
pub(crate) fn roots(resolved: &Resolved) -> Vec<PathBuf> {
    let written = resolved.allow_write.iter().filter_map(|pattern| match pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path.clone()),
        FilePattern::Glob(_) | FilePattern::Name { .. } => None,
    });
    std::iter::once(resolved.workspace.clone()).chain(written).collect()
}

/// Returns the surroundings of paths from the settings and the user's links, without looking at the disk.
pub(crate) fn bare_site<'a>(settings: &'a Resolved, roots: &'a [PathBuf], links: &'a UserLinks) -> Site<'a> {
    Site { homes: &settings.homes, links: &links.named, ..Site::of(&settings.workspace, roots) }
}

/// Returns the paths that an operation changes, each with the kind of change.
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

/// Returns effect and reason from the verdict on the content to write.
fn on_content(request: &Request, rule: &Rule) -> Option<(Effect, String)> {
    let known = request.attributes.iter().find(|attribute| attribute.name == CONTENT);
    let is_edit =
        matches!(&request.action, Action::File(access) if matches!(access.operation, FileOperation::Edit(_)));
    match known.map(|attribute| serde_json::from_str::<String>(&attribute.value)) {
        Some(Ok(reason)) if reason.is_empty() => None,
        Some(Ok(reason)) if reason.starts_with(UNREADABLE) => Some((Effect::Deny, reason)),
        Some(Ok(reason)) => Some((Effect::Ask, reason)),
        // The result of an edit is judged once it exists.
        None if is_edit => None,
        Some(Err(_)) | None => Some((Effect::Ask, rule.reason.to_owned())),
    }
}

/// Returns true if the host offers `pattern` as a grant for `decision`.
pub(crate) fn is_offered(decision: &Decision, pattern: &GrantPattern) -> bool {
    if decision.policy() == HOST && decision.cause().rule == HARD_LINKS {
        return is_for_one_file(pattern);
    }
    let rule = portcullis_exec_surface::rule(&decision.cause().rule).filter(|_| decision.policy() == HOST);
    rule.is_none_or(|rule| may_be_granted(rule, pattern, &Site::of(Path::new("/"), &[])))
}

/// Returns true if a grant on paths also covers a name under `rule`.
///
/// A grant for a directory was given for other files in it, and no grant can cover content that the user has not seen.
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
