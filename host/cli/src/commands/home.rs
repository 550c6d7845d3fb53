//! `portcullis home`: the private homes of projects.

use anyhow::Context as _;
use portcullis_bootstrap::home::{Cleared, Size, StoredHome, clear, stored};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::home::{Home, Which};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use serde_json::{Value, json};

/// Runs the subcommand.
pub(crate) fn run(home: &Home) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match home {
        Home::Show(which) => show(&around, which),
        Home::Clear(which) => remove(&around, which),
    }
}

fn named(around: &ProcessEnv, which: &Which) -> anyhow::Result<Vec<StoredHome>> {
    if which.all {
        return stored(&around.state, None);
    }
    let project = which.project.as_deref().unwrap_or(&around.cwd);
    let project = around.absolute(project);
    let project =
        project.canonicalize().with_context(|| format!("finding the project `{}`", project.display()))?;
    stored(&around.state, Some(&project))
}

fn show(around: &ProcessEnv, which: &Which) -> exit::Outcome {
    let homes = named(around, which)?;
    let mut page = Page::new(around);
    if which.json {
        page.json(&json!({ "homes": homes.iter().map(as_json).collect::<Vec<_>>() }));
    } else if homes.is_empty() {
        page.line("no private home");
    } else {
        let row = |home: &StoredHome| {
            let state = if home.is_in_use { tinted("in use", Tint::Open) } else { tinted("", Tint::Faint) };
            vec![cell(&spoken(home)), cell(&size(home.size)), cell(&home.directory.to_string_lossy()), state]
        };
        page.table("", &homes.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(Exit::Done)
}

fn remove(around: &ProcessEnv, which: &Which) -> exit::Outcome {
    let homes = named(around, which)?;
    let mut page = Page::new(around);
    let mut exit = Exit::Done;
    let mut results = Vec::new();
    for home in &homes {
        let cleared = clear(&home.directory)?;
        let word = match cleared {
            Cleared::Removed => "removed",
            Cleared::InUse => {
                exit = Exit::Bad;
                "a session uses it; end that first"
            }
        };
        results.push((home, cleared, word));
    }
    if which.json {
        let result = |(home, cleared, _): &(&StoredHome, Cleared, &str)| {
            let mut json = as_json(home);
            if let Value::Object(members) = &mut json {
                members.insert("removed".to_owned(), json!(*cleared == Cleared::Removed));
            }
            json
        };
        page.json(&json!({ "homes": results.iter().map(result).collect::<Vec<_>>() }));
    } else if results.is_empty() {
        page.line("no private home");
    } else {
        let row = |(home, _, word): &(&StoredHome, Cleared, &str)| {
            vec![cell(&spoken(home)), cell(&size(home.size)), cell(word)]
        };
        page.table("", &results.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(exit)
}

fn as_json(home: &StoredHome) -> Value {
    json!({
        "project": home.project,
        "directory": home.directory,
        "bytes": home.size.bytes,
        "isAtLeast": home.size.is_at_least,
        "inUse": home.is_in_use,
    })
}

fn spoken(home: &StoredHome) -> String {
    match home.project.as_os_str().is_empty() {
        true => "an unknown project".to_owned(),
        false => home.project.to_string_lossy().into_owned(),
    }
}

fn size(size: Size) -> String {
    let least = if size.is_at_least { "more than " } else { "" };
    format!("{least}{} MiB", size.bytes.div_ceil(1 << 20))
}
