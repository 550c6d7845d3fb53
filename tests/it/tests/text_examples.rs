//! Every example in the documentation of the three other sandboxes, as it stands: settings, lists, commands, and the
//! choices of questions.
//!
//! `text_examples/*.json` has an entry for each. An entry is played here, or names the test that plays it, or says why
//! it is about the other sandbox alone.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Map, Value, json};

use crate::described::is_tested;

as_each_user!(examples_of_the_first, examples_of_the_second, examples_of_the_third);

const FIRST: &str = include_str!("text_examples/oddsjam.json");
const SECOND: &str = include_str!("text_examples/sysid.json");
const THIRD: &str = include_str!("text_examples/bosun.json");
/// What differs on purpose, with its reason.
const DOCUMENT: &str = include_str!("../../../docs/coming-from.md");

/// The parts of an entry that the tests below know.
const PARTS: [&str; 15] = [
    "example", "home", "project", "in", "verbs", "check", "run", "entry", "answer", "label", "target", "key",
    "then", "differs", "test",
];

fn examples_of_the_first(user: User) -> Result<()> {
    play_all(user, FIRST, 31)
}

fn examples_of_the_second(user: User) -> Result<()> {
    play_all(user, SECOND, 19)
}

fn examples_of_the_third(user: User) -> Result<()> {
    play_all(user, THIRD, 11)
}

fn play_all(user: User, text: &str, count: usize) -> Result<()> {
    let examples: Vec<Map<String, Value>> = serde_json::from_str(text)?;
    ensure!(examples.len() == count, "{} examples", examples.len());
    for example in &examples {
        let name = example.get("example").and_then(Value::as_str).context("a name")?;
        play(user, example).with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn play(user: User, example: &Map<String, Value>) -> Result<()> {
    if let Some(reason) = example.get("elsewhere").and_then(Value::as_str) {
        ensure!(reason.split(' ').count() > 2 && example.len() == 2, "a reason and nothing else");
        return Ok(());
    }
    for part in example.keys() {
        ensure!(PARTS.contains(&part.as_str()), "nothing plays `{part}`");
    }
    if let Some(test) = example.get("test").and_then(Value::as_str) {
        ensure!(example.len() == 2, "it is played by a test, and here");
        return is_tested(test);
    }
    if let Some(differs) = example.get("differs").and_then(Value::as_str) {
        ensure!(DOCUMENT.contains(differs), "docs/coming-from.md does not say “{differs}”");
    }
    let scene = Scene::new(user)?;
    let filled = filled(&scene, &Value::Object(example.clone()));
    let example = filled.as_object().context("an object")?;
    for (part, place) in [("home", scene.home()), ("project", scene.project())] {
        write_all(&scene, &place, example.get(part))?;
    }
    if example.contains_key("answer") {
        return play_question(&scene, example);
    }
    ensure!(["verbs", "check", "run"].iter().any(|part| example.contains_key(*part)), "it plays nothing");
    for verb in items(example.get("verbs")) {
        let words: Vec<&str> = items(verb.get(0)).iter().filter_map(Value::as_str).collect();
        let told = scene.portcullis(&words)?;
        let said = format!("{}{}", told.stdout, told.stderr);
        ensure!(Some(i64::from(told.code())) == verb.get(1).and_then(Value::as_i64), "{words:?}: {told:#?}");
        ensure!(said.contains(text(verb, 2)?), "{words:?}: {told:#?}");
    }
    let places = match example.get("in") {
        Some(places) => items(Some(places)).to_vec(),
        None => vec![json!("")],
    };
    for place in &places {
        let place = scene.project().join(place.as_str().context("a directory")?);
        fs::create_dir_all(&place)?;
        scene.user().own(&place)?;
        for case in items(example.get("check")) {
            check(&scene, &place, case).with_context(|| format!("in {}", place.display()))?;
        }
    }
    items(example.get("run")).iter().try_for_each(|case| run(&scene, case))
}

/// Compares an answer with that of `portcullis check`.
fn check(scene: &Scene, place: &Path, case: &Value) -> Result<()> {
    let mut command = scene.portcullis_command(&["check", text(case, 0)?, text(case, 1)?])?;
    let told = Finished::run(command.current_dir(place))?;
    let code = match text(case, 2)? {
        "allow" => 0,
        "ask" => 10,
        "deny" => 20,
        other => bail!("`{other}` is no answer"),
    };
    ensure!(told.code() == code, "{case}: {told:#?}");
    Ok(())
}

/// Runs a script, and compares its output.
fn run(scene: &Scene, case: &Value) -> Result<()> {
    let told = scene.portcullis(&["run", "--ask", "deny", "--", "bash", "-c", text(case, 0)?])?;
    for part in items(case.get(1)).iter().filter_map(Value::as_str) {
        ensure!(told.stdout.contains(part), "no `{part}`: {told:#?}");
    }
    for part in items(case.get(2)).iter().filter_map(Value::as_str) {
        ensure!(!told.stdout.contains(part), "`{part}`: {told:#?}");
    }
    Ok(())
}

/// Asks about a file outside of the project, gives the answer, and looks where it went.
fn play_question(scene: &Scene, example: &Map<String, Value>) -> Result<()> {
    let part = |name: &str| example.get(name).and_then(Value::as_str);
    let sandbox = scene.home().join(".pi/agent/sandbox");
    let (project, above) = (scene.project(), above(scene));
    let key = match part("entry").context("an entry")? {
        "exact" => Some(project.display().to_string()),
        "parent" => Some(above),
        "none" => None,
        other => bail!("`{other}` is no kind of match"),
    };
    let settings: Vec<Map<String, Value>> = serde_json::from_str(FIRST)?;
    let default = settings.first().and_then(|first| first.get("home")?.get(".pi/agent/sandbox/default.json"));
    if let Some(key) = key {
        scene.write(&sandbox.join("projects.json"), &json!({ key: default }).to_string())?;
    }
    let notes = scene.outside().join("notes");
    scene.write(&notes, "NOTES")?;
    let notes = notes.display().to_string();
    let open = json!({ "callId": "c", "path": notes, "intent": { "kind": "read" } });
    let mut host = Serve::greeted(scene, &[], Interface::Present)?;
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    let options = items(question.pointer("/params/options")).to_vec();
    let answer = part("answer").context("an answer")?;
    let place = options.iter().position(|option| option.get("key") == Some(&json!(answer)));
    let choice = match (answer, place) {
        ("esc", None) => json!("refuse"),
        (_, Some(place)) => {
            let option = options.get(place).context("an option")?;
            let label = option.get("label").and_then(Value::as_str).unwrap_or_default();
            ensure!(label.contains(part("label").unwrap_or_default()), "{option}");
            let target = option.get("target").and_then(Value::as_str).unwrap_or_default();
            ensure!(target.starts_with(part("target").unwrap_or_default()), "{option}");
            ensure!(target.contains(part("key").unwrap_or_default()), "{option}");
            json!(place)
        }
        (_, None) => bail!("no answer `{answer}` in {question}"),
    };
    host.answer(&question, &choice)?;
    let reply = host.reply(id)?;
    ensure!((answer == "esc") == reply.get("error").is_some(), "{reply}");
    host.close()?;
    // What is kept holds in the next session, and stands where the answer said.
    check(scene, &project, &json!(["read", notes, part("then").context("what holds then")?]))?;
    for file in ["default.json", "projects.json"] {
        let written = fs::read_to_string(sandbox.join(file)).unwrap_or_default();
        ensure!(written.contains(&notes) == (part("target") == Some(file)), "{file}: {written}");
        if let (true, Some(key)) = (part("target") == Some(file), part("key")) {
            let written: Value = serde_json::from_str(&written)?;
            ensure!(
                written.get(key).is_some_and(|entry| entry.to_string().contains(&notes)),
                "{key}: {written}"
            );
        }
    }
    Ok(())
}

/// Writes files: texts as they are, and settings as JSON.
fn write_all(scene: &Scene, place: &Path, files: Option<&Value>) -> Result<()> {
    for (name, content) in files.and_then(Value::as_object).into_iter().flatten() {
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        scene.write(&place.join(name), &text)?;
    }
    Ok(())
}

/// Returns a value with the scene's paths in place of `${…}`.
fn filled(scene: &Scene, value: &Value) -> Value {
    let fill = |text: &str| {
        let paths = [
            ("${HOME}", scene.home().display().to_string()),
            ("${PROJECT}", scene.project().display().to_string()),
            ("${ABOVE}", above(scene)),
            ("${OUTSIDE}", scene.outside().display().to_string()),
        ];
        paths.iter().fold(text.to_owned(), |text, (name, path)| text.replace(name, path))
    };
    match value {
        Value::String(text) => Value::String(fill(text)),
        Value::Array(items) => items.iter().map(|item| filled(scene, item)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (fill(key), filled(scene, value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn above(scene: &Scene) -> String {
    scene.project().parent().map(|path| path.display().to_string()).unwrap_or_default()
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text(list: &Value, index: usize) -> Result<&str> {
    list.get(index).and_then(Value::as_str).with_context(|| format!("no text {index} in {list}"))
}
