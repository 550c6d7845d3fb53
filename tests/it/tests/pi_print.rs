//! `pi -p`: there is no user interface for questions.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, expecting_no, read, say, write};
use portcullis_it::{Finished, Launch, PiVersion, Scene, Tools, User, script};
use serde_json::json;

on_each_pi!(
    allowed_and_denied,
    told_up_front,
    the_seven_tools,
    spellings_of_a_path,
    the_environment,
    ends_at_once,
    without_other_extensions,
    events_as_json,
    arguments_that_broke_off,
    refusals_are_reported,
);
as_each_user!(on_the_oldest_node);

/// The exit status of a pi if a question was refused without a user.
const REFUSED: i32 = 126;

/// A line for each refusal, a summary, and an exit status, as the setting has it. The control is pi alone.
fn refusals_are_reported(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (outside, secret) = (scene.outside().join("notes"), scene.home().join(".pi/agent/auth.json"));
    scene.write(&outside, "alpha")?;
    scene.write(&secret, "{\"scripted\":{\"type\":\"api_key\",\"key\":\"hunter2\"}}")?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    let reads = |paths: &[&std::path::Path]| {
        let mut steps: Vec<_> = paths.iter().map(|path| read(&path.display().to_string())).collect();
        steps.push(say("done"));
        script(steps)
    };
    let lines = |finished: &Finished| -> Vec<String> {
        let own = finished.stderr.lines().filter(|line| line.starts_with("portcullis: "));
        own.map(str::to_owned).collect()
    };
    let asked = reads(&[outside.as_path(), outside.as_path(), secret.as_path()]);
    let finished = Launch::guarded(&scene, version, &asked)?.print("go")?.ended_with(REFUSED)?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    match lines(&finished).as_slice() {
        [one, two, summary] => {
            let of = |line: &str, name: &str| {
                line.starts_with("portcullis: refused: read ") && line.contains(name)
            };
            ensure!(of(one, "outside/notes: ") && of(two, "auth.json: "), "{finished:#?}");
            ensure!(summary.starts_with("portcullis: 3 refusals, 2 of them because nobody"), "{finished:#?}");
        }
        _ => anyhow::bail!("{finished:#?}"),
    }
    // A denial is no question.
    let denied = reads(&[secret.as_path()]);
    let finished = Launch::guarded(&scene, version, &denied)?.print("go")?.ended_with(0)?;
    ensure!(lines(&finished).len() == 2, "{finished:#?}");
    let allowed = script([bash("true"), say("done")]);
    let finished = Launch::guarded(&scene, version, &allowed)?.print("go")?.ended_with(0)?;
    ensure!(lines(&finished).is_empty(), "{finished:#?}");
    for (word, expected) in [("report", 3), ("quiet", 0)] {
        scene.write(&settings, &format!("{{ \"unattendedRefusals\": \"{word}\" }}"))?;
        let finished = Launch::guarded(&scene, version, &asked)?.print("go")?.ended_with(0)?;
        ensure!(lines(&finished).len() == expected, "{word}: {finished:#?}");
    }
    let finished = Launch::plain(&scene, version, &asked)?.print("go")?.ended_with(0)?;
    ensure!(lines(&finished).is_empty(), "{finished:#?}");
    Ok(())
}

/// The older pi runs under the oldest Node that is supported; tools and denials are the same.
fn on_the_oldest_node(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("made");
    let steps = script([
        bash(&format!("echo x > '{}'; echo sum-$((40+2))", outside.display())),
        expecting("sum-42", write("inside", "alpha")),
        expecting("[Ww]rote", read("inside")),
        expecting("alpha", say("done")),
    ]);
    let launch = Launch::guarded(&scene, PiVersion::V0_74, &steps)?;
    let (node, pi) = (Tools::find()?.oldest_node()?, scene.install_pi(PiVersion::V0_74)?);
    let version = scene.at("node-version");
    let wrapper = format!(
        "#!/bin/sh\n'{0}' --version > '{1}'\nexec '{0}' '{2}' \"$@\"\n",
        node.display(),
        version.display(),
        pi.cli.display()
    );
    scene.write(&scene.bin().join("pi"), &wrapper)?;
    let finished = launch.print("go")?.ended_with(REFUSED)?;
    ensure!(std::fs::read_to_string(&version)?.starts_with("v20.19."), "{finished:#?}");
    ensure!(finished.stdout.contains("done") && !outside.exists(), "{finished:#?}");
    ensure!(scene.project().join("inside").exists(), "{finished:#?}");
    Ok(())
}

/// The model reads its working directory and the rules in the system prompt, before it acts.
fn told_up_front(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let hello = script([say("hello")]);
    let instructions = |launch: Launch<'_>| -> Result<String> {
        let finished = launch.print("go")?.ended_with(0)?;
        let told = finished.requests.last().and_then(|request| request.get("instructions")?.as_str());
        Ok(told.context("instructions")?.to_owned())
    };
    let told = instructions(Launch::guarded(&scene, version, &hello)?)?;
    let project = scene.project().display().to_string();
    ensure!(told.contains("run in a sandbox on") && told.contains(&project), "{told}");
    ensure!(told.contains("do not work around it"), "{told}");
    // Whole, and short: `statements` compares what it says with what commands can do.
    let section = told.split_once("# Sandbox\n").context("the section")?.1;
    let end = "Say what you needed.";
    let section = section.split_once(end).context("the end of the section")?.0;
    let count = section.split_whitespace().count() + end.split_whitespace().count() + 2;
    ensure!(count <= 150 && !section.contains("\n\n"), "{count} words: {section}");
    for said in [
        "Commands do not see your home directory",
        "Commands reach no host",
        "may mean hidden",
        "Nobody can be asked",
    ] {
        ensure!(section.contains(said), "no `{said}` in {section}");
    }
    let alone = instructions(Launch::plain(&scene, version, &hello)?)?;
    ensure!(!alone.contains("run in a sandbox on"), "{alone}");
    Ok(())
}

fn allowed_and_denied(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (outside, secret) = (scene.outside(), scene.home().join(".pi/agent/auth.json"));
    scene.write(&outside.join("notes"), "hunter1")?;
    scene.write(&secret, "{\"scripted\":{\"type\":\"api_key\",\"key\":\"hunter2\"}}")?;
    let (outside, secret) = (outside.display().to_string(), secret.display().to_string());
    let script = script([
        bash(&format!("echo in > inside && echo sum-$((40+2)); echo out > '{outside}/made'; cat '{secret}'")),
        expecting("sum-42", read("inside")),
        expecting("in", write("a/b.txt", "alpha\n")),
        expecting("[Ww]rote", read(&format!("{outside}/notes"))),
        expecting_no("hunter1", write(&format!("{outside}/made"), "x")),
        expecting_no("[Ww]rote", read(&secret)),
        expecting_no("hunter2", say("done")),
    ]);
    let finished = Launch::guarded(&scene, version, &script)?.print("go")?.ended_with(REFUSED)?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(!finished.tool_result(0)?.contains("hunter2"), "{finished:#?}");
    ensure!(!scene.outside().join("made").exists(), "{finished:#?}");
    ensure!(std::fs::read_to_string(scene.project().join("a/b.txt"))? == "alpha\n");
    // The texts of the two refusals differ: one path would lead to a question, the other is denied.
    ensure!(finished.tool_result(3)? != finished.tool_result(5)?, "{finished:#?}");
    Ok(())
}

fn the_seven_tools(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "hunter1")?;
    scene.write(&scene.project().join("a/b.txt"), "alpha\nbeta\n")?;
    let outside = scene.outside().display().to_string();
    let edit = json!({ "path": "a/b.txt", "edits": [{ "oldText": "beta", "newText": "gamma" }] });
    let script = script([
        calls([call("edit", &edit)]),
        calls([call("grep", &json!({ "pattern": "gam", "path": "." }))]),
        expecting("gamma", calls([call("find", &json!({ "pattern": "*.txt" }))])),
        expecting("b\\.txt", calls([call("ls", &json!({ "path": "a" }))])),
        expecting("b\\.txt", calls([call("grep", &json!({ "pattern": "hunter", "path": outside }))])),
        expecting_no("hunter1", calls([call("find", &json!({ "pattern": "*", "path": outside }))])),
        expecting_no("^notes", calls([call("ls", &json!({ "path": outside }))])),
        expecting_no("^notes", say("done")),
    ]);
    let launch = Launch::guarded(&scene, version, &script)?;
    let finished =
        launch.with(["--tools", "read,bash,edit,write,grep,find,ls"]).print("go")?.ended_with(REFUSED)?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(std::fs::read_to_string(scene.project().join("a/b.txt"))? == "alpha\ngamma\n");
    Ok(())
}

/// A rule applies to the file, however its path is spelled.
fn spellings_of_a_path(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "hunter1")?;
    scene.write(&scene.home().join("notes"), "hunter1")?;
    let outside = scene.outside().display().to_string();
    std::os::unix::fs::symlink(scene.outside(), scene.project().join("link"))?;
    scene.write(&scene.project().join("a b"), "blank")?;
    let forbidden = [
        format!("@{outside}/notes"),
        format!("file://{outside}/notes"),
        "~/notes".to_owned(),
        "@~/notes".to_owned(),
        "../outside/notes".to_owned(),
        "link/notes".to_owned(),
        "./link/../../outside//notes".to_owned(),
        format!("{outside}/notes\0"),
        format!("{}/notes", "/x".repeat(2_500)),
    ];
    let mut steps: Vec<_> = forbidden.iter().map(|path| expecting_no("hunter1", read(path))).collect();
    steps.push(expecting_no("hunter1", write(&format!("@{outside}/made"), "x")));
    steps.push(write("@in-project", "x"));
    // pi treats a no-break space as a space.
    steps.push(read("a\u{a0}b"));
    steps.push(expecting("blank", say("done")));
    let finished = Launch::guarded(&scene, version, &script(steps))?.print("go")?.ended_with(REFUSED)?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(
        !scene.outside().join("made").exists() && scene.project().join("in-project").exists(),
        "{finished:#?}"
    );
    Ok(())
}

fn the_environment(version: PiVersion, user: User) -> Result<()> {
    const SECRETS: [(&str, &str); 9] = [
        ("OPENAI_API_KEY", "hunter2"),
        ("GITHUB_TOKEN", "hunter2"),
        ("SSH_AUTH_SOCK", "/hunter2"),
        ("SSHPASS", "hunter2"),
        ("LDAP_BINDPW", "hunter2"),
        ("FOO_PW", "hunter2"),
        ("DB_CRED", "hunter2"),
        ("JDBC_URL", "jdbc:postgresql://db/x?user=me&password=hunter2"),
        ("SETTINGS_OF_APP", "{\"password\": \"hunter2\"}"),
    ];
    fn with_secrets(launch: Launch<'_>) -> Launch<'_> {
        SECRETS.iter().fold(launch, |launch, (name, value)| launch.variable(name, *value))
    }
    let scene = Scene::new(user)?;
    let kept = script([bash("env"), expecting("MY_SETTING=kept", expecting_no("hunter2", say("done")))]);
    let launch = Launch::guarded(&scene, version, &kept)?.variable("MY_SETTING", "kept");
    with_secrets(launch).print("go")?.ended_with(0)?;
    let all = format!("found {}", SECRETS.len());
    let control = script([bash("echo found $(env | grep -c hunter2)"), expecting(&all, say("done"))]);
    with_secrets(Launch::plain(&scene, version, &control)?).print("go")?.ended_with(0)?;
    Ok(())
}

/// pi continues while any resource of an extension is open; ours must close its own.
fn ends_at_once(version: PiVersion, user: User) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(4);
    let scene = Scene::new(user)?;
    let script = script([bash("echo sum-$((40+2))"), expecting("sum-42", say("done"))]);
    let finished = Launch::guarded(&scene, version, &script)?.print("go")?.ended_with(0)?;
    ensure!(finished.lingered()? < AT_ONCE, "pi went on for {:?}", finished.lingered()?);
    portcullis_it::processes::wait_scene_gone(&scene, |_| false)
}

/// `--no-extensions` excludes the extensions that pi finds itself, not the one that `portcullis pi` names. The control
/// is a pi that is started without Portcullis and has no gate.
fn without_other_extensions(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let write = || bash(&format!("echo x > '{}'; echo then $?", made.display()));
    let guarded = script([write(), expecting("then 1", say("done"))]);
    Launch::guarded(&scene, version, &guarded)?.with(["--no-extensions"]).print("go")?.ended_with(REFUSED)?;
    ensure!(!made.exists(), "it wrote outside");
    let control = script([write(), expecting("then 0", say("done"))]);
    Launch::plain(&scene, version, &control)?.with(["--no-extensions"]).print("go")?.ended_with(0)?;
    ensure!(made.exists());
    Ok(())
}

/// There is no user interface in JSON mode either; the client gets the reason.
fn events_as_json(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let path = notes.display().to_string();
    let command = format!("echo x > '{}/made'; echo then $?", scene.outside().display());
    let steps = [read(&path), expecting_no("hunter1", bash(&command)), expecting("then 1", say("done"))];
    let launch = Launch::guarded(&scene, version, &script(steps))?;
    let finished = launch.with(["--mode", "json"]).print("go")?.ended_with(REFUSED)?;
    let events =
        finished.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let ends: Vec<_> = events.filter(|event| event["type"] == "tool_execution_end").collect();
    let first = ends.first().map(ToString::to_string).unwrap_or_default();
    ensure!(first.contains("\"isError\":true") && first.contains("nobody could be asked"), "{finished:#?}");
    ensure!(ends.len() == 2 && !scene.outside().join("made").exists(), "{finished:#?}");
    Ok(())
}

/// pi 0.74 completes arguments that the model did not finish, and executes the call, as the control shows.
fn arguments_that_broke_off(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.project().join("made");
    let broken =
        || calls([json!({ "name": "bash", "raw": "{\"command\": \"touch made; echo sum-$((40+2))" })]);
    let guarded = script([broken(), expecting_no("sum-42", say("done"))]);
    Launch::guarded(&scene, version, &guarded)?.print("go")?;
    ensure!(!made.exists(), "what broke off was carried out");
    let control = script([broken(), say("done")]);
    Launch::plain(&scene, version, &control)?.print("go")?;
    ensure!(made.exists() == (version == PiVersion::V0_74));
    Ok(())
}
