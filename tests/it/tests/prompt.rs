//! The question of `run --ask prompt`, on a terminal of its own.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, Terminal, User, processes};

as_each_user!(once_is_once, enter_refuses, an_interrupt_runs_nothing);

const QUESTION: &str = "No (default)";
const CANNOT_EXECUTE: i32 = 126;
const INTERRUPTED: i32 = 128 + 2;

fn once_is_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut terminal = asked(&scene)?;
    let key = terminal.shown().lines().find_map(|line| line.trim().strip_suffix("] Allow once"));
    let key = key.and_then(|text| text.strip_prefix('[')).context("a key for once")?.to_owned();
    terminal.press(&format!("{key}\r"))?;
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

/// Ctrl-C at the question ends us, with nothing run and nothing left.
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
