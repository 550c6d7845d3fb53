//! Facts that a sandbox broker adds to its questions: the rule that asks, and the operation.
//!
//! The host decides each question again from the facts that it sees itself. But if the broker asks, the user is asked
//! at least: the broker knows the call and the surroundings of the name best.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use portcullis_decision::request::{
    Action, Attribute, Content, FileAccess, FileFacts, FileOperation, PathKind, PathRef,
};
use portcullis_decision::{Effect, Grant, Request, Ruling, path_text};
use portcullis_exec_surface::Anywhere;
use portcullis_sandbox::{Attempt, Deed};
use portcullis_sandbox_runtime::Held;

use crate::effective_policy::Force;
use crate::exec_surface_rules::{bare_site, may_be_granted};
use crate::paths;
use crate::session::Session;

/// Name of the attribute with the name rule for which the broker asks: a JSON string.
const RULE: &str = "host:asked-by";

/// Name of the attribute with the place that one question covers: a JSON string.
///
/// It is set for names that the user's programs execute.
const PLACE: &str = "host:place";

/// Id of the rule on links at names below which other rules restrict.
const SYMBOLIC_LINKS: &str = "host.symbolic-links";

/// Returns the attribute for the rule that asks about a call.
///
/// `None` if it is one of the session's own rules, which are evaluated anyway. A call that creates a link, or moves or
/// links a file, has an attribute in any case: permission for the name is not permission for its target.
pub(crate) fn attribute(rule: &str, deed: &Deed) -> Option<Attribute> {
    let is_link = matches!(deed, Deed::Symlink(_) | Deed::LinkOf(_) | Deed::MoveOf(_));
    let rule = if rule.is_empty() && is_link { SYMBOLIC_LINKS } else { rule };
    let is_known = rule == SYMBOLIC_LINKS || portcullis_exec_surface::rule(rule).is_some();
    let value = serde_json::Value::String(rule.to_owned()).to_string();
    is_known.then(|| Attribute { name: RULE.to_owned(), value })
}

/// Returns the attribute for the place that one question covers.
pub(crate) fn place_attribute(place: &Path) -> Attribute {
    let value = serde_json::Value::String(path_text::encode(place)).to_string();
    Attribute { name: PLACE.to_owned(), value }
}

/// Returns the place that one question covers, from the attribute of the request.
pub(crate) fn place_of(request: &Request) -> Option<PathBuf> {
    let told = request.attributes.iter().find(|attribute| attribute.name == PLACE)?;
    path_text::decode(&serde_json::from_str::<String>(&told.value).ok()?)
}

/// Returns true if an operation can only be allowed once, because its path does not determine its effect.
pub(crate) fn is_only_once(operation: &FileOperation) -> bool {
    match operation {
        FileOperation::Symlink(_)
        | FileOperation::Link(_)
        | FileOperation::Move(_)
        | FileOperation::Other(_) => true,
        FileOperation::Read
        | FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::List
        | FileOperation::Search(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::ChangeMetadata => false,
    }
}

/// Returns the other path of an operation or the target of its link, to be appended to the path.
pub(crate) fn other_end(access: &FileAccess) -> Option<String> {
    match &access.operation {
        FileOperation::Symlink(target) => Some(format!(" -> {target}")),
        FileOperation::Link(other) | FileOperation::Move(other) => Some(format!(" to {}", other.canonical)),
        FileOperation::Read
        | FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::List
        | FileOperation::Search(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => None,
    }
}

impl Session {
    /// Returns the action of a pending call, from the existing end.
    pub(crate) fn held_action(&self, held: &Held) -> Action {
        let here = held.path();
        match held.deed() {
            Deed::Plain => self.plain_action(here, held.attempt()),
            Deed::Symlink(target) => self.held_file(here, FileOperation::Symlink(text(target))),
            Deed::Special => self.held_file(here, FileOperation::Other("make a special file at".to_owned())),
            Deed::LinkOf(name) => self.held_file(name, FileOperation::Link(self.reference(here))),
            Deed::LinkTo(name) => self.held_file(here, FileOperation::Link(self.reference(name))),
            Deed::MoveOf(name) => self.held_file(name, FileOperation::Move(self.reference(here))),
            Deed::MoveTo(name) => self.held_file(here, FileOperation::Move(self.reference(name))),
        }
    }

    fn plain_action(&self, path: &Path, attempt: Attempt) -> Action {
        let operation = match attempt {
            Attempt::Read => FileOperation::Read,
            Attempt::Write => FileOperation::Write(Content::Unknown),
            Attempt::MakeDirectory => FileOperation::CreateDirectory,
            Attempt::Remove => FileOperation::Delete,
        };
        let is_directory =
            attempt == Attempt::MakeDirectory || path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let kind = if is_directory { PathKind::Directory } else { PathKind::File };
        let path = paths::reference(&self.setup.context, &path.to_string_lossy(), path, path, kind);
        Action::File(FileAccess { path, operation, facts: FileFacts::default() })
    }

    fn held_file(&self, path: &Path, operation: FileOperation) -> Action {
        let path = self.reference(path);
        Action::File(FileAccess { path, operation, facts: FileFacts::default() })
    }

    fn reference(&self, path: &Path) -> PathRef {
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let kind = if is_directory { PathKind::Directory } else { PathKind::File };
        paths::reference(&self.setup.context, &path.to_string_lossy(), path, path, kind)
    }

    /// Returns the ruling of the broker's rule, or `None` if the rule is lifted or the user has allowed the operation.
    pub(crate) fn ruling_of_broker(
        &self,
        request: &Request,
        force: &Force,
        grants: &[Grant],
    ) -> Option<Ruling> {
        let told = request.attributes.iter().find(|attribute| attribute.name == RULE)?;
        let id: String = serde_json::from_str(&told.value).unwrap_or_default();
        if self.settings().lifted.contains(&id) {
            return None;
        }
        let roots = self.roots();
        let Action::File(access) = &request.action else { return None };
        if path_text::decode(&access.path.canonical).is_some_and(|path| self.is_private(&path, force, &roots))
        {
            return None;
        }
        let reason = match portcullis_exec_surface::rule(&id) {
            Some(rule) => {
                let settings = self.settings();
                let site = bare_site(&settings, &roots, &force.links);
                let covers =
                    |grant: &Grant| grant.covers(request) && may_be_granted(rule, &grant.pattern, &site);
                if rule.anywhere == Anywhere::Asked && grants.iter().any(covers) {
                    return None;
                }
                rule.reason
            }
            None => {
                "what rules say of this name, and of names below it, would not hold for what comes to stand there"
            }
        };
        Some(Ruling {
            effect: Effect::Ask,
            policy: "host".to_owned(),
            rule: id,
            reason: reason.to_owned(),
            setting: String::new(),
            conceal: false,
        })
    }
}

/// Explains the effect of an operation to the user, or returns `None` if its name is clear.
pub(crate) fn meaning(access: &FileAccess) -> Option<String> {
    if matches!(access.operation, FileOperation::Link(_)) {
        return Some("what is written under one of the names is written under both".to_owned());
    }
    let FileOperation::Symlink(target) = &access.operation else { return None };
    let path = path_text::decode(&access.path.canonical)?;
    let aim = path.parent().map_or_else(PathBuf::new, Path::to_owned).join(path_text::decode(target)?);
    let aim = path_text::encode(&aim.canonicalize().unwrap_or(aim));
    Some(format!("whoever uses this name, and every name below it, uses {aim} then"))
}

fn text(target: &OsStr) -> String {
    path_text::encode(Path::new(target))
}
