//! Checks that no files of a crate import each other in a circle.
//!
//! A file imports another one if it names anything that the other one defines, by `use`, by a path or in the arguments
//! of a macro. Re-exports count for the file that defines the name. Tests are left out.

mod modules;
mod resolve;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use self::modules::Modules;
use super::workspace::{array, text};
use crate::project;

/// Crates that still have circles. A crate without circles must leave this list, so that it ends empty.
const STILL_CIRCULAR: [&str; 0] = [];

/// The files that each file imports, each with an imported name.
pub(super) type Imports = BTreeMap<PathBuf, BTreeMap<PathBuf, String>>;

/// Returns a line for each circle in a crate, and for each listed crate without one.
pub(super) fn problems(packages: &[Value]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut circular = BTreeSet::new();
    for root in roots(packages)? {
        let read = |path: &Path| std::fs::read_to_string(project::root().join(path)).ok();
        let imports = Modules::read(&root, &read)?.imports();
        let folder = STILL_CIRCULAR.iter().find(|folder| root.starts_with(folder));
        for circle in circles(&imports) {
            match folder {
                Some(folder) => drop(circular.insert(folder)),
                None => problems.push(describe(&imports, &circle)),
            }
        }
    }
    let ended = STILL_CIRCULAR.iter().filter(|folder| !circular.contains(folder));
    problems
        .extend(ended.map(|folder| format!("{folder} has no import circle: take it off the list in {LIST}")));
    Ok(problems)
}

const LIST: &str = "xtask/src/tidy/circles.rs";

/// Returns the files at which the programs and libraries of our crates begin, relative to the clone.
fn roots(packages: &[Value]) -> Result<Vec<PathBuf>> {
    let mut roots = Vec::new();
    for package in packages.iter().filter(|package| package.get("source").is_some_and(Value::is_null)) {
        for target in array(package, "targets")? {
            let kinds = array(target, "kind")?;
            let is_left_out = kinds.iter().any(|kind| matches!(kind.as_str(), Some("test" | "custom-build")));
            let path = Path::new(text(target, "src_path")?).strip_prefix(project::root());
            if let Some(path) = path.ok().filter(|path| !is_left_out && !path.starts_with("tests")) {
                roots.push(path.to_owned());
            }
        }
    }
    // The fuzz targets are a workspace of their own.
    for entry in std::fs::read_dir(project::root().join("fuzz/fuzz_targets"))? {
        roots.push(Path::new("fuzz/fuzz_targets").join(entry?.file_name()));
    }
    Ok(roots)
}

/// Returns the groups of files that reach each other by imports.
fn circles(imports: &Imports) -> Vec<BTreeSet<&Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        imports.keys().map(|file| (file.as_path(), reach(imports, file))).collect();
    let mut circles: Vec<BTreeSet<&Path>> = Vec::new();
    for (file, reachable) in &reached {
        if reachable.contains(file) && !circles.iter().any(|circle| circle.contains(file)) {
            let comes_back = |other: &&&Path| reached.get(**other).is_some_and(|back| back.contains(file));
            circles.push(reachable.iter().filter(comes_back).copied().collect());
        }
    }
    circles
}

fn reach<'i>(imports: &'i Imports, file: &Path) -> BTreeSet<&'i Path> {
    let imported = |file: &Path| imports.get(file).into_iter().flat_map(BTreeMap::keys).map(PathBuf::as_path);
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Path> = imported(file).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imported(next));
        }
    }
    reached
}

/// Describes a circle by its shortest way around.
fn describe(imports: &Imports, circle: &BTreeSet<&Path>) -> String {
    let ways = circle.iter().filter_map(|file| way_around(imports, file));
    let way = ways.min_by_key(Vec::len).unwrap_or_default();
    let steps =
        way.iter().map(|(from, name, to)| format!("{} takes `{name}` from {}", from.display(), to.display()));
    format!("{} files import each other: {}", circle.len(), steps.collect::<Vec<_>>().join(", "))
}

/// An import: the file, the name, and the file that defines it.
type Import<'i> = (&'i Path, &'i str, &'i Path);

/// Returns the shortest way from a file back to itself.
fn way_around<'i>(imports: &'i Imports, file: &Path) -> Option<Vec<Import<'i>>> {
    let (start, _) = imports.get_key_value(file)?;
    let mut steps: BTreeMap<&Path, Import<'i>> = BTreeMap::new();
    let mut open = VecDeque::from([start.as_path()]);
    while let Some(from) = open.pop_front() {
        for (to, name) in imports.get(from).into_iter().flatten() {
            if !steps.contains_key(to.as_path()) {
                steps.insert(to, (from, name, to));
                open.push_back(to);
            }
        }
    }
    let mut way = vec![*steps.get(start.as_path())?];
    while let Some((from, ..)) = way.last().filter(|(from, ..)| *from != start) {
        way.push(*steps.get(from)?);
    }
    way.reverse();
    Some(way)
}

#[cfg(test)]
mod tests;
