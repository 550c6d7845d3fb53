//! Policies, packs and presets in `/sandbox`, switched on and off by keys in pi's terminal, on terminals of three widths.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, say, turns};
use portcullis_it::{Launch, PiVersion, Scene, Screen, User};
use serde_json::Value;

on_each_pi!(what_is_switched_on_counts_at_once, every_list_is_filtered_at_every_width);

const PUSH: &str = "git push --force origin main";
/// The reason of `git-guard`.
const REFUSED: &str = "overwrites what was pushed";

fn what_is_switched_on_counts_at_once(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let pack = scene.install_pack()?.to_owned();
    let script = turns([
        ("before", vec![bash(PUSH), expecting_no(REFUSED, say("before over"))]),
        ("guarded", vec![bash(PUSH), expecting(REFUSED, say("guarded over"))]),
        ("after", vec![bash(PUSH), expecting_no(REFUSED, say("after over"))]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · asks network")?;
    screen.enter("before")?;
    screen.wait_for("before over")?;

    switch(&screen, "Policies and packs", "git-guard", "git-guard is on")?;
    ensure!(used(&scene)?.contains(&"git-guard".to_owned()), "{:?}", used(&scene));
    screen.enter("guarded")?;
    screen.wait_for("guarded over")?;
    switch(&screen, "Policies and packs", "git-guard", "git-guard is off")?;
    ensure!(used(&scene)? == ["workspace"], "{:?}", used(&scene));
    screen.enter("after")?;
    screen.wait_for("after over")?;

    // A pack is in the same list.
    switch(&screen, "Policies and packs", &pack, &format!("{pack} is on"))?;
    ensure!(used(&scene)?.contains(&pack), "{:?}", used(&scene));
    let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    ensure!(shown.stdout.contains(&pack), "{shown:#?}");
    switch(&screen, "Policies and packs", &pack, &format!("{pack} is off"))?;

    // Without the preset a check asks, with it it allows.
    let check = || scene.portcullis(&["check", "connect", "registry.npmjs.org:443"]);
    check()?.ended_with(10)?;
    switch(&screen, "Presets", "npm", "npm is on")?;
    check()?.ended_with(0)?;
    screen.wait_for("asks others")?;
    switch(&screen, "Presets", "npm", "npm is off")?;
    check()?.ended_with(10)?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// Opens a list of `/sandbox`, filters it by typing, and chooses the first entry that is left.
fn switch(screen: &Screen, list: &str, entry: &str, said: &str) -> Result<()> {
    screen.enter("/sandbox")?;
    screen.wait_for("Recent decisions")?;
    filter(screen, list)?;
    screen.press("Enter")?;
    screen.wait_for("t other file")?;
    filter(screen, entry)?;
    screen.press("Enter")?;
    screen.wait_for(said)?;
    // The filter, the list, the menu. Two at once would be another key.
    screen.press("Escape")?;
    screen.wait_gone(&format!("/ {entry}"))?;
    screen.press("Escape")?;
    screen.wait_for("Recent decisions")?;
    screen.press("Escape")?;
    screen.wait_gone("Recent decisions")?;
    Ok(())
}

/// Types a filter, so that the first entry that is left is marked.
fn filter(screen: &Screen, text: &str) -> Result<()> {
    screen.press("/")?;
    screen.wait_for("type to filter")?;
    screen.ask_tmux(&["send-keys", "-l", "--", text])?;
    screen.wait_for(&format!("/ {text}"))?;
    screen.press("Enter")?;
    screen.wait(&format!("`{text}` marked"), |shown| {
        shown.lines().any(|line| line.trim_start().starts_with(&format!("→ {text}")))
    })?;
    Ok(())
}

/// The lists of the menu with more than one entry.
const LISTS: [(&str, &str); 3] =
    [("Presets", "cargo"), ("Policies and packs", "guard"), ("Edit default", "denyW")];

fn every_list_is_filtered_at_every_width(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = portcullis_it::script([say("never said")]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · asks network")?;
    for width in [40, 80, 120] {
        screen.resize(width, 40)?;
        for (list, entry) in LISTS {
            screen.enter("/sandbox")?;
            screen.wait_for("Recent decisions")?;
            filter(&screen, list)?;
            screen.press("Enter")?;
            screen.wait_for("filter")?;
            screen.wait_gone("Recent decisions")?;
            screen.press("/")?;
            screen.wait_for("type to filter")?;
            screen.ask_tmux(&["send-keys", "-l", "--", entry])?;
            let left = |text: &str| {
                let items = text.lines().filter(|line| line.contains(entry) && !line.contains("/ ")).count();
                items >= 1 && text.contains(&format!("/ {entry}")) && !text.contains("filesystem.allowRead")
            };
            screen.wait(&format!("`{entry}` alone at {width} columns"), left)?;
            ensure!(screen.text()?.lines().all(|line| line.chars().count() <= width as usize));
            // The text, the list, the menu.
            screen.press("Escape")?;
            screen.wait_gone("type to filter")?;
            screen.press("Escape")?;
            screen.wait_for("Recent decisions")?;
            screen.press("Escape")?;
            screen.wait_gone("Recent decisions")?;
        }
    }
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// Returns the policies that the default settings use.
fn used(scene: &Scene) -> Result<Vec<String>> {
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading `{}`", file.display()))?;
    let settings: Value = serde_json::from_str(&text)?;
    let listed = settings.get("policies").and_then(Value::as_array).cloned().unwrap_or_default();
    let names = listed.iter().filter_map(|entry| Some(entry.get("use")?.as_str()?.to_owned()));
    let names: Vec<String> = names.collect();
    Ok(if names.is_empty() { vec!["workspace".to_owned()] } else { names })
}
