//! `portcullis pi --branch`: tools and commands work in a branch, and `/branch` commits it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, say, turns, write};
use portcullis_it::{Launch, PiVersion, Rpc, Scene, User};
use serde_json::{Value, json};

use crate::branch_review::with_whole_change;
use crate::branches::branch;

on_each_pi!(
    tools_and_commands_share_the_branch_and_review_commits_it,
    a_policy_asks_and_denies_in_pi,
    without_a_branch_the_project_changes,
);

fn prepared(user: User) -> Result<(Scene, Value)> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("file"), "first\n")?;
    scene.write(&scene.project().join("gone"), "gone\n")?;
    let script = turns([
        (
            "number one",
            vec![
                write("file", "by a tool\n"),
                write(".envrc", "export A=1\n"),
                bash("cat file; echo by a command > made; rm gone"),
                say("done"),
            ],
        ),
        ("number two", vec![write("later", "later\n"), say("done")]),
    ]);
    Ok((scene, script))
}

fn prompt(pi: &mut Rpc, text: &str) -> Result<()> {
    pi.prompt(text)?;
    pi.wait_for("agent_end")?;
    Ok(())
}

fn told(pi: &mut Rpc, text: &str) -> Result<()> {
    pi.wait(text, |message| {
        message.get("method") == Some(&json!("notify"))
            && message.get("message").and_then(Value::as_str).is_some_and(|said| said.contains(text))
    })?;
    Ok(())
}

fn read(scene: &Scene, name: &str) -> Option<String> {
    fs::read_to_string(scene.project().join(name)).ok()
}

fn tools_and_commands_share_the_branch_and_review_commits_it(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepared(user)?;
    let mut pi = Launch::guarded(&scene, version, &script)?.with(["--branch=fix"]).rpc()?;
    // No question comes, also about `.envrc`.
    prompt(&mut pi, "number one")?;
    ensure!(read(&scene, "file").as_deref() == Some("first\n"), "the project has changed");
    ensure!(
        read(&scene, "made").is_none() && read(&scene, ".envrc").is_none() && read(&scene, "gone").is_some()
    );
    let shown = branch(&scene, &["show", "fix", "--diff"])?.ended_with(0)?;
    for line in ["+by a tool", "+by a command", "gone", "protected"] {
        ensure!(shown.stdout.contains(line), "{line}: {shown:?}");
    }
    pi.prompt("/branch")?;
    let page = pi.question()?;
    for line in ["4 names differ", "made  made", ".envrc  (protected"] {
        ensure!(page.to_string().contains(line), "{line}: {page}");
    }
    pi.answer(&page, "Commit some …")?;
    let list = pi.question()?;
    let options = list.get("options").and_then(Value::as_array).context("options")?;
    let made = options.iter().filter_map(Value::as_str).find(|option| option.ends_with("made  made"));
    pi.answer(&list, made.with_context(|| format!("{list}"))?)?;
    let list = pi.question()?;
    pi.answer(&list, "Commit what is marked")?;
    told(&mut pi, "1 name committed")?;
    ensure!(read(&scene, "made").as_deref() == Some("by a command\n"));
    ensure!(read(&scene, "file").as_deref() == Some("first\n") && read(&scene, ".envrc").is_none());
    // The session goes on in the branch.
    prompt(&mut pi, "number two")?;
    ensure!(read(&scene, "later").is_none(), "the session left the branch");
    pi.prompt("/branch all")?;
    told(&mut pi, ".envrc")?;
    ensure!(read(&scene, "file").as_deref() == Some("by a tool\n") && read(&scene, "later").is_some());
    ensure!(read(&scene, "gone").is_none() && read(&scene, ".envrc").is_none());
    pi.prompt("/branch .envrc")?;
    told(&mut pi, "1 name committed")?;
    ensure!(read(&scene, ".envrc").is_some());
    let status = pi.close()?;
    ensure!(status.success(), "{status}");
    let list = branch(&scene, &["list"])?.ended_with(0)?;
    ensure!(list.stdout.contains("no branches"), "{list:?}");
    Ok(())
}

fn a_policy_asks_and_denies_in_pi(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    with_whole_change(&scene, user)?;
    let script = turns([
        ("number one", vec![bash("touch a b c d"), say("done")]),
        ("number two", vec![bash("touch forbidden"), say("done")]),
    ]);
    let mut pi = Launch::guarded(&scene, version, &script)?.with(["--branch=fix"]).rpc()?;
    prompt(&mut pi, "number one")?;
    for (answer, said) in [("Commit nothing", "Nothing was committed"), ("Commit it", "4 names committed")] {
        pi.prompt("/branch all")?;
        let question = pi.question()?;
        ensure!(question.to_string().contains("more than 3 names"), "{question}");
        ensure!(read(&scene, "a").is_none());
        pi.answer(&question, answer)?;
        told(&mut pi, said)?;
    }
    ensure!(read(&scene, "d").is_some(), "it was approved");
    prompt(&mut pi, "number two")?;
    pi.prompt("/branch all")?;
    told(&mut pi, "a policy denies this change")?;
    ensure!(read(&scene, "forbidden").is_none(), "it was denied");
    pi.close()?;
    Ok(())
}

fn without_a_branch_the_project_changes(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepared(user)?;
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    prompt(&mut pi, "number two")?;
    ensure!(read(&scene, "later").is_some(), "control");
    pi.prompt("/branch")?;
    told(&mut pi, "works in the project itself")?;
    pi.close()?;
    Ok(())
}
