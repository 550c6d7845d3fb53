//! pi's own terminal interface.

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, turns};
use portcullis_it::{Launch, PiVersion, Scene, User, processes};

on_each_pi!(one_session);

/// One long session, as a person would have it: starting pi for each step would cost more than it tells.
fn one_session(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let (notes, outside) = (notes.display().to_string(), scene.outside().display().to_string());
    let sleep = processes::long_sleep();
    let script = turns([
        (
            "confined",
            vec![bash(&format!("echo x > '{outside}/made'; echo sum-$((40+2))")), say("first over")],
        ),
        ("refused", vec![read(&notes), expecting_no("hunter1", say("second over"))]),
        ("allowed", vec![read(&notes), expecting("hunter1", say("third over"))]),
        ("endless", vec![bash(&sleep), say("never said")]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Sandbox:")?;

    screen.enter("confined")?;
    // The command waits in its call.
    screen.wait_for("Abort")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("first over")?;
    ensure!(screen.text()?.contains("sum-42"));
    ensure!(!scene.outside().join("made").exists());

    screen.enter("to be refused")?;
    screen.wait(&format!("a question about {notes}"), |text| {
        text.contains("Allow") && text.contains("notes")
    })?;
    screen.press_calmly("Escape")?;
    screen.wait_for("second over")?;

    screen.enter("to be allowed")?;
    screen.wait_for("Abort")?;
    // A refusal is what lies under the finger; allowing takes one more key.
    screen.press_calmly("Down")?;
    screen.press("Enter")?;
    screen.wait_for("third over")?;

    screen.enter(&format!("!echo y > '{outside}/made'; echo user-$((40+2))"))?;
    screen.wait_for("Abort")?;
    screen.press_calmly("Escape")?;
    screen.wait_for("user-42")?;
    ensure!(!scene.outside().join("made").exists(), "the user's command was not confined");

    screen.enter("endless")?;
    processes::wait_running(&sleep)?;
    screen.press("Escape")?;
    screen.wait_for("Command aborted")?;
    processes::wait_gone(&sleep)?;

    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}
