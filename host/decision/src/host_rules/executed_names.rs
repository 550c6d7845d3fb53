//! The ruling on names that the user's other programs execute.
//!
//! It restricts and never allows.

use std::path::{Path, PathBuf};

use portcullis_exec_surface::{Change, Class, GIT_CONFIG, GIT_POINTERS, Rule, Treatment, class_under};

use super::by_host::by_host;
use super::content::on_content;
use super::grantable::may_be_granted;
use super::surroundings::Surroundings;
use crate::request::{Action, FileOperation, PathKind};
use crate::{Effect, Grant, Request, Ruling, path_text};

/// Returns the strictest ruling of the rules on names for `request`, if any applies.
#[must_use]
pub fn ruling(request: &Request, surroundings: &Surroundings<'_>, grants: &[Grant]) -> Option<Ruling> {
    let Action::File(access) = &request.action else { return None };
    let path = path_text::decode(&access.path.canonical)?;
    let site = &surroundings.site;
    let own = changes(&path, access.path.kind, &access.operation);
    let made = path.ancestors().skip(1).map(|above| (above.to_owned(), Change::MakeDirectory));
    let made = made.filter(|_| own.iter().any(|(_, change)| *change == Change::Write)).collect::<Vec<_>>();
    let granted = |rule: &'static Rule| {
        let covers = |grant: &Grant| grant.covers(request) && may_be_granted(rule, &grant.pattern, site);
        grants.iter().any(covers)
    };
    // A lifted or granted rule must not hide another rule on the same name.
    let holds = |rule: &'static Rule| {
        !(surroundings.is_lifted(rule.id) || rule.anywhere == Treatment::Asked && granted(rule))
    };
    let mut strictest: Option<Ruling> = None;
    for (path, change) in own.iter().chain(&made) {
        if (surroundings.is_private)(path) {
            continue;
        }
        let Some(ruling) = of_class(class_under(path, *change, site, &holds), request) else { continue };
        if strictest.as_ref().is_none_or(|known| ruling.effect > known.effect) {
            strictest = Some(ruling);
        }
    }
    strictest
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

fn of_class(class: Class, request: &Request) -> Option<Ruling> {
    let (effect, rule, reason) = match class {
        Class::Free => return None,
        Class::Denied(rule) => (Effect::Deny, rule, rule.reason.to_owned()),
        Class::Asked(rule) => (Effect::Ask, rule, rule.reason.to_owned()),
        Class::Walk => {
            (Effect::Ask, &GIT_POINTERS, "its files have another meaning under the new name".to_owned())
        }
        Class::Completes(_) => (Effect::Ask, &GIT_CONFIG, "it makes a repository of a directory".to_owned()),
        Class::Judged(rule, _) => {
            let (effect, reason) = on_content(request, rule)?;
            (effect, rule, reason)
        }
    };
    Some(by_host(effect, rule.id, reason))
}
