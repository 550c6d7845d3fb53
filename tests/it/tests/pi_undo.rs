//! `/undo` in pi, turn by turn, and the offer when the user goes back in pi's tree.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, say, turns, write};
use portcullis_it::{Launch, PiVersion, Rpc, Scene, User};
use serde_json::{Value, json};

on_each_pi!(
    turn_by_turn,
    one_call_and_everything,
    going_back_in_the_tree_offers,
    files_stay_if_the_user_says_so,
    commands_of_the_user_are_turns,
);

const YES: &str = "Take the files back";
const NO: &str = "Keep the files";

type Files = BTreeMap<String, String>;

/// Returns the files of the project with their contents.
fn files(scene: &Scene) -> Result<Files> {
    let mut found = Files::new();
    for entry in fs::read_dir(scene.project())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            found.insert(entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?);
        }
    }
    Ok(found)
}

/// A scene in which the agent changes files in three turns.
fn prepare(user: User) -> Result<(Scene, Value)> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("file"), "first\n")?;
    scene.write(&scene.project().join("other"), "kept\n")?;
    let script = turns([
        ("number one", vec![write("file", "one\n"), say("done")]),
        ("number two", vec![bash("echo two > file; echo 2 > made"), bash("mv other moved"), say("done")]),
        ("number three", vec![bash("rm file"), say("done")]),
        ("says nothing", vec![say("done")]),
    ]);
    Ok((scene, script))
}

/// Plays the three turns; returns the files before each, and after the last.
fn play(pi: &mut Rpc, scene: &Scene) -> Result<[Files; 4]> {
    let mut all = vec![files(scene)?];
    for text in ["number one", "number two", "number three"] {
        prompt(pi, text)?;
        let now = files(scene)?;
        ensure!(all.last() != Some(&now), "control: `{text}` changed nothing");
        all.push(now);
    }
    all.try_into().map_err(|all: Vec<Files>| anyhow::anyhow!("{} states", all.len()))
}

fn prompt(pi: &mut Rpc, text: &str) -> Result<()> {
    pi.prompt(text)?;
    pi.wait_for("agent_end")?;
    Ok(())
}

/// Chooses the option with `wanted` in a question.
fn choose(pi: &mut Rpc, question: &Value, wanted: &str) -> Result<()> {
    let options = question.get("options").and_then(Value::as_array).with_context(|| format!("{question}"))?;
    let option = options.iter().filter_map(Value::as_str).find(|option| option.contains(wanted));
    let option = option.with_context(|| format!("no option has `{wanted}`: {question}"))?.to_owned();
    pi.answer(question, &option)
}

fn told(pi: &mut Rpc, text: &str) -> Result<()> {
    pi.wait(text, |message| {
        message.get("method") == Some(&json!("notify"))
            && message.get("message").and_then(Value::as_str).is_some_and(|said| said.contains(text))
    })?;
    Ok(())
}

/// Opens `/undo`, chooses an entry, and confirms.
fn undo(pi: &mut Rpc, wanted: &str) -> Result<()> {
    pi.prompt("/undo")?;
    let list = pi.question()?;
    choose(pi, &list, wanted)?;
    let plan = pi.question()?;
    choose(pi, &plan, YES)?;
    told(pi, " restored. ")
}

fn turn_by_turn(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepare(user)?;
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    let all = play(&mut pi, &scene)?;
    // A turn without changes is not in the list.
    prompt(&mut pi, "says nothing")?;
    pi.prompt("/undo")?;
    let list = pi.question()?;
    let options = list.get("options").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(options == 3 && list.to_string().contains("number three"), "{list}");
    choose(&mut pi, &list, "number three")?;
    let plan = pi.question()?;
    ensure!(plan.to_string().contains("give back  file"), "{plan}");
    choose(&mut pi, &plan, YES)?;
    told(&mut pi, " restored. ")?;
    ensure!(files(&scene)? == all[2], "after the third: {:?}", files(&scene)?);
    undo(&mut pi, "number two")?;
    ensure!(files(&scene)? == all[1], "after the second: {:?}", files(&scene)?);
    undo(&mut pi, "number one")?;
    ensure!(files(&scene)? == all[0], "after the first: {:?}", files(&scene)?);
    for wanted in all.iter().skip(1) {
        undo(&mut pi, "Redo")?;
        ensure!(files(&scene)? == *wanted, "after a redo: {:?}", files(&scene)?);
    }
    ends_well(pi)
}

fn one_call_and_everything(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepare(user)?;
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    let all = play(&mut pi, &scene)?;
    // The second call of the second turn, and what came after it.
    let shown = portcullis(&scene, &["changes"])?;
    let call = shown.lines().find(|line| line.contains("mv other moved")).context("the call is listed")?;
    let name = call.split_whitespace().next().context("a name")?;
    pi.prompt(&format!("/undo {name}"))?;
    let plan = pi.question()?;
    choose(&mut pi, &plan, YES)?;
    told(&mut pi, " restored. ")?;
    let now = files(&scene)?;
    ensure!(now.contains_key("other") && now.contains_key("made") && now.contains_key("file"), "{now:?}");
    // The rest by the program, from outside.
    portcullis(&scene, &["undo", "--all", "--yes"])?;
    ensure!(files(&scene)? == all[0], "{:?}", files(&scene)?);
    ends_well(pi)
}

/// Goes back to before a message of the user: pi's `/tree` does the same, but only on a terminal.
const BACK: &str = r#"
export default function (api) {
  api.registerCommand("goback", { description: "", handler: async (text, context) => {
    const entry = context.sessionManager.getBranch().find((entry) =>
      entry.type === "message" && entry.message.role === "user" && JSON.stringify(entry.message.content).includes(text.trim()));
    await context.navigateTree(entry.id, { summarize: false });
    context.ui.notify("went back", "info");
  } });
}
"#;

fn with_tree<'a>(scene: &'a Scene, version: PiVersion, script: &Value) -> Result<Launch<'a>> {
    let extension = scene.at("other/goback.ts");
    scene.write(&extension, BACK)?;
    Ok(Launch::guarded(scene, version, script)?.with(["-e".into(), extension.into_os_string()]))
}

fn going_back_in_the_tree_offers(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepare(user)?;
    let mut pi = with_tree(&scene, version, &script)?.rpc()?;
    let all = play(&mut pi, &scene)?;
    pi.prompt("/goback number two")?;
    let offer = pi.question()?;
    ensure!(offer.to_string().contains("Take the files back as well?"), "{offer}");
    choose(&mut pi, &offer, YES)?;
    told(&mut pi, "went back")?;
    ensure!(files(&scene)? == all[1], "{:?}", files(&scene)?);
    // Another way from there, which leaves the first turn alone.
    prompt(&mut pi, "number three")?;
    ensure!(!files(&scene)?.contains_key("file"), "{:?}", files(&scene)?);
    undo(&mut pi, "number three")?;
    ensure!(files(&scene)? == all[1], "{:?}", files(&scene)?);
    ends_well(pi)
}

fn files_stay_if_the_user_says_so(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepare(user)?;
    let mut pi = with_tree(&scene, version, &script)?.rpc()?;
    let all = play(&mut pi, &scene)?;
    pi.prompt("/goback number three")?;
    let offer = pi.question()?;
    choose(&mut pi, &offer, NO)?;
    told(&mut pi, "went back")?;
    ensure!(files(&scene)? == all[3], "{:?}", files(&scene)?);
    // They can be taken back later.
    undo(&mut pi, "number three")?;
    ensure!(files(&scene)? == all[2], "{:?}", files(&scene)?);
    ends_well(pi)
}

fn commands_of_the_user_are_turns(version: PiVersion, user: User) -> Result<()> {
    let (scene, script) = prepare(user)?;
    let mut pi = Launch::guarded(&scene, version, &script)?.rpc()?;
    prompt(&mut pi, "number one")?;
    let before = files(&scene)?;
    pi.send(&json!({ "id": "own", "type": "bash", "command": "echo mine > mine" }))?;
    pi.wait("response", |message| {
        message.get("id") == Some(&json!("own")) && message.get("type") == Some(&json!("response"))
    })?;
    ensure!(files(&scene)?.contains_key("mine"), "control: {:?}", files(&scene)?);
    undo(&mut pi, "! echo mine")?;
    ensure!(files(&scene)? == before, "{:?}", files(&scene)?);
    ends_well(pi)
}

fn portcullis(scene: &Scene, arguments: &[&str]) -> Result<String> {
    let output = scene.portcullis_command(arguments)?.current_dir(scene.project()).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

fn ends_well(pi: Rpc) -> Result<()> {
    let status = pi.close()?;
    ensure!(status.success(), "{status}");
    Ok(())
}
