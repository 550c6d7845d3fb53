//! One question for several hosts that a command connects to.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User, World};
use serde_json::{Value, json};

use super::PROGRAM;
use super::asking::{ASK, GET, notes, text};

/// Time in which a few programs start and connect, also on a busy machine.
const MOMENT: std::time::Duration = std::time::Duration::from_secs(3);

as_each_user!(
    several_hosts_of_one_command_are_one_question,
    an_answer_for_several_hosts_can_be_kept,
    several_programs_of_one_command_are_a_question_each,
    what_cannot_be_read_whole_is_not_kept,
);

fn several_hosts_of_one_command_are_one_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let script = "for host in allowed sub.allowed sub.allowed other.allowed; do curl -sS http://$host.test/ & done; wait";
    let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    // A connection that comes a moment later is in the next question.
    let mut asked = String::new();
    let mut questions = 0;
    while asked.matches(":80").count() < 3 {
        let question = host.question()?;
        asked.push_str(text(&question, "/params/subject"));
        asked.push('\n');
        if questions == 0 {
            // The other programs have started, and wait in `connect`, when this one is answered.
            std::thread::sleep(MOMENT);
        }
        questions += 1;
        host.answer(&question, &json!(0))?;
    }
    let (_, output) = host.finish(id)?;
    ensure!(
        output.matches("REACHED").count() == 4 && questions < 3,
        "{questions} questions: {asked}; {output}"
    );
    // The grant was for this command.
    let id = host.begin(GET, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    host.finish(id)?;
    Ok(())
}

fn an_answer_for_several_hosts_can_be_kept(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "for host in allowed sub.allowed; do curl -sS http://$host.test/ & done; wait";
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let mut asked = String::new();
    while asked.matches(":80").count() < 2 {
        let question = host.question()?;
        asked.push_str(text(&question, "/params/subject"));
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let kept = options.iter().position(|option| option.get("key") == Some(&json!("P")));
        host.answer(&question, &json!(kept.context("an answer for the project")?))?;
    }
    host.finish(id)?;
    ensure!(host.close()?.success());
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let (_, output) = host.run(script)?;
    ensure!(output.matches("REACHED").count() == 2, "{output}");
    Ok(())
}

/// Each question is about one program: its answer does not cover the connections of another program.
fn several_programs_of_one_command_are_a_question_each(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let script = "cp \"$(command -v curl)\" known; cp known other; \
        ./known -sS http://allowed.test/ & ./other -sS http://sub.allowed.test/ & wait";
    let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let mut asked = Vec::new();
    for _ in 0..2 {
        let question = host.question()?;
        let of_known = text(&question, "/params/asker").contains("/known (pid ");
        let subject = if of_known { "allowed.test:80" } else { "sub.allowed.test:80" };
        ensure!(of_known || text(&question, "/params/asker").contains("/other (pid "), "{question}");
        ensure!(text(&question, "/params/subject") == subject, "{question}");
        asked.push(of_known);
        host.answer(&question, &if of_known { json!(0) } else { json!("refuse") })?;
    }
    let (result, output) = host.finish(id)?;
    ensure!(asked.contains(&true) && asked.contains(&false), "{asked:?}");
    ensure!(output.matches("REACHED").count() == 1, "{output}");
    ensure!(notes(&result).contains("you said no"), "{result}");
    Ok(())
}

/// There is no option to keep a grant for several hosts whose text is too long to show whole, because the user would
/// not see a part of it; the same rule applies to a grant for one place.
fn what_cannot_be_read_whole_is_not_kept(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    for (name, is_kept) in [("a", true), ("a-mirror-of-packages-of-which-there-are-others-as-well", false)] {
        let script = format!("for n in 1 2 3 4 5 6 7; do curl -sS http://{name}-$n.test/ & done; wait");
        let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let mut open = 7;
        while open > 0 {
            let question = host.question()?;
            let places = text(&question, "/params/subject").lines().count();
            let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
            let keys: Vec<&str> = options.iter().map(|option| text(option, "/key")).collect();
            ensure!(keys.contains(&"o") && keys.contains(&"d"), "{question}");
            ensure!(
                places == 1 || question.pointer("/params/quote").is_none(),
                "it is about one: {question}"
            );
            ensure!(places < 5 || keys.contains(&"s") == is_kept, "{places} places: {question}");
            let no = keys.iter().position(|key| *key == "d");
            host.answer(&question, &json!(no))?;
            open -= places;
        }
        host.finish(id)?;
        // The refusal applies to each of the hosts.
        let (result, _) = host.run(&format!("curl -sS http://{name}-7.test/"))?;
        ensure!(notes(&result).contains("you said no for this session"), "{result}");
    }
    Ok(())
}
