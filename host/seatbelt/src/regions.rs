//! The base of a rule set as conditions.
//!
//! The private home of Linux is a mount over the user's own: what rules call `~/.npm` is the project's. Here it is a
//! directory of its own to which `HOME` leads, and `~/.npm` is the user's, which is closed like the home around it.

use std::path::Path;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::{FileRight, FileRule};
use portcullis_decision::{Base, Effect};

use crate::error::CompileError;
use crate::filter::Filter;
use crate::last_match::LastMatch;
use crate::pattern::below;

/// A kind of region; of two with the same top the greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Region {
    Closed,
    Own,
    Temp,
    Workspace,
}

/// Returns the condition that the base allows commands `right`.
pub(crate) fn allowed(base: &Base, right: FileRight) -> Result<Filter, CompileError> {
    let around = (right != FileRight::Write, Filter::ALWAYS);
    let mut cases = vec![around];
    for (region, top) in regions(base) {
        cases.push((region != Region::Closed, tree(top)?));
    }
    Ok(LastMatch::new(cases).holds())
}

/// Returns true if a rule opens the temporary directory as a whole: it means the session's own.
pub(crate) fn opens_temp(base: &Base, rule: &FileRule) -> bool {
    rule.effect == Effect::Allow && matches!(&rule.pattern, FilePattern::Tree(top) if *top == base.temp)
}

/// Returns the condition that a path is below the temporary directory, but in a part of the machine that is shown there.
pub(crate) fn shown_in_temp(base: &Base) -> Result<Filter, CompileError> {
    let inside =
        regions(base).into_iter().filter(|(_, top)| top.starts_with(&base.temp) && *top != base.temp);
    let mut cases = Vec::new();
    for (region, top) in inside {
        cases.push((matches!(region, Region::Closed | Region::Workspace), tree(top)?));
    }
    Ok(LastMatch::new(cases).holds())
}

/// Returns the tops of all regions.
pub(crate) fn tops(base: &Base) -> impl Iterator<Item = &Path> {
    regions(base).into_iter().map(|(_, top)| top)
}

/// Returns the tops of the regions that are open.
pub(crate) fn open_tops(base: &Base) -> impl Iterator<Item = &Path> {
    regions(base).into_iter().filter(|(region, _)| *region != Region::Closed).map(|(_, top)| top)
}

/// Returns the regions, outer ones first.
fn regions(base: &Base) -> Vec<(Region, &Path)> {
    let machine = base.own.home.iter().flat_map(|home| home.machine.iter());
    let closed = base.closed.iter().chain(machine).map(|top| (Region::Closed, top));
    let own = base.own.directories.iter().map(|top| (Region::Own, top));
    let workspace = base.workspace.iter().map(|top| (Region::Workspace, top));
    let all = closed.chain(own).chain([(Region::Temp, &base.temp)]).chain(workspace);
    let mut all: Vec<(Region, &Path)> =
        all.map(|(region, top)| (region, top.as_path())).filter(|(_, top)| top.is_absolute()).collect();
    all.sort_by_key(|(region, top)| (top.components().count(), *region));
    all
}

fn tree(top: &Path) -> Result<Filter, CompileError> {
    below(top).map_err(|_| CompileError::Path { path: top.to_owned() })
}
