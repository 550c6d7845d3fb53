//! Every feature that the three other sandboxes describe, with the test that shows it here.
//!
//! The tests of this file are about the table: a row must name a test that runs.

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
            by if by.starts_with("works by ") => {
                is_set_by(by.trim_start_matches("works by "), evidence).with_context(|| row.to_owned())?;
            }
            "elsewhere" => ensure!(evidence.split(' ').count() > 2, "{row}: where?"),
            _ => bail!("{row}: works, works by a setting, differs or elsewhere?"),
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

/// Fails if there is no such test, or if it does not run.
pub(crate) fn is_tested(evidence: &str) -> Result<()> {
    let (file, name) = evidence.split_once(' ').context("a file and a name")?;
    let text = fs::read_to_string(path(file)).with_context(|| format!("no file {file}"))?;
    let runs = match file.split_once('/') {
        Some(("pi", _)) => {
            text.contains(&format!("\ntest(\"{name}")) || text.contains(&format!("  test(\"{name}"))
        }
        Some(("it", _)) => is_listed(&text, name) || has_attribute(&text, name),
        _ => has_attribute(&text, name),
    };
    ensure!(runs, "no test `{name}` runs in {file}");
    Ok(())
}

/// Fails if no test uses the setting, or the document does not name it with its reason.
fn is_set_by(setting: &str, evidence: &str) -> Result<()> {
    is_tested(evidence)?;
    let (file, _) = evidence.split_once(' ').context("a file and a name")?;
    let test = fs::read_to_string(path(file))?;
    let key = setting.split('"').nth(1).context("a key")?;
    ensure!(test.contains(&format!("\"{key}\"")), "{file} does not use `{key}`");
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| ") && line.contains(setting));
    let has_reason = |row: &str| row.split(" | ").nth(1).is_some_and(|reason| !reason.trim().is_empty());
    ensure!(rows.into_iter().any(has_reason), "docs/coming-from.md has no row with `{setting}` and a reason");
    Ok(())
}

/// Returns true if a function with this name is in a list of tests.
fn is_listed(text: &str, name: &str) -> bool {
    let is_there = text.contains(&format!("\nfn {name}("));
    let lists = ["\nas_each_user!(", "\non_each_pi!("].into_iter().flat_map(|list| text.split(list).skip(1));
    let mut lists = lists.filter_map(|rest| rest.split(')').next());
    is_there && lists.any(|list| list.split([',', '\n']).any(|item| item.trim() == name))
}

/// Returns true if a function with this name is a test that is not ignored.
fn has_attribute(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ").is_some_and(|rest| rest.starts_with(&format!("{name}(")))
    };
    let Some(at) = lines.iter().position(begins) else { return false };
    let attributes: Vec<&&str> =
        lines.iter().take(at).rev().take_while(|line| line.starts_with("#[")).collect();
    attributes.iter().any(|line| **line == "#[test]")
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

/// The control is a row that names a test of each kind.
#[test]
fn a_row_without_a_test_is_found() -> Result<()> {
    for good in [
        "it/described a_row_without_a_test_is_found",
        "it/own_choices no_project_opens_anything",
        "it/extension loaded_twice",
        "settings/resolving patterns",
        "pi/messages the footer says what is so",
        "menu the_toggle_comes_first_and_enter_alone_toggles",
        "host/session/src/statements/hosts.rs localhost_is_one_host",
    ] {
        is_tested(good).with_context(|| good.to_owned())?;
    }
    is_set_by(r#""elsewhere": "closed""#, "it/own_choices other_directories_are_closed_in_one_word")?;
    for (setting, test) in [
        (r#""elsewhere": "nowhere""#, "it/own_choices other_directories_are_closed_in_one_word"),
        (r#""elsewhere": "closed""#, "it/own_choices none"),
        (r#""elsewhere": "closed""#, "it/nix_daemon its_socket_is_reached_by_a_rule_alone_"),
        (r#""unlistedHosts": "allow""#, "it/shared_tmp files_are_shared_both_ways"),
    ] {
        ensure!(is_set_by(setting, test).is_err(), "{setting} is taken for tested by {test}");
    }
    for bad in [
        "",
        "it/own_choices",
        "it/none no_project_opens_anything",
        "it/own_choices no_project_opens",
        // A helper that no list names, and one that is no test.
        "it/own_choices run",
        "it/described is_tested",
        "settings/resolving none",
        "pi/messages the footer says nothing at all",
        "host/session/src/statements/hosts.rs none",
    ] {
        ensure!(is_tested(bad).is_err(), "`{bad}` is taken for a test");
    }
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

/// pi has a shortcut of its own on shift+tab, and an extension that takes it would break that.
#[test]
fn the_extension_takes_no_shortcut() -> Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pi/src");
    let mut commands = 0;
    for entry in fs::read_dir(&source)? {
        let file = entry?.path();
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        ensure!(!text.contains("registerShortcut"), "{}", file.display());
        commands += text.matches("registerCommand(").count();
    }
    ensure!(commands > 0, "the control: the extension registers a command");
    Ok(())
}
