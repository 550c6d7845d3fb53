//! `audit verify` reports a log that was truncated, removed, or changed in a line.
//!
//! The control of each case is the original log, which verifies as intact. The tests of `portcullis-audit` show that
//! the hash chain of the lines alone does not detect truncation or removal.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::Value;

as_each_user!(
    lines_cut_at_the_end_are_told,
    a_log_that_is_gone_is_told,
    a_changed_line_is_told_whichever_it_is,
    the_help_says_what_happens,
);

const INTACT: i32 = 0;
const BROKEN: i32 = 1;
const MISSING: i32 = 2;

/// A scene with two logs of two lines each; also returns the path of one of them.
fn scene(user: User) -> Result<(Scene, PathBuf)> {
    let scene = Scene::new(user)?;
    for program in ["true", "false"] {
        scene.portcullis(&["run", "--", program])?;
    }
    let log = scene.logs()?.pop().context("a log")?;
    verified(&scene, None, INTACT)?;
    verified(&scene, Some(&log), INTACT)?;
    Ok((scene, log))
}

/// Runs `audit verify` on one log or on all, with the output for people and with the JSON output, and returns the
/// former.
fn verified(scene: &Scene, log: Option<&Path>, code: i32) -> Result<Finished> {
    let file = log.map(|log| log.display().to_string());
    let words: Vec<&str> = ["audit", "verify"].into_iter().chain(file.as_deref()).collect();
    let told = scene.portcullis(&words)?.ended_with(code)?;
    if code != MISSING {
        let for_programs = scene.portcullis(&[&words, &["--json"][..]].concat())?.ended_with(code)?;
        let value: Value = serde_json::from_str(&for_programs.stdout)?;
        ensure!(value.get("intact") == Some(&Value::Bool(code == INTACT)), "{value:#}");
        let broken: Vec<&Value> = value
            .pointer("/logs")
            .and_then(Value::as_array)
            .context("logs")?
            .iter()
            .filter(|log| log.get("intact") == Some(&Value::Bool(false)))
            .collect();
        ensure!(broken.len() == usize::from(code == BROKEN), "one log is broken: {value:#}");
    }
    Ok(told)
}

fn lines_cut_at_the_end_are_told(user: User) -> Result<()> {
    let (scene, log) = scene(user)?;
    let text = fs::read_to_string(&log)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    ensure!(lines.len() == 2, "{text}");
    for kept in [1, 0] {
        fs::write(&log, lines.get(..kept).unwrap_or_default().concat())?;
        for named in [None, Some(log.as_path())] {
            let told = verified(&scene, named, BROKEN)?;
            let words =
                format!("it has {kept} of the 2 lines that were written: its end was cut off, or lost");
            ensure!(told.stdout.contains(&words) && told.stdout.contains("BROKEN"), "{told:#?}");
        }
        // The remaining lines are still shown.
        scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    }
    // The log is cut in the middle of the last line.
    fs::write(&log, text.get(..text.len() - 9).context("a long line")?)?;
    verified(&scene, None, BROKEN)?;
    // A line of another log does not match as the last line.
    let other = scene.logs()?.into_iter().find(|other| *other != log).context("another log")?;
    let line = fs::read_to_string(other)?.lines().nth(1).context("a line")?.to_owned();
    fs::write(&log, format!("{}{line}\n", lines.first().context("a line")?))?;
    verified(&scene, None, BROKEN)?;
    fs::write(&log, &text)?;
    verified(&scene, None, INTACT)?;
    Ok(())
}

fn a_log_that_is_gone_is_told(user: User) -> Result<()> {
    let (scene, log) = scene(user)?;
    let text = fs::read_to_string(&log)?;
    fs::remove_file(&log)?;
    for named in [None, Some(log.as_path())] {
        let told = verified(&scene, named, BROKEN)?;
        let words = "the log is gone, 2 lines of it had been written; if you removed it, remove `";
        ensure!(told.stdout.contains("MISSING") && told.stdout.contains(words), "{told:#?}");
    }
    // Removing the log together with its end record, as the message suggests, leaves no trace, as the help says.
    let name = log.file_stem().context("a name")?.to_string_lossy().into_owned();
    let head = log.with_file_name("heads").join(format!("{name}.head"));
    let record = fs::read_to_string(&head)?;
    fs::remove_file(&head)?;
    verified(&scene, None, INTACT)?;
    let told = verified(&scene, Some(&log), MISSING)?;
    ensure!(told.stderr.contains("there is no log `"), "{told:#?}");
    // The end record alone is removed: the first line of a log says that an end record exists.
    scene.write(&log, &text)?;
    let told = verified(&scene, None, BROKEN)?;
    ensure!(told.stdout.contains("which says where the log ends"), "{told:#?}");
    scene.write(&head, &record)?;
    verified(&scene, None, INTACT)?;
    Ok(())
}

fn a_changed_line_is_told_whichever_it_is(user: User) -> Result<()> {
    let (scene, log) = scene(user)?;
    let text = fs::read_to_string(&log)?;
    // The second line contains the hash of the first one; only the end record covers the last line.
    for (place, from, to) in
        [(0, "\"allow\"", "\"deny\""), (1, "\"outcome\"", "\"Outcome\""), (1, "exit ", "exit 4")]
    {
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(number, line)| if number == place { line.replacen(from, to, 1) } else { line.to_owned() })
            .collect();
        let changed = format!("{}\n", lines.join("\n"));
        ensure!(changed != text, "`{from}` is in line {place} of {text}");
        fs::write(&log, changed)?;
        for named in [None, Some(log.as_path())] {
            let told = verified(&scene, named, BROKEN)?;
            ensure!(
                told.stdout.contains("BROKEN") && told.stdout.contains("line 2"),
                "{place} {to}: {told:#?}"
            );
        }
    }
    Ok(())
}

/// Every statement of the help about what is detected is one of the cases above, in the same words.
fn the_help_says_what_happens(user: User) -> Result<()> {
    let (scene, log) = scene(user)?;
    let help = scene.portcullis(&["audit", "verify", "--help"])?.ended_with(0)?.stdout;
    let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (sentence, code) in [
        (
            "The exit status is 0 if every line follows from the one before and none is missing at the end",
            INTACT,
        ),
        ("1 if a log was changed, cut off, removed or cannot be read", BROKEN),
        ("2 if there is no such file", MISSING),
    ] {
        ensure!(flat.contains(sentence), "`{sentence}` ({code}) is not in {help}");
    }
    for sentence in [
        "A program that runs as you outside the sandbox can change both unnoticed.",
        "If you remove a log, remove its record as well.",
    ] {
        ensure!(flat.contains(sentence), "`{sentence}` is not in {help}");
    }
    ensure!(
        !flat.contains("nothing was taken out"),
        "that cannot be said of what the account itself can write: {help}"
    );
    // The log cannot be read: a directory is in its place.
    fs::remove_file(&log)?;
    fs::create_dir(&log)?;
    verified(&scene, Some(&log), BROKEN)?;
    verified(&scene, Some(&scene.project().join("nowhere")), MISSING)?;
    Ok(())
}
