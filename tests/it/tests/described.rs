//! Every feature that the three other sandboxes describe, with the test that shows it here: a test of the table itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

const FEATURES: &str = include_str!("described/features.txt");

/// What differs on purpose, with its reason.
const DOCUMENT: &str = include_str!("../../../docs/coming-from.md");

/// The features of each sandbox.
const COUNTS: [(&str, usize); 3] = [("A", 65), ("B", 46), ("C", 22)];

#[test]
fn every_row_names_a_test_that_is_there() -> Result<()> {
    let mut ids = BTreeSet::new();
    let rows = FEATURES.lines().filter(|line| !line.starts_with('#'));
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [id, feature, standing, evidence] = cells.as_slice() else { bail!("{row}: four cells") };
        ensure!(ids.insert((*id).to_owned()), "{id} is there twice");
        ensure!(!feature.is_empty(), "{row}");
        match *standing {
            "works" => is_tested(evidence).with_context(|| row.to_owned())?,
            "differs" => ensure!(DOCUMENT.contains(evidence), "{row}: docs/coming-from.md does not say so"),
            "elsewhere" => ensure!(evidence.split(' ').count() > 2, "{row}: where?"),
            _ => bail!("{row}: works, differs or elsewhere?"),
        }
    }
    for (letter, count) in COUNTS {
        let wanted: BTreeSet<String> = (1..=count).map(|number| format!("{letter}{number}")).collect();
        let missing: Vec<_> = wanted.difference(&ids).collect();
        ensure!(missing.is_empty(), "no row for {missing:?}");
    }
    ensure!(ids.len() == COUNTS.iter().map(|(_, count)| count).sum::<usize>(), "{}", ids.len());
    Ok(())
}

/// Fails if there is no such test.
fn is_tested(evidence: &str) -> Result<()> {
    let (file, name) = evidence.split_once(' ').context("a file and a name")?;
    let text = fs::read_to_string(path(file)).with_context(|| format!("no file {file}"))?;
    let is_there = match file.starts_with("pi/") {
        true => text.contains(&format!("test(\"{name}")),
        false => text.contains(&format!("fn {name}(")),
    };
    ensure!(is_there, "no test `{name}` in {file}");
    // A function of this crate is a test by its name in a list.
    let is_listed = !file.starts_with("it/") || text.matches(name).count() > 1;
    ensure!(is_listed, "`{name}` of {file} is in no list of tests");
    Ok(())
}

fn path(file: &str) -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match file.split_once('/') {
        Some(("it", name)) => top.join(format!("tests/it/tests/{name}.rs")),
        Some(("pi", name)) => top.join(format!("pi/test/{name}.test.ts")),
        Some(("settings", name)) => top.join(format!("host/settings/tests/all/{name}.rs")),
        Some(("format", name)) => top.join(format!("host/settings-format/tests/all/{name}.rs")),
        None => top.join("host/server/src/menu/tests.rs"),
        Some(_) => top.join(file),
    }
}
