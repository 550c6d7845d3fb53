//! Tests in pi's own terminal interface.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, expecting_no, read, say, turns, write};
use portcullis_it::{Deadline, Launch, PiVersion, Scene, Screen, User, portcullis, processes, script};
use serde_json::json;

use crate::pi_rpc::{kill_host, next_host};

on_each_pi!(
    with_node_20:
    one_session,
    typed_at_once,
    typed_while_the_host_starts,
    a_dead_host_names_reload,
    nothing_of_a_tool_acts_on_the_terminal
);

/// Words that are typed while pi starts, each some time after the one before.
const EARLY: [&str; 4] = ["wordone ", "wordtwo ", "wordthree ", "wordfour "];

/// Keys of the first second are not lost while the session starts. The control is pi alone.
fn typed_at_once(version: PiVersion, user: User) -> Result<()> {
    /// So that the last word falls behind the start of pi.
    const BETWEEN: Duration = Duration::from_millis(400);
    let typed = |launch: Launch<'_>, started: &str| -> Result<String> {
        let screen = launch.screen()?;
        for word in EARLY {
            screen.ask_tmux(&["send-keys", "-l", "--", word])?;
            std::thread::sleep(BETWEEN);
        }
        // The footer, which names the model.
        screen.wait(started, |text| text.contains("scripted") && text.contains(started))?;
        screen.enter("last")?;
        screen.wait_for("heard it")?;
        Ok(serde_json::to_string(&screen.requests()?)?)
    };
    let script = turns([("last", vec![say("heard it")])]);
    let kept = |requests: &str| EARLY.map(|word| requests.contains(word.trim()));
    let scene = Scene::new(user)?;
    let alone = typed(Launch::plain(&scene, version, &script)?, "")?;
    let scene = Scene::new(user)?;
    let ours = typed(Launch::guarded(&scene, version, &script)?, "Portcullis on")?;
    ensure!(kept(&alone) == [true; 4], "the control: {alone}");
    ensure!(kept(&ours) == [true; 4], "{ours}");
    Ok(())
}

/// The notices about a host that dies name `/reload`, and that starts a host again.
fn a_dead_host_names_reload(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let screen = Launch::guarded(&scene, version, &script([say("hello")]))?.screen()?;
    // A host that never answered is not started again.
    screen.wait("a host", |text| text.contains("Portcullis on") && !text.contains("Portcullis starting"))?;
    let shown = || screen.text().unwrap_or_default();
    let first = kill_host(&scene).with_context(|| format!("first {}", shown()))?;
    let second = next_host(&scene, &first).with_context(|| format!("second {}", shown()))?;
    screen.wait_for("stay blocked until you type /reload")?;
    kill_host(&scene).with_context(|| format!("third {}", shown()))?;
    screen.wait_for("/reload starts")?;
    screen.wait_for("Portcullis closed")?;
    screen.enter("!touch made; echo sum-$((40+2))")?;
    screen.wait_for("(exit 126)")?;
    ensure!(!screen.text()?.contains("sum-42") && !scene.project().join("made").exists());
    screen.enter("/reload")?;
    next_host(&scene, &second).with_context(|| screen.text().unwrap_or_default())?;
    screen.wait_gone("Portcullis closed")?;
    screen.enter("!touch made; echo user-$((50+2))")?;
    screen.wait_for("user-52")?;
    ensure!(scene.project().join("made").exists(), "{}", screen.text()?);
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// A line that is typed before the host has answered reaches the agent; its tool calls wait for the host.
fn typed_while_the_host_starts(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let slow = scene.at("slow/portcullis");
    let (host, open) = (portcullis(user)?, scene.at("open"));
    let wait = format!("until [ -e '{}' ]; do sleep 0.1; done", open.display());
    scene.write(&slow, &format!("#!/bin/sh\n{wait}\nexec '{}' \"$@\"\n", host.display()))?;
    std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o755))?;
    let outside = scene.outside().join("made");
    let command = format!("touch made; echo x > '{}' || echo sum-$((40+2))", outside.display());
    let script = turns([("early", vec![bash(&command), expecting("sum-42", say("all over"))])]);
    let launch = Launch::extended(&scene, version, &script)?;
    let screen = launch.variable("PORTCULLIS_HOST", slow.display().to_string()).screen()?;
    screen.wait_for("Portcullis starting")?;
    screen.enter("an early line")?;
    ensure!(!scene.project().join("made").exists(), "nothing runs before the host has answered");
    scene.write(&open, "")?;
    screen.wait_for("[esc]  No")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("all over")?;
    ensure!(scene.project().join("made").exists() && !outside.exists(), "it runs, and confined");
    ensure!(screen.quit()? == 0);
    Ok(())
}

/// Several steps in one long session: a start of pi for each step would take too long for what it tests.
fn one_session(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let (notes, outside) = (notes.display().to_string(), scene.outside().display().to_string());
    let sleep = processes::long_sleep();
    scene.write(&scene.project().join("paint"), PAINTS)?;
    let script = turns([
        (
            "confined",
            vec![bash(&format!("echo x > '{outside}/made'; echo sum-$((40+2))")), say("first over")],
        ),
        ("refused", vec![read(&notes), expecting_no("hunter1", say("second over"))]),
        ("allowed", vec![read(&notes), expecting("hunter1", say("third over"))]),
        ("painted", vec![bash("sh paint; echo tool-$((40+2))"), say("fourth over")]),
        ("endless", vec![bash(&sleep), say("never said")]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on")?;

    screen.enter("confined")?;
    // The command waits in its system call.
    screen.wait_for("[esc]  No")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("first over")?;
    ensure!(screen.text()?.contains("sum-42"));
    ensure!(!scene.outside().join("made").exists());

    screen.enter("to be refused")?;
    screen.wait(&format!("a question about {notes}"), |text| {
        text.contains("wants to read") && text.contains("notes")
    })?;
    screen.press_calmly("Escape")?;
    screen.wait_for("second over")?;

    screen.enter("to be allowed")?;
    screen.wait_for("[esc]  No")?;
    // The refusal is selected by default; to allow takes one more key.
    screen.press_calmly("Down")?;
    screen.press("Enter")?;
    screen.wait_for("third over")?;

    screen.enter(&format!("!echo y > '{outside}/made'; echo user-$((40+2))"))?;
    screen.wait_for("[esc]  No")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("user-42")?;
    ensure!(!scene.outside().join("made").exists(), "the user's command was not confined");

    output_paints_nothing(&screen, &scene.project())?;

    screen.enter("endless")?;
    processes::wait_running(&sleep)?;
    screen.press("Escape")?;
    screen.wait_for("Command aborted")?;
    processes::wait_gone(&sleep)?;

    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// Terminal sequences that fill the clipboard, set the title, clear the screen, and write in the terminal's first line.
const PAINTS: &str =
    r"printf '\033]52;c;aHVudGVyMg==\007\033]2;FAKED\007\033[2J\033[1;1HTOP\033[9A\033[1;5HLINE\n'";

/// The output of a command remains text: it does not control the terminal, so it cannot look like a question of
/// Portcullis. Row 70.
fn output_paints_nothing(screen: &Screen, project: &Path) -> Result<()> {
    // tmux then acts as a terminal whose clipboard programs may set.
    screen.ask_tmux(&["set", "-s", "set-clipboard", "on"])?;
    screen.enter("painted")?;
    screen.wait_for("fourth over")?;
    screen.enter("!sh paint; echo user-$((50+2))")?;
    let shown = screen.wait_for("user-52")?;
    ensure!(shown.contains("tool-42") && shown.contains("fourth over"), "it was cleared: {shown}");
    ensure!(!shown.starts_with("TOP"), "{shown}");
    let state = |pane: &str| -> Result<String> {
        let title = screen.ask_tmux(&["display-message", "-p", "-t", pane, "#{pane_title}"])?;
        Ok(title + &screen.ask_tmux(&["list-buffers", "-F", "#{buffer_sample}"])?)
    };
    let told = state("0")?;
    ensure!(!told.contains("FAKED") && !told.contains("hunter2"), "{told}");

    let project = project.display().to_string();
    let free = ["sh", "-c", "sh paint; sleep 1000"];
    screen.ask_tmux(&[&["new-window", "-d", "-n", "control", "-c", &project], &free[..]].concat())?;
    let control = Deadline::start().until("the control to paint", || {
        let told = state("control")?;
        Ok((told.contains("FAKED") && told.contains("hunter2")).then_some(()))
    });
    control?;
    let shown = screen.ask_tmux(&["capture-pane", "-p", "-t", "control"])?;
    ensure!(shown.starts_with("TOP LINE"), "{shown}");
    screen.ask_tmux(&["kill-window", "-t", "control"])?;
    Ok(())
}

/// Terminal sequences that copy a text to the clipboard, and write in the upper left corner of the screen.
const ACTS: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{1b}[HFORGED";

/// Row 70: neither the result of a tool nor its arguments nor the subject of a question control the terminal. The
/// control is a program that prints the sequences itself.
fn nothing_of_a_tool_acts_on_the_terminal(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let control = script([say("never said")]);
    let printing = ["printf".to_owned(), "%s".to_owned(), ACTS.to_owned()];
    let screen = Launch::plain(&scene, version, &control)?.through(printing).screen()?;
    Deadline::start()
        .until("a copied text", || Ok((screen.clipboard().as_deref() == Some("evil")).then_some(())))?;
    drop(screen);

    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("acts.txt"), &format!("{ACTS}\nneedle {ACTS}\n"))?;
    scene.write(&scene.project().join("names").join(ACTS.replace('/', "_")), "")?;
    let outside = scene.outside().join(ACTS.replace('/', "_"));
    scene.write(&outside, "x")?;
    let edit = json!({ "path": "acts.txt", "edits": [{ "oldText": "needle", "newText": format!("thread {ACTS}") }] });
    let all = vec![
        bash("cat acts.txt; cat acts.txt >&2"),
        bash(&format!("echo '{ACTS}' > copy; false")),
        read("acts.txt"),
        read(&format!("none {ACTS}")),
        calls([call("ls", &json!({ "path": "names" }))]),
        calls([call("find", &json!({ "pattern": "*", "path": "names" }))]),
        calls([call("grep", &json!({ "pattern": "needle", "path": "acts.txt" }))]),
        calls([call("edit", &edit)]),
        write("new.txt", ACTS),
        read(&outside.display().to_string()),
        say("all done"),
    ];
    let launch = Launch::guarded(&scene, version, &turns([("go", all)]))?;
    let screen = launch.with(["--tools", "read,bash,edit,write,grep,find,ls"]).screen()?;
    screen.wait_for("Portcullis on")?;
    screen.enter("go")?;
    screen.wait_for("[esc]  No")?;
    ensure!(screen.clipboard().is_none(), "the question acted on the terminal");
    screen.press_calmly("Escape")?;
    screen.wait_for("all done")?;
    ensure!(screen.clipboard().is_none(), "a tool acted on the terminal");
    let first = screen.text()?.lines().next().unwrap_or_default().to_owned();
    ensure!(!first.starts_with("FORGED"), "a tool went about on the screen: {}", screen.text()?);
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}
