//! Snapshots of what pi's terminal shows of Portcullis, for both versions of pi.
//!
//! After an intended change: `INSTA_UPDATE=always cargo test -p portcullis-it screens`, then read the difference.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting_no, read, say, turns};
use portcullis_it::{Launch, PiVersion, Scene, Screen, User};
use serde_json::json;

/// The snapshot of a question starts at the first line with this text.
const QUESTION: &str = "Portcullis   ";
/// The directory of the runtime directories, which are named by the numbers of users.
const RUNTIME: &str = "/run/user/";

#[test]
fn pi_0_74() -> Result<()> {
    all("0.74", PiVersion::V0_74)
}

#[test]
fn pi_1_5() -> Result<()> {
    all("1.5", PiVersion::V1_5)
}

fn all(version: &str, pi: PiVersion) -> Result<()> {
    questions(version, pi)?;
    a_parents_entry(version, pi)?;
    wizard(version, pi)
}

const SETTINGS: &str = r#"{ "escalation": "ask", "network": { "allowedDomains": ["a.example", "b.example"], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home", "~/.ssh"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": ["vendor"] } }"#;

/// The question in all its forms: a file, two at once, a write of a command, a command outside, on a wide and a narrow
/// terminal.
fn questions(version: &str, pi: PiVersion) -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let at = |name: &str| scene.outside().join(name).display().to_string();
    scene.write(at("one").as_ref(), "hunter1")?;
    let reading = |path: &str| call("read", &json!({ "path": path }));
    let script = turns([
        // The same file twice, in two spellings: pi decides which of the two calls comes first, and with the same
        // spelling one refusal would settle both.
        (
            "alpha",
            vec![
                calls([reading(&at("one")), reading(&at("../outside/one"))]),
                expecting_no("hunter1", say("alpha over")),
            ],
        ),
        ("beta", vec![bash(&format!("echo x > '{}'", at("made"))), say("beta over")]),
        (
            "gamma",
            vec![
                calls([call("run_outside_sandbox", &json!({ "command": "make install" }))]),
                say("gamma over"),
            ],
        ),
    ]);
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    let screen = Launch::guarded(&scene, pi, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · 2 hosts, asks others")?;
    screen.enter("alpha")?;
    screen.wait_for("(1 of 2)")?;
    screen.wait_for("2 questions waiting")?;
    keep(&scene, &screen, version, "question, two at once", QUESTION)?;
    screen.press_calmly("Right")?;
    screen.wait_for("← narrower")?;
    screen.press("Down")?;
    screen.wait_for("→ [o]")?;
    keep(&scene, &screen, version, "question, wider and marked", QUESTION)?;
    screen.resize(46, 34)?;
    screen.wait("the whole question on a narrow terminal", |text| {
        text.contains("[m]    More") && text.contains(QUESTION)
    })?;
    keep(&scene, &screen, version, "question, narrow", QUESTION)?;
    screen.resize(110, 40)?;
    screen.wait_for("[m]    More")?;
    keep(&scene, &screen, version, "question, wide again", QUESTION)?;
    screen.press_calmly("Escape")?;
    screen.wait_for("1 question waiting")?;
    keep(&scene, &screen, version, "question, the second", QUESTION)?;
    screen.press_calmly("Escape")?;
    screen.wait_for("alpha over")?;

    screen.enter("beta")?;
    screen.wait_for("[m]    More")?;
    keep(&scene, &screen, version, "question, a command's write", QUESTION)?;
    screen.press_calmly("Escape")?;
    screen.wait_for("beta over")?;

    screen.enter("gamma")?;
    screen.wait_for("[o]    Once")?;
    keep(&scene, &screen, version, "question, outside", QUESTION)?;
    screen.press_calmly("Escape")?;
    screen.wait_for("gamma over")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

fn a_parents_entry(version: &str, pi: PiVersion) -> Result<()> {
    let scene = Scene::new(User::Ordinary)?;
    let notes = scene.outside().join("one");
    scene.write(&notes, "hunter1")?;
    let above = scene.project().parent().context("a scene")?.display().to_string();
    let entry = format!("{{ \"{above}\": {SETTINGS} }}");
    scene.write(&scene.home().join(".pi/agent/sandbox/projects.json"), &entry)?;
    let script = turns([("alpha", vec![read(&notes.display().to_string()), say("alpha over")])]);
    let screen = Launch::guarded(&scene, pi, &script)?.screen()?;
    screen.wait_for("Portcullis on · writes here · 2 hosts")?;
    screen.enter("alpha")?;
    screen.wait_for("[m]    More")?;
    keep(&scene, &screen, version, "question, a parent's entry", QUESTION)?;
    screen.press_calmly("Escape")?;
    screen.wait_for("alpha over")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// `/sandbox`: the summary, the editors with a mistake, the toggle, and both footers.
fn wizard(version: &str, pi: PiVersion) -> Result<()> {
    const TOP: &str = "Disable sandbox";
    let scene = Scene::new(User::Ordinary)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    let screen = Launch::guarded(&scene, pi, &portcullis_it::script([say("hello")]))?.screen()?;
    screen.wait_for("Portcullis on · writes here · 2 hosts, asks others")?;
    screen.enter("/sandbox")?;
    screen.wait_for("Recent decisions")?;
    keep(&scene, &screen, version, "menu", "sandbox is on")?;
    screen.press("Down")?;
    screen.press("Down")?;
    screen.wait_for("→ Edit default config")?;
    screen.press("Enter")?;
    screen.wait_for("→ enabled")?;
    keep(&scene, &screen, version, "fields", "Edit default config")?;
    screen.press("Down")?;
    screen.wait_for("→ network.allowedDomains")?;
    screen.press("Enter")?;
    screen.wait_for("a add")?;
    keep(&scene, &screen, version, "list", "Edit default config")?;
    screen.press("a")?;
    screen.enter("https://bad")?;
    screen.wait_for("without scheme")?;
    keep(&scene, &screen, version, "list, a mistake", "Edit default config")?;
    screen.press("Escape")?;
    screen.wait_for("a add")?;
    screen.press("b")?;
    screen.wait_for("→ network.allowedDomains")?;
    screen.press("?")?;
    screen.wait_for("? fewer")?;
    keep(&scene, &screen, version, "fields, all", "Edit default config")?;
    screen.press("Escape")?;
    screen.wait_for("Recent decisions")?;
    screen.press("Escape")?;
    screen.wait_gone("Recent decisions")?;
    screen.enter("/sandbox")?;
    screen.wait_for(&format!("→ {TOP}"))?;
    screen.press("Enter")?;
    screen.wait_for("Portcullis OFF")?;
    keep(&scene, &screen, version, "footer, disabled", "Portcullis OFF")?;
    screen.enter("/sandbox")?;
    screen.wait_for("→ Enable sandbox")?;
    keep(&scene, &screen, version, "menu, disabled", "sandbox is off")?;
    screen.press("Enter")?;
    screen.wait_for("Portcullis on · writes here · 2 hosts, asks others")?;
    keep(&scene, &screen, version, "footer, enabled", "Portcullis on · writes here · 2 hosts")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// Waits until the lines from the one with `top` on stay as they are, and returns them: pi draws a screen in several
/// pieces, after a change of its size several times, and what it shows above a question keeps changing.
fn settled(screen: &Screen, top: &str) -> Result<String> {
    let last = std::cell::RefCell::new(String::new());
    screen.wait("a screen that stays", |text| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let shown = from(text, top);
        !shown.is_empty() && last.replace(shown.clone()) == shown
    })?;
    Ok(last.into_inner())
}

/// Returns the lines from the first one that contains `top`.
fn from(text: &str, top: &str) -> String {
    text.lines().skip_while(|line| !line.contains(top)).collect::<Vec<_>>().join("\n")
}

/// Compares the screen, from the line with `top` on, with its snapshot.
fn keep(scene: &Scene, screen: &Screen, version: &str, name: &str, top: &str) -> Result<()> {
    let text = without_what_varies(&settled(screen, top)?, scene)?;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("screens");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("{version} {name}"), text));
    Ok(())
}

/// What comes before the directories of the homes on this machine. The rest of that sentence, in the next line, is left
/// out.
const NAMED: &str = "; if named, after a question";

/// Replaces the name of the scene, the digests of policies, and the directories of homes and users on this machine.
fn without_what_varies(text: &str, scene: &Scene) -> Result<String> {
    let root = scene.project().parent().context("a scene")?.display().to_string();
    let random = root.rsplit('-').next().context("a name")?;
    let text = masked(text, random);
    let lines = text.lines().map(|line| match line.split_once("(sha256 ") {
        Some((before, after)) => {
            let rest = after.split_once('…').map_or("", |(_, rest)| rest);
            format!("{before}(sha256 …{rest}")
        }
        None if line.contains(NAMED) => {
            line.split(NAMED).next().map(|own| format!("{own}{NAMED} …")).unwrap_or_default()
        }
        None if line.contains("; not /home") => {
            line.split("; not /home").next().map(|own| format!("{own}; not …")).unwrap_or_default()
        }
        None if line.contains(RUNTIME) => {
            let (before, after) = line.split_once(RUNTIME).unwrap_or_default();
            format!(
                "{before}{RUNTIME}…{}",
                after.trim_start_matches(|character: char| character.is_ascii_digit())
            )
        }
        // The number of fields.
        None if line
            .trim()
            .split_once(" of ")
            .is_some_and(|(place, all)| is_number(place) && is_number(all)) =>
        {
            "… of …".to_owned()
        }
        None => line.to_owned(),
    });
    // pi counts how much of its context is used; that line is not ours.
    let own = lines.filter(|line| !line.contains("(auto)") && !line.contains("parts of /sys"));
    Ok(own.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_ascii_digit())
}

/// Replaces each character of a word by `X`, also if the terminal has wrapped the word over two lines.
fn masked(text: &str, word: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for start in 0..characters.len() {
        let mut places = Vec::new();
        let mut wanted = word.chars().peekable();
        for (place, character) in characters.iter().enumerate().skip(start) {
            match wanted.peek() {
                Some(next) if next == character => {
                    places.push(place);
                    wanted.next();
                }
                Some(_) if !places.is_empty() && (character.is_whitespace() || *character == '│') => {}
                Some(_) | None => break,
            }
        }
        if wanted.peek().is_none() {
            for place in places {
                if let Some(character) = characters.get_mut(place) {
                    *character = 'X';
                }
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn a_broken_word_is_masked() {
    for (text, expected) in
        [("/x-AbCd/y", "/x-XXXX/y"), ("/x-Ab\n  │ Cd/y", "/x-XX\n  │ XX/y"), ("Ab Abc", "Ab Abc")]
    {
        assert_eq!(masked(text, "AbCd"), expected);
    }
}
