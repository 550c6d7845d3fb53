//! Files with several names (hard links): the known names, and their effect on a decision.
//!
//! For reading, a name is *known* if it lies in a place that a rule restricts: a file that is secret under one name is
//! secret under all. For writing, a name is *known* if it lies where writing is allowed, in the workspace and the paths
//! that settings add. A write happens in place, so it changes the file under all its names; only if all of them are
//! known does it affect no other user of the file. Package stores share files with every project, so reading such files
//! is ordinary, and writing to them asks.

use std::path::{Path, PathBuf};

use portcullis_decision::request::{Action, Content, FileAccess, FileOperation, Origin, PathKind};
use portcullis_decision::{Effect, Fact, OtherNames, path_text};
use portcullis_file_gate::{Identity, Located, Purpose};
use portcullis_session_sandbox::kept_back::KeptBack;
use portcullis_session_sandbox::user_links::roots;

use crate::effective_policy::EffectivePolicy;
use crate::paths;
use crate::session::Session;

/// Facts about a file with several names that is to be written.
#[derive(Debug)]
pub(crate) struct Linked {
    /// The fact for the request; `None` if the file is ordinary.
    pub(crate) fact: Option<Fact>,
    /// The file when its names were searched.
    pub(crate) identity: Identity,
}

/// Returns the fact on a file to read, if reading it under another of its names is restricted.
pub(crate) fn read_by_another_name(
    session: &Session,
    effective: &EffectivePolicy,
    located: &Located,
) -> Option<Fact> {
    if !has_several(located) {
        return None;
    }
    let kept_back = KeptBack::from_tools(&effective.rules, &session.setup.own);
    let (effect, rule) = kept_back.ruling(located.inode()?)?;
    let reason = format!("it is another name (hard link) of a file that the rule `{rule}` keeps back");
    Some(other_names_are(effect, reason))
}

/// Returns the facts about a file to write, or `None` if it has one name only.
pub(crate) fn written_by_other_names(
    session: &Session,
    effective: &EffectivePolicy,
    located: &Located,
    operation: &FileOperation,
) -> Option<Linked> {
    if !has_several(located) {
        return None;
    }
    let tops: Vec<PathBuf> =
        roots(&session.settings()).into_iter().chain(effective.rules.base().own_tops().cloned()).collect();
    let names = effective.gate.names_of(located, &tops).ok()?;
    let others = names.paths.iter().filter(|path| *path != located.canonical());
    let strictest = others
        .map(|path| {
            let reference = paths::reference(
                &session.setup.context,
                &path_text::encode(path),
                path,
                path,
                PathKind::File,
            );
            let facts = located.facts();
            let action = Action::File(FileAccess { path: reference, operation: operation.clone(), facts });
            let decision = session.decide(&session.request(Origin::Agent, action));
            (decision.effect(), decision.cause().reason.clone())
        })
        .max_by_key(|(effect, _)| *effect);
    let (total, known) = (names.count, names.paths.len());
    let fact = match strictest {
        Some((effect @ (Effect::Ask | Effect::Deny), reason)) => Some(other_names_are(
            effect,
            format!("it has other names (hard links), and for one of them {reason}"),
        )),
        Some((Effect::Allow, _)) | None if names.is_complete => None,
        Some((Effect::Allow, _)) | None => Some(other_names_are(
            Effect::Ask,
            format!(
                "it has {total} names (hard links), of which {known} lie where commands may write; the others would \
                 change with it"
            ),
        )),
    };
    Some(Linked { fact, identity: names.identity })
}

/// Returns the fact on a file that a command is about to write.
pub(crate) fn other_names(session: &Session, path: &Path) -> Option<Fact> {
    let effective = session.effective_policy();
    match effective.gate.locate(path, Purpose::ForWriting) {
        Ok(located) => {
            let operation = FileOperation::Write(Content::Unknown);
            written_by_other_names(session, &effective, &located, &operation)?.fact
        }
        Err(_) => {
            let reason = "it has other names (hard links), which could not be looked for".to_owned();
            Some(other_names_are(Effect::Ask, reason))
        }
    }
}

fn has_several(located: &Located) -> bool {
    located.kind() == PathKind::File && located.facts().links > 1
}

fn other_names_are(effect: Effect, reason: String) -> Fact {
    Fact::OtherNames(OtherNames { is_denied: effect == Effect::Deny, reason })
}
