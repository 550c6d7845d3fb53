//! The decision of the policies on all changes of a branch together, as one request.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_changes::State;
use portcullis_changes::branch::{BranchChange, Left, diff};
use portcullis_decision::request::{Action, Origin, OtherAction};
use portcullis_decision::{Effect, path_text};
use portcullis_session::{NoUser, Session};
use serde_json::{Value, json};

use super::review::{Judged, Reviewed};
use super::stored::StoredBranch;
use crate::loaded_settings::{self, Wanted};
use crate::process_env::ProcessEnv;
use crate::session::{self, OpenSession};

/// The kind of the request, as in `other-action` of the contract.
const KIND: &str = "host:branch-commit";
/// The most changes that are listed in it.
const LISTED: usize = 5_000;
/// The most bytes of differences in it.
const DIFF_BYTES: usize = 256 << 10;

/// Opens a session that decides on changes of a project.
///
/// # Errors
/// If settings or policies cannot be read.
pub fn judge(around: &ProcessEnv, project: &Path) -> anyhow::Result<OpenSession> {
    let wanted = Wanted { interactive: true, ..Wanted::judging(project.to_owned(), None) };
    let loaded = loaded_settings::load(around, &wanted)?;
    session::open(around, &wanted, loaded, std::sync::Arc::new(NoUser))
}

/// What the user wants committed beyond the usual.
#[derive(Debug, Clone, Copy)]
pub struct Wishes<'a> {
    /// Names that other programs of the user execute.
    pub protected: bool,
    /// Conflicts.
    pub overwrite: bool,
    /// The names that the user has named.
    pub paths: &'a [PathBuf],
}

/// Returns the paths that the user has named, as they are in the project. `absolute` makes a path absolute; one that
/// then lies elsewhere is relative to the project.
///
/// # Errors
/// If nothing differs at one of them.
pub fn named_paths<'a>(
    branch: &StoredBranch,
    changes: &[BranchChange],
    given: impl IntoIterator<Item = &'a PathBuf>,
    absolute: impl Fn(&Path) -> PathBuf,
) -> anyhow::Result<Vec<PathBuf>> {
    let in_project = |given: &PathBuf| {
        let path = path_text::normalize(&absolute(given));
        let inside = path.strip_prefix(&branch.project).map_or_else(|_| given.clone(), Path::to_owned);
        anyhow::ensure!(
            changes.iter().any(|change| change.path.starts_with(&inside)),
            "nothing differs at `{}` in branch `{}`; the review says what does",
            given.display(),
            branch.name
        );
        Ok(inside)
    };
    given.into_iter().map(in_project).collect()
}

/// Returns the reason that a change has by itself to be left in the branch.
#[must_use]
pub fn reason_to_leave(reviewed: &[Reviewed], change: &BranchChange, wishes: Wishes<'_>) -> Option<Left> {
    if let Some(obstacle) = change.obstacle.filter(|obstacle| !obstacle.is_conflict() || !wishes.overwrite) {
        return Some(Left::Obstacle(obstacle));
    }
    let judged = reviewed.iter().find(|reviewed| reviewed.change.path == change.path);
    match judged.map(|reviewed| &reviewed.judged) {
        Some(Judged::Allowed) => None,
        Some(Judged::Protected(_)) if wishes.protected || wishes.paths.contains(&change.path) => None,
        Some(Judged::Protected(why)) => Some(Left::Protected(why.clone())),
        Some(Judged::Refused(why)) => Some(Left::Refused(why.clone())),
        None => Some(Left::NotNamed),
    }
}

/// Returns the decision of the policies on these changes of a branch together. A policy without an opinion allows
/// them, because a person has reviewed them.
///
/// # Errors
/// If the branch or the project cannot be read.
pub fn together(
    session: &Session,
    branch: &StoredBranch,
    changes: &[&Reviewed],
    hosts: &[String],
) -> anyhow::Result<Judged> {
    let input = described(branch, changes, hosts)?.to_string();
    let action = Action::Other(OtherAction { kind: KIND.to_owned(), input });
    let decision = session.decide(&session.request(Origin::Agent, action));
    let reason = decision.cause().reason.clone();
    let has_asked = decision.votes().iter().any(|vote| vote.effect == Some(Effect::Ask));
    Ok(match decision.effect() {
        Effect::Deny => Judged::Refused(reason),
        Effect::Ask if has_asked => Judged::Protected(reason),
        Effect::Ask | Effect::Allow => Judged::Allowed,
    })
}

fn described(branch: &StoredBranch, changes: &[&Reviewed], hosts: &[String]) -> anyhow::Result<Value> {
    let mut left = DIFF_BYTES;
    let mut listed = Vec::new();
    for Reviewed { change, judged, secrets } in changes.iter().take(LISTED) {
        let doing = || format!("comparing `{}`", change.path.display());
        let text = if left == 0 { None } else { diff(branch.layers(), change).with_context(doing)? };
        let text = text.filter(|text| text.len() <= left);
        left -= text.as_ref().map_or(0, String::len);
        let question = match judged {
            Judged::Protected(why) | Judged::Refused(why) => Some(why),
            Judged::Allowed => None,
        };
        listed.push(json!({
            "path": path_text::encode(&branch.project.join(&change.path)),
            "what": change.word(),
            "kind": kind(&change.new),
            "size": change.new.file().map(|file| file.size),
            "mode": change.new.file().map(|file| file.mode),
            "diff": text,
            "secrets": secrets,
            "question": question,
        }));
    }
    Ok(json!({
        "branch": branch.name,
        "project": path_text::encode(&branch.project),
        "changes": listed,
        "more": changes.len().saturating_sub(LISTED),
        "hosts": hosts,
    }))
}

fn kind(state: &State) -> &'static str {
    match state {
        State::Absent => "missing",
        State::File(_) => "file",
        State::Directory(_) => "directory",
        State::Link { .. } => "symlink",
        State::Special { .. } => "other",
    }
}
