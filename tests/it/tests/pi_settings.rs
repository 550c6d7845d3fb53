//! The settings from the user's point of view, in pi's terminal: questions, kept answers, `/sandbox` and manual edits.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns};
use portcullis_it::{Deadline, Launch, PiVersion, Scene, Screen, User};
use serde_json::Value;

on_each_pi!(kept_answers_and_the_menu, a_parents_entry, a_question_does_not_take_the_menus_keys);

fn kept_answers_and_the_menu(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.home().join(name).display().to_string();
    for (name, text) in [("one", "first-text"), ("two", "second-text"), ("three", "third-text")] {
        scene.write(at(name).as_ref(), text)?;
    }
    let made = scene.outside().join("made").display().to_string();
    let script = turns([
        // A command does not see the file. That is asked about where its text names it, and otherwise when it has failed.
        ("hidden", vec![bash("cat $HOME/one"), expecting_no("first-text", say("hidden over"))]),
        ("named", vec![bash(&format!("cat '{}'", at("one"))), expecting_no("first-text", say("named over"))]),
        ("alpha", vec![read(&at("one")), expecting("first-text", say("alpha over"))]),
        ("beta", vec![read(&at("two")), expecting("second-text", say("beta over"))]),
        (
            "gamma",
            vec![
                bash(&format!("cat '{}' '{}'; cat '{}'", at("one"), at("two"), at("three"))),
                expecting("first-textsecond-text", expecting_no("third-text", say("gamma over"))),
            ],
        ),
        ("delta", vec![read(&at("three")), expecting_no("third-text", say("delta over"))]),
        ("again", vec![read(&at("three")), expecting_no("third-text", say("again over"))]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    // The two states of `@oddsjam/pi-sandbox`, word for word.
    screen.wait_for("Portcullis on · writes here · asks network")?;
    screen.enter("hidden")?;
    screen.wait_for("[m]")?;
    shows(&screen, &["cat wants to read ~/one", "[o]    If the command runs again"])?;
    screen.press_calmly("Escape")?;
    screen.wait_for("hidden over")?;
    screen.enter("named")?;
    screen.wait_for("[m]")?;
    shows(&screen, &[&at("one"), "[esc]  No", "[o]    For this command [s]"])?;
    screen.press_calmly("Escape")?;
    screen.wait_for("named over")?;

    screen.enter("alpha")?;
    screen.wait_for("[A]")?;
    let none = [
        "[esc]  No",
        "[o]    Once",
        "[s]    For this session",
        "[P]    Always in this project",
        "[A]    Always, in every project",
        "[m]    More: no for this session · no, because … · details",
    ];
    shows(&screen, &none)?;
    // A lower-case letter selects an option; Enter confirms it.
    screen.press_calmly("p")?;
    screen.wait_for("→ [P]")?;
    ensure!(!settings(&scene, "projects.json").exists(), "nothing was answered yet");
    screen.press("Enter")?;
    screen.wait_for("alpha over")?;
    let project = scene.project().display().to_string();
    let entry = json(&scene, "projects.json")?.get(&project).cloned().context("an entry for the project")?;
    ensure!(
        entry.pointer("/grants/0/path").is_some_and(|path| path.to_string().contains("home/one")),
        "{entry}"
    );
    ensure!(entry.get("extends") == Some(&"default".into()), "it holds what differs: {entry}");
    ensure!(entry.get("filesystem").is_none(), "and no copy: {entry}");

    screen.enter("beta")?;
    screen.wait_for("[A]")?;
    shows(&screen, &none)?;
    // A narrow terminal shows the same question, and so does a wide one afterwards.
    screen.resize(46, 30)?;
    screen.wait("the question on a narrow terminal", |text| text.contains("[m]    More"))?;
    screen.resize(110, 40)?;
    screen.wait_for("[m]    More")?;
    // An upper-case letter selects and confirms an option.
    screen.press_calmly("A")?;
    screen.wait_for("beta over")?;
    ensure!(json(&scene, "default.json")?.to_string().contains("home/two"));
    ensure!(!json(&scene, "projects.json")?.to_string().contains("home/two"), "one answer is written once");

    // A grant for a tool applies to commands as well, and covers no other file.
    screen.enter("gamma")?;
    screen.wait_for("[m]")?;
    shows(&screen, &["wants to read", "[esc]  No"])?;
    screen.press_calmly("Escape")?;
    screen.wait_for("gamma over")?;

    screen.enter("delta")?;
    screen.wait_for("[m]")?;
    screen.press_calmly("m")?;
    screen.wait_for("[d]    No, for this session")?;
    screen.press_calmly("d")?;
    screen.wait_for("delta over")?;
    screen.enter("again")?;
    screen.wait_for("again over")?;

    menu(&screen, &scene, &made)?;
    by_hand(&screen, &scene)?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// `s` saves in the menu, and allows for the session in a question. So a question waits while the menu is open; the
/// menu shows the number of waiting questions, and the terminal bell rings.
fn a_question_does_not_take_the_menus_keys(version: PiVersion, user: User) -> Result<()> {
    const QUESTION: &str = "[s]    For this session";
    let scene = Scene::new(user)?;
    let (started, go, made) =
        (scene.project().join("started"), scene.project().join("go"), scene.outside().join("made"));
    let command =
        format!("touch started; while [ ! -e go ]; do sleep 0.05; done; echo x > {}", made.display());
    let script = turns([("alpha", vec![bash(&command), say("alpha over")])]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · asks network")?;
    screen.enter("alpha")?;
    Deadline::start().until("the command", || Ok(started.exists().then_some(())))?;
    screen.enter("/sandbox")?;
    screen.wait_for("→ Disable sandbox")?;
    scene.write(&go, "")?;
    screen.wait_for("1 question waiting")?;
    screen.wait_rung(1)?;
    for key in ["s", "o", "A"] {
        screen.press_calmly(key)?;
    }
    let text = screen.text()?;
    ensure!(text.contains("→ Disable sandbox") && !text.contains(QUESTION), "{text}");
    screen.press("Escape")?;
    screen.wait_for(QUESTION)?;
    screen.wait_rung(2)?;
    ensure!(!made.exists(), "nothing was answered");
    screen.press_calmly("Escape")?;
    screen.wait_for("alpha over")?;
    ensure!(!made.exists(), "it was refused");
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// `/sandbox`: the summary, the wizard, and turning the sandbox off and on.
fn menu(screen: &Screen, scene: &Scene, made: &str) -> Result<()> {
    screen.enter("/sandbox")?;
    let shown = screen.wait_for("Recent decisions")?;
    for part in [
        "→ Disable sandbox",
        "Edit project config",
        "Edit default config",
        "Policies: workspace",
        "Settings: projects.json",
    ] {
        ensure!(shown.contains(part), "`{part}` is missing:\n{shown}");
    }
    ensure!(shown.contains("This session: no reading"), "what was refused for the session is told:\n{shown}");
    screen.press("Down")?;
    screen.wait_for("→ Edit project config")?;
    screen.press("Enter")?;
    screen.wait_for("→ enabled")?;
    screen.press("Down")?;
    screen.wait_for("→ network.allowedDomains")?;
    screen.press("Enter")?;
    screen.wait_for("a add")?;
    screen.press("a")?;
    screen.enter("https://bad")?;
    screen.wait_for("without scheme")?;
    for _ in 0.."https://bad".len() {
        screen.press("BSpace")?;
    }
    screen.enter("example.com")?;
    screen.wait_for("→ example.com")?;
    screen.press("b")?;
    screen.wait_for("(not saved)")?;
    screen.press("s")?;
    screen.wait_for("saved, and in force")?;
    screen.press("Escape")?;
    screen.wait_for("Recent decisions")?;
    screen.press("Escape")?;
    screen.wait_gone("Recent decisions")?;
    screen.wait_for("Portcullis on · writes here · 1 host, asks others")?;

    screen.enter("/sandbox")?;
    screen.wait_for("→ Disable sandbox")?;
    screen.press("Enter")?;
    screen.wait_for("Portcullis OFF")?;
    screen.enter(&format!("!echo x > '{made}'; echo off-$((40+2))"))?;
    screen.wait_for("off-42")?;
    ensure!(scene.outside().join("made").exists(), "off means off");
    std::fs::remove_file(made)?;

    screen.enter("/sandbox")?;
    let shown = screen.wait_for("→ Enable sandbox")?;
    ensure!(!shown.contains("This session: no reading"), "nothing is remembered: {shown}");
    screen.press("Enter")?;
    screen.wait_for("Portcullis on · writes here · 1 host, asks others")?;
    screen.enter(&format!("!echo x > '{made}'; echo on-$((40+2))"))?;
    // The write is held and leads to a question, unlike the ones while the sandbox was off.
    screen.wait_for("[esc]  No")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("on-42")?;
    ensure!(!scene.outside().join("made").exists(), "on means on before the next call");
    Ok(())
}

/// Manual edits take effect without a restart; a broken file is reported and changes nothing.
fn by_hand(screen: &Screen, scene: &Scene) -> Result<()> {
    let file = settings(scene, "projects.json");
    let good = std::fs::read_to_string(&file)?;
    std::fs::write(&file, good.replace("\"example.com\"", "\"example.com\", \"example.org\""))?;
    screen.wait_for("Portcullis on · writes here · 2 hosts, asks others")?;
    std::fs::write(&file, "{ broken")?;
    screen.wait_for("1 warning")?;
    screen.wait_for("STILL in force")?;
    ensure!(screen.text()?.contains("2 hosts"), "the last good settings hold");
    std::fs::write(&file, good)?;
    screen.wait("the mended settings", |text| {
        text.contains("Portcullis on · writes here · 1 host, asks others") && !text.contains("1 warning")
    })?;
    Ok(())
}

/// In a directory below the one of an entry, an answer for the project can be stored in two places.
fn a_parents_entry(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let secret = scene.home().join("one");
    scene.write(&secret, "first-text")?;
    let above = scene.project().parent().context("a scene")?.display().to_string();
    let parent = r#"{ "network": { "allowedDomains": ["parent.example"], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;
    scene.write(&settings(&scene, "projects.json"), &format!("{{ \"{above}\": {parent} }}"))?;
    let path = secret.display().to_string();
    let script = turns([("alpha", vec![read(&path), expecting("first-text", say("alpha over"))])]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · 1 host, asks others")?;
    screen.enter("alpha")?;
    screen.wait_for("[A]")?;
    let project = scene.project().display().to_string();
    let (parent, new) = (
        format!("[P]    Always in this project (parent: {above})"),
        format!("[N]    Always in this project (new config: {project})"),
    );
    shows(&screen, &["[esc]  No", "[s]    For this session", &parent, "[A]    Always, in every project"])?;
    // A choice that few need is folded, and its key does nothing before it is shown.
    screen.press_calmly("N")?;
    screen.press_calmly("m")?;
    screen.wait_for("[N]")?;
    shows(&screen, &["[A]    Always, in every project", &new])?;
    screen.press_calmly("N")?;
    screen.wait_for("alpha over")?;
    let written = json(&scene, "projects.json")?;
    let granted = |key: &str| written.get(key).and_then(|entry| entry.pointer("/grants/0/path")).cloned();
    ensure!(granted(&above).is_none(), "the parent's entry stays: {written}");
    ensure!(granted(&project) == Some(path.into()), "{written}");
    let extends = written.get(&project).and_then(|entry| entry.get("extends"));
    ensure!(extends == Some(&"parent".into()), "over the parent's: {written}");
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

fn shows(screen: &Screen, wanted: &[&str]) -> Result<()> {
    // The terminal wraps long lines, so only the words are compared.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(&screen.text()?);
    let mut rest = shown.as_str();
    for line in wanted {
        let line = flat(line);
        let found =
            rest.find(&line).with_context(|| format!("`{line}` is not there, in this order:\n{shown}"))?;
        rest = rest.get(found + line.len()..).unwrap_or_default();
    }
    Ok(())
}

fn settings(scene: &Scene, name: &str) -> std::path::PathBuf {
    scene.home().join(".pi/agent/sandbox").join(name)
}

fn json(scene: &Scene, name: &str) -> Result<Value> {
    let file = settings(scene, name);
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading `{}`", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}
