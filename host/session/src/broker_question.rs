//! The action and the place of a pending call.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, PathKind, PathRef,
};
use portcullis_decision::{Caller, Effect, KnownPlace, RuleSet, path_text};
use portcullis_sandbox::{CallDetails, NameAccess};
use portcullis_sandbox_runtime::Held;

use crate::known_places::{Bounds, place_of};
use crate::paths;
use crate::session::Session;
use crate::started::Started;

/// Returns the action of a pending call, from the existing end.
pub(crate) fn action(session: &Session, held: &Held) -> Action {
    let here = held.path();
    match held.deed() {
        CallDetails::Plain => plain(session, here, held.attempt()),
        CallDetails::Symlink(target) => file(session, here, FileOperation::Symlink(text(target))),
        CallDetails::Special => {
            file(session, here, FileOperation::Other("make a special file at".to_owned()))
        }
        CallDetails::LinkOf(name) => file(session, name, FileOperation::Link(reference(session, here))),
        CallDetails::LinkTo(name) => file(session, here, FileOperation::Link(reference(session, name))),
        CallDetails::MoveOf(name) => file(session, name, FileOperation::Move(reference(session, here))),
        CallDetails::MoveTo(name) => file(session, here, FileOperation::Move(reference(session, name))),
    }
}

fn plain(session: &Session, path: &Path, attempt: NameAccess) -> Action {
    let operation = match attempt {
        NameAccess::Read => FileOperation::Read,
        NameAccess::Write => FileOperation::Write(Content::Unknown),
        NameAccess::MakeDirectory => FileOperation::CreateDirectory,
        NameAccess::Remove => FileOperation::Delete,
    };
    let is_directory =
        attempt == NameAccess::MakeDirectory || path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let kind = if is_directory { PathKind::Directory } else { PathKind::File };
    let path = paths::reference(&session.setup.context, &path.to_string_lossy(), path, path, kind);
    Action::File(FileAccess { path, operation, facts: FileFacts::default() })
}

fn file(session: &Session, path: &Path, operation: FileOperation) -> Action {
    let path = reference(session, path);
    Action::File(FileAccess { path, operation, facts: FileFacts::default() })
}

fn reference(session: &Session, path: &Path) -> PathRef {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let kind = if is_directory { PathKind::Directory } else { PathKind::File };
    paths::reference(&session.setup.context, &path.to_string_lossy(), path, path, kind)
}

/// Returns the known place of a pending call, if the question is about that place.
///
/// A special file, or a name about which a rule of the broker asks, has a question of its own.
pub(crate) fn known_place(session: &Session, started: &Started, held: &Held) -> Option<KnownPlace> {
    if !held.rule().is_empty() || !held.reason().is_empty() || matches!(held.deed(), CallDetails::Special) {
        return None;
    }
    let effective = session.effective_policy();
    let rules = started.rules.as_deref().unwrap_or(&effective.rules);
    let path = held.path();
    let is_directory = held.attempt() == NameAccess::MakeDirectory
        || path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let settings = session.settings();
    let bounds = Bounds { base: rules.base(), homes: &settings.homes };
    place_of(&bounds, path, is_directory, held.named())
}

/// Returns true if rules on one name of a link or a move would not apply to the other one, or if only the name itself
/// is allowed, and not the directory around it.
pub(crate) fn loosens(rules: &RuleSet, new: &Path, deed: &CallDetails) -> bool {
    let holder = new.parent().unwrap_or(Path::new("/"));
    let may_write =
        |path: &Path| rules.answer(path, FileRight::Write, Caller::Command).effect == Effect::Allow;
    // A plain file that replaces another one was allowed there.
    let is_plain = |old: &Path| {
        let is_file = |found: std::fs::Metadata| found.is_file() && found.nlink() == 1;
        old.symlink_metadata().is_ok_and(is_file) && new.symlink_metadata().is_ok_and(is_file)
    };
    let is_replaced = matches!(deed, CallDetails::MoveOf(old) if is_plain(old));
    if may_write(new) && !may_write(holder) && !is_replaced {
        return true;
    }
    match deed {
        CallDetails::Symlink(target) => {
            let aim = path_text::normalize(&holder.join(target));
            // Behind a link `..` may lead elsewhere.
            let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
            let is_straight = Path::new(target).components().skip_while(|part| !is_name(*part)).all(is_name);
            let keeps = |other: &Path| rules.restricts_alike_below(new, other);
            !(is_straight && keeps(&aim) || !may_write(&aim) && keeps(&holder.join(ANY_NAME)))
        }
        CallDetails::LinkOf(old) | CallDetails::MoveOf(old) => {
            let is_read =
                |path: &Path| rules.answer(path, FileRight::Read, Caller::Command).effect == Effect::Allow;
            let is_alike = rules.restricts_alike_below(old, new) && rules.restricts_alike_below(new, old);
            !(is_read(old) && is_read(new) && is_alike)
        }
        CallDetails::Plain | CallDetails::LinkTo(_) | CallDetails::MoveTo(_) | CallDetails::Special => false,
    }
}

/// A name that no rule mentions.
const ANY_NAME: &str = "\u{1}";

fn text(target: &OsStr) -> String {
    path_text::encode(Path::new(target))
}
