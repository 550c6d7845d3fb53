//! The question of `run --ask prompt`, on a terminal of its own.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, Terminal, User, processes};

as_each_user!(
    once_is_once,
    enter_refuses,
    what_was_typed_before_is_no_answer,
    what_is_not_answered_in_time_is_a_no,
    an_interrupt_runs_nothing,
);

/// The last part of a question.
const QUESTION: &str = "Why: ";
const CANNOT_EXECUTE: i32 = 126;
const INTERRUPTED: i32 = 128 + 2;

fn once_is_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut terminal = asked(&scene)?;
    terminal.press(&format!("{}\r", key_of_once(&terminal)?))?;
    let (code, shown) = terminal.end()?;
    ensure!(code == 0 && scene.project().join("made").exists(), "{code}:\n{shown}");
    Ok(())
}

fn enter_refuses(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut terminal = asked(&scene)?;
    terminal.press("\r")?;
    let (code, shown) = terminal.end()?;
    ensure!(code == CANNOT_EXECUTE && !scene.project().join("made").exists(), "{code}:\n{shown}");
    Ok(())
}

/// The command could have told the user what to type: the letter alone, or input from before the question, permits
/// nothing.
fn what_was_typed_before_is_no_answer(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("made");
    let script = format!("read word; touch {}; echo left", outside.display());
    scene.write(&scene.project().join("script"), &script)?;
    let mut terminal = Terminal::start(&scene, &["run", "--ask", "prompt", "--", "/bin/bash", "script"])?;
    terminal.press("go\ro\ro")?;
    terminal.wait_for(QUESTION)?;
    let letter: String = key_of_once(&terminal)?.chars().filter(char::is_ascii_alphabetic).collect();
    ensure!(!letter.is_empty() && !terminal.shown().contains("left"));
    terminal.press(&format!("{letter}\r"))?;
    // It is said, and asked again.
    terminal.wait_for("none of the answers")?;
    terminal.press("\r")?;
    let (_, shown) = terminal.end()?;
    ensure!(shown.contains("left") && !outside.exists(), "{shown}");
    Ok(())
}

/// The answer is typed, without Enter.
fn what_is_not_answered_in_time_is_a_no(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] }, "ask": { "timeoutMs": 3000 } }"#;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), settings)?;
    let mut terminal = asked(&scene)?;
    terminal.press(&key_of_once(&terminal)?)?;
    terminal.wait_for("no answer came in time")?;
    let (code, shown) = terminal.end()?;
    ensure!(code == CANNOT_EXECUTE && !scene.project().join("made").exists(), "{code}:\n{shown}");
    let explained = scene.portcullis(&["explain", "LAST"])?.ended_with(0)?;
    ensure!(explained.stdout.contains("nobody: no answer came in time"), "{explained:#?}");
    Ok(())
}

/// Returns the text that the question asks the user to type.
fn key_of_once(terminal: &Terminal) -> Result<String> {
    let shown = terminal.shown();
    let key = shown.lines().find_map(|line| line.trim().strip_prefix("[o-")?.split_once(']'));
    Ok(format!("o-{}", key.context("a key for once")?.0))
}

/// Ctrl-C at the question ends `run`; no command runs and no file is left.
fn an_interrupt_runs_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut terminal = asked(&scene)?;
    terminal.press("\x03")?;
    let (code, shown) = terminal.end()?;
    ensure!(code == INTERRUPTED && !scene.project().join("made").exists(), "{code}:\n{shown}");
    processes::wait_scene_gone(&scene, |_| false)
}

/// Starts a command that no policy allows, and waits for the question.
fn asked(scene: &Scene) -> Result<Terminal> {
    let policy = portcullis_it::guest("deny-one", scene.user())?.display().to_string();
    let mut terminal =
        Terminal::start(scene, &["run", "--policy", &policy, "--ask", "prompt", "--", "touch", "made"])?;
    terminal.wait_for(QUESTION)?;
    Ok(terminal)
}
