//! Text from outside never controls a terminal: every source of text, on every surface that shows it.
//!
//! A row puts [`ODD`] somewhere and checks the output. The output must contain the [`MARK`] in it, so that no row
//! passes because the text was not shown at all, and no character for which [`is_forbidden`] holds.

mod host;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, Terminal, User, guest};
use serde_json::{Value, json};

use table::{ARGUMENTS, PROJECT, PROJECTS, Row, SETTINGS, VERBS_OF_A_LOG, VERBS_OF_SETTINGS};

as_each_user!(
    arguments_are_quoted_back,
    settings_are_shown,
    settings_of_a_project_are_shown,
    names_of_variables_are_shown,
    what_commands_and_paths_leave_in_the_log_is_shown,
    a_log_that_was_written_by_hand_is_shown,
    what_a_policy_says_is_shown,
    packs_are_shown,
    a_question_on_the_terminal_is_shown,
);

const MARK: &str = "m4rk";
/// The mark in the texts of a policy, which the test guests contain.
const MARK_OF_A_POLICY: &str = "yako";

/// Terminal sequences, control characters of both kinds, direction marks and isolates, zero-width characters, tags, a
/// carriage return and line separators. It has no slash, so it is a valid file name.
pub(crate) const ODD: &str = "m4rk\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{2069}\u{200b}\u{200d}\u{feff}\
                              \u{ad}\u{61c}\u{e0041}\u{e007f}\r\u{8}\u{85}\u{2028}\u{7f}end";

/// Whether a character controls a terminal, is invisible, or reorders text. This list is independent of the program's
/// own, which is under test.
fn is_forbidden(character: char) -> bool {
    let is_control = character.is_control() && character != '\n';
    is_control
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Fails on the first forbidden character.
pub(crate) fn scan(what: &str, text: &str) -> Result<()> {
    match text.char_indices().find(|(_, character)| is_forbidden(*character)) {
        None => Ok(()),
        Some((at, character)) => {
            let before: String = text.get(..at).unwrap_or_default().chars().rev().take(80).collect();
            let before: String = before.chars().rev().collect();
            anyhow::bail!("{what}: {character:?} is shown behind {before:?}");
        }
    }
}

/// Checks the output of a program.
fn shown(what: &str, mark: &str, told: &Finished) -> Result<()> {
    let all = format!("{}{}", told.stdout, told.stderr);
    scan(what, &all)?;
    ensure!(all.contains(mark), "{what} does not show it: {told:#?}");
    Ok(())
}

/// Runs verbs in whose words `ODD` stands for the text, and checks the output of each.
fn verbs(scene: &Scene, what: &str, mark: &str, verbs: &[&[&str]]) -> Result<()> {
    for words in verbs {
        let words: Vec<String> = words.iter().map(|word| word.replace("ODD", ODD)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = scene.portcullis(&words)?;
        shown(&format!("{what}: {words:?}"), mark, &told)?;
    }
    Ok(())
}

fn default_file(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox/default.json")
}

/// The control comes first: a program that prints the text unchanged fails the check.
fn arguments_are_quoted_back(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let raw = Finished::run(Command::new("printf").args(["%s", ODD]))?;
    ensure!(scan("control", &raw.stdout).is_err() && raw.stdout == ODD, "{raw:?}");
    for character in ODD.chars().filter(|character| !character.is_ascii_graphic()) {
        ensure!(scan("control", &character.to_string()).is_err(), "{character:?}");
    }
    verbs(&scene, "an argument", MARK, ARGUMENTS)
}

fn settings_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = default_file(&scene);
    rows(&scene, &file, SETTINGS, completed)?;
    rows(&scene, &file.with_file_name("projects.json"), PROJECTS, |settings| settings)
}

/// Adds the lists that settings must contain.
fn completed(mut settings: Value) -> Value {
    for (member, list, usual) in [
        ("network", "allowedDomains", json!([])),
        ("network", "deniedDomains", json!([])),
        ("filesystem", "denyRead", json!(["/home"])),
        ("filesystem", "allowRead", json!(["."])),
        ("filesystem", "allowWrite", json!(["."])),
        ("filesystem", "denyWrite", json!([])),
    ] {
        let members = settings.as_object_mut().map(|all| all.entry(member).or_insert_with(|| json!({})));
        if let Some(members) = members.and_then(Value::as_object_mut) {
            members.entry(list).or_insert(usual);
        }
    }
    settings
}

fn settings_of_a_project_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    rows(&scene, &scene.project().join(".pi/portcullis.json"), PROJECT, |settings| settings)
}

/// Writes the content of each row to the file and checks the output of the verbs that show it.
fn rows(scene: &Scene, file: &Path, rows: &[Row], complete: fn(Value) -> Value) -> Result<()> {
    let odd = json!(ODD).to_string();
    for (what, text, words) in rows {
        let text = match text.contains("RAW") {
            true => text.replace("RAW", ODD),
            false => {
                let text = text.replace("ODD", odd.trim_matches('"'));
                complete(serde_json::from_str(&text).context(text)?).to_string()
            }
        };
        scene.write(file, &text)?;
        verbs(scene, what, MARK, words)?;
        std::fs::remove_file(file)?;
    }
    Ok(())
}

fn names_of_variables_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let name = format!("{ODD}_TOKEN");
    for words in [&["config", "show"][..], &["config", "show", "--json"]] {
        let told = Finished::run(scene.portcullis_command(words)?.env(&name, "x"))?.ended_with(0)?;
        shown(&format!("{words:?}"), MARK, &told)?;
        if words.contains(&"--json") {
            let told: Value = serde_json::from_str(&told.stdout)?;
            let names = told.get("keptBackVariables").context("variables")?;
            ensure!(names.to_string().contains('\u{202e}'), "the JSON means the name: {names}");
        }
    }
    Ok(())
}

fn what_commands_and_paths_leave_in_the_log_is_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join(ODD).display().to_string();
    let command = format!(": '{ODD}'");
    let run = |words: &[&str]| -> Result<Finished> {
        scene.portcullis(&[&["run", "--ask", "deny", "--"], words].concat())
    };
    run(&["bash", "-c", &command])?.ended_with(0)?;
    verbs(&scene, "a command", MARK, VERBS_OF_A_LOG)?;
    // The error messages of the shell are output of the command, which is passed on unchanged.
    let script = "exec 2> /dev/null; echo x > \"$1\"; mkdir \"$1\"; true";
    let refused = run(&["bash", "-c", script, "-", &outside])?;
    shown("what `run` says of a path", MARK, &refused)?;
    verbs(&scene, "a path", MARK, VERBS_OF_A_LOG)?;
    scan("a program that is not there", &run(&[ODD])?.stderr)
}

/// An attacker may have changed any text of a log.
fn a_log_that_was_written_by_hand_is_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let log = scene.logs()?.pop().context("a log")?;
    let lines = std::fs::read_to_string(&log)?;
    let changed: String = lines
        .lines()
        .map(|line| Ok(format!("{}\n", changed(serde_json::from_str(line)?))))
        .collect::<Result<_>>()?;
    scene.write(&log, &changed)?;
    verbs(&scene, "a changed log", MARK, VERBS_OF_A_LOG)?;
    let (file, odd) = (log.display().to_string(), log.with_file_name(format!("{ODD}.jsonl")));
    for words in [
        &["policy", "replay", &file][..],
        &["policy", "test", "workspace.wasm", "--from-log", &file],
        &["policy", "diff", "workspace.wasm", "workspace.wasm", "--log", &file],
    ] {
        std::fs::copy(shipped("workspace"), scene.project().join("workspace.wasm"))?;
        scan(&format!("{words:?}"), &all_of(&scene.portcullis(words)?))?;
    }
    std::fs::rename(&log, &odd)?;
    verbs(
        &scene,
        "a log's name",
        MARK,
        &[&["audit", "verify"], &["audit", "verify", "--json"], &["audit", "tail"]],
    )
}

fn all_of(told: &Finished) -> String {
    format!("{}{}", told.stdout, told.stderr)
}

/// Prepends the text to every string of a log line, except in members without which the line is not parsed.
fn changed(mut line: Value) -> Value {
    fn odd(value: &mut Value) {
        match value {
            Value::String(text) => *text = format!("{ODD}{text}"),
            Value::Array(items) => items.iter_mut().for_each(odd),
            Value::Object(members) => members.values_mut().for_each(odd),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    const KEPT: [&str; 5] = ["kind", "previous", "session", "head", "context"];
    for (name, value) in line.as_object_mut().into_iter().flatten() {
        if !KEPT.contains(&name.as_str()) {
            odd(value);
        }
    }
    line
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies").join(name).join("policy.wasm")
}

/// Writes settings with the hostile policy, which does `fault` in `place`.
pub(crate) fn hostile(scene: &Scene, fault: &str, place: &str) -> Result<()> {
    let policy = guest("hostile", scene.user())?;
    scene.trust(&policy)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, { "use": policy, "config": { "fault": fault, "in": place } }],
    });
    scene.write(&default_file(scene), &settings.to_string())
}

fn what_a_policy_says_is_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let policy = guest("hostile", user)?.display().to_string();
    const CHECKS: &[&[&str]] = &[
        &["check", "read", "x"],
        &["check", "--json", "read", "x"],
        &["check", "--explain", "read", "x"],
        &["run", "--ask", "deny", "--", "true"],
        &["explain", "LAST"],
        &["explain", "LAST", "--json"],
        &["audit", "tail", "--json"],
    ];
    for fault in ["odd-denial", "odd-question"] {
        hostile(&scene, fault, "evaluate")?;
        verbs(&scene, fault, MARK_OF_A_POLICY, CHECKS)?;
        let config = format!(r#"{{"fault":"{fault}","in":"evaluate"}}"#);
        for more in [&[][..], &["--json"]] {
            let words = [&["policy", "run", "--config", &config, &policy, "read", "/x"], more].concat();
            shown(&format!("{words:?}"), MARK_OF_A_POLICY, &scene.portcullis(&words)?)?;
        }
        for words in [
            &["policy", "lint", "--config", &config, &policy][..],
            &["policy", "fuzz", "--config", &config, &policy, "--runs", "3"],
        ] {
            scan(&format!("{words:?}"), &all_of(&scene.portcullis(words)?))?;
        }
    }
    // The guest returns no valid answer: the failure is reported, with or without a part of the text.
    for place in ["configure", "evaluate", "standing", "for-command"] {
        hostile(&scene, "odd-texts", place)?;
        for words in CHECKS.iter().chain(VERBS_OF_SETTINGS) {
            scan(&format!("{place}: {words:?}"), &all_of(&scene.portcullis(words)?))?;
        }
    }
    Ok(())
}

/// A pack whose manifest, cases and licence contain the text wherever text is possible.
fn packs_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let odd: String = ODD.chars().map(|character| format!("\\U{:08X}", u32::from(character))).collect();
    let pack = scene.project().join("pack");
    let manifest = format!(
        "[policy]\nid = 'test:no-wasi'\nversion = '0.1.0'\ntitle = \"{odd}\"\ndescription = \"{odd}\"\nlicense = \"{odd}\"\n\
         repository = \"{odd}\"\nauthors = [\"{odd}\"]\n[contract]\nversion = '0.1'\n[tests]\nfiles = ['cases.toml']"
    );
    let cases = format!(
        "[given]\ncwd = '/srv/app'\n[[case]]\nname = \"{odd}\"\nread = \"/srv/app/{odd}\"\nexpect = 'deny'\nrule = \"{odd}\"\n"
    );
    let plain = manifest.replace(&odd, "plain");
    scene.write(&pack.join("cases.toml"), &cases)?;
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/0.1.0/verdicts.wasm");
    std::fs::copy(golden, pack.join("component.wasm"))?;
    scene.user().own(&pack.join("component.wasm"))?;
    let mut built = false;
    for text in [&manifest, &plain] {
        scene.write(&pack.join("policy.toml"), text)?;
        for words in [
            &["policy", "build", "pack"][..],
            &["policy", "build", "pack", "--json"],
            &["policy", "inspect", "pack"],
            &["policy", "inspect", "pack", "--json"],
            &["policy", "test", "pack"],
            &["policy", "test", "pack", "--json"],
            &["policy", "test", "pack", "--junit", "report.xml"],
            &["policy", "add", "pack/build/pack.wasm", "--unsigned"],
            &["policy", "list"],
        ] {
            let told = scene.portcullis(words)?;
            scan(&format!("{words:?}"), &all_of(&told))?;
            built |= words.get(1) == Some(&"test") && all_of(&told).contains(MARK);
        }
    }
    ensure!(built, "no case has told its name");
    Ok(())
}

/// `run` itself asks on the terminal and draws the question.
fn a_question_on_the_terminal_is_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    // A character that ends a line would end the script's line, or break the line of the terminal.
    let name: String =
        ODD.chars().filter(|character| !matches!(character, '\r' | '\u{85}' | '\u{2028}')).collect();
    let script = scene.project().join("try");
    scene.write(
        &script,
        &format!("mkdir '{}/{name}' 2> /dev/null; echo over-$((40+2))\n", scene.outside().display()),
    )?;
    let mut terminal = Terminal::start(&scene, &["run", "--ask", "prompt", "--", "sh", "try"])?;
    terminal.wait_for(MARK)?;
    terminal.wait_for("Why: ")?;
    let question: String =
        terminal.shown().chars().filter(|character| !matches!(character, '\r' | '\u{1b}')).collect();
    scan("a question on the terminal", &question)?;
    ensure!(!terminal.shown().contains("\u{1b}]0;owned") && !terminal.shown().contains("\u{1b}[2Jm4rk"));
    terminal.press("\r")?;
    Ok(())
}
