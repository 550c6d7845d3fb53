//! What the broker of a sandbox says with its questions: the rule that wants a call asked, and what the call does.
//!
//! The host decides anew about every question, by what it sees itself. What the broker has seen is at least asked
//! about: it knows the call, and what lies around its name, better than anybody else.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use portcullis_confine::{Attempt, Deed, Held};
use portcullis_decision::request::{
    Action, Attribute, Content, FileAccess, FileFacts, FileOperation, PathKind, PathRef,
};
use portcullis_decision::{Effect, Grant, Request, Ruling, path_text};
use portcullis_names::Anywhere;

use crate::executed::{bare_site, may_be_granted};
use crate::force::Force;
use crate::paths;
use crate::session::Session;

/// Name of the attribute that says which rule on names the broker asks for: a JSON text.
const RULE: &str = "host:asked-by";

/// Name of the attribute that says what one question covers, where programs of the user's execute a name: a JSON text.
const PLACE: &str = "host:place";

/// The rule on links at names below which other rules restrict.
const SYMBOLIC_LINKS: &str = "host.symbolic-links";

/// What is told of the rule that wants a call asked; none where the session's own rules do, which are asked anyway. Where
/// a name is to be a link, to a file or a directory, an allowance for the name is none for what it leads to.
pub(crate) fn attribute(rule: &str, deed: &Deed) -> Option<Attribute> {
    let is_link = matches!(deed, Deed::Symlink(_) | Deed::LinkOf(_) | Deed::MoveOf(_));
    let rule = if rule.is_empty() && is_link { SYMBOLIC_LINKS } else { rule };
    let is_known = rule == SYMBOLIC_LINKS || portcullis_names::rule(rule).is_some();
    let value = serde_json::Value::String(rule.to_owned()).to_string();
    is_known.then(|| Attribute { name: RULE.to_owned(), value })
}

/// Tells what one question covers.
pub(crate) fn place_attribute(place: &Path) -> Attribute {
    let value = serde_json::Value::String(path_text::encode(place)).to_string();
    Attribute { name: PLACE.to_owned(), value }
}

/// What one question covers, as it was told with the request.
pub(crate) fn place_of(request: &Request) -> Option<PathBuf> {
    let told = request.attributes.iter().find(|attribute| attribute.name == PLACE)?;
    path_text::decode(&serde_json::from_str::<String>(&told.value).ok()?)
}

/// Whether an operation can be allowed for this one time only: what it leads to is not what its path says.
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

/// The other name of an operation, or where its link leads, as the end of a line that begins with its path.
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
    /// What a call that waits is about to do, from the end that is there already.
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

    /// What the rule adds that the broker asks for; none where it is lifted or the user has said yes to it.
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
        let reason = match portcullis_names::rule(&id) {
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

/// What an operation means, in words for who is asked; none where its name says it.
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
