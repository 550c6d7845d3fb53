//! Presets: `allow`, `deny`, `presets`, `--allow`, and what a question offers.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, World, portcullis};
use serde_json::{Value, json};

as_each_user!(
    what_is_allowed_is_an_answer_like_any_other,
    what_is_denied_stays_so,
    nothing_is_written_for_what_no_answer_can_allow,
    for_one_session_only,
    no_project_brings_a_preset_along,
    a_preset_with_a_mistake_is_left_out,
    a_preset_is_no_way_out_for_data,
    a_question_offers_the_preset,
);

const ALLOW: i32 = 0;
const ASK: i32 = 10;
const DENY: i32 = 20;

fn judged(scene: &Scene, words: &[&str]) -> Result<i32> {
    Ok(scene.portcullis(&[&["check"], words].concat())?.code())
}

fn what_is_allowed_is_an_answer_like_any_other(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.home().join("notes");
    scene.write(&notes, "NOTES")?;
    let notes = notes.display().to_string();
    let npm = ["connect", "registry.npmjs.org:443"];
    let asked: [(&str, &[&str]); 4] = [
        ("npm", &npm),
        ("api.test:443", &["connect", "api.test:443"]),
        ("localhost:5432", &["connect", "127.0.0.1:5432"]),
        (&notes, &["read", &notes]),
    ];
    for scope in ["--project", "--all"] {
        for (what, check) in asked {
            ensure!(judged(&scene, check)? == ASK, "before: {what}");
            let done = scene.portcullis(&["allow", what, scope, "--json"])?.ended_with(0)?;
            let done: Value = serde_json::from_str(&done.stdout)?;
            ensure!(judged(&scene, check)? == ALLOW, "{what} {scope}: {done}");
            let id = done.pointer("/added/0/id").and_then(Value::as_str).context("one answer has one id")?;
            ensure!(done.pointer("/added/1").is_none(), "{done}");
            let listed = scene.portcullis(&["grants", "list"])?.ended_with(0)?;
            ensure!(listed.stdout.contains(id), "{listed:#?}");
            let again = scene.portcullis(&["allow", what, scope])?.ended_with(0)?;
            ensure!(again.stdout.contains("allowed already"), "{again:#?}");
            scene.portcullis(&["grants", "revoke", id])?.ended_with(0)?;
            ensure!(judged(&scene, check)? == ASK, "taken back: {what}");
        }
    }
    // Below the directory, and in this project only.
    scene.portcullis(&["allow", "registries", "npm"])?.ended_with(0)?;
    let mut elsewhere = scene.portcullis_command(&["check", "connect", "registry.npmjs.org:443"])?;
    Finished::run(elsewhere.current_dir(scene.outside()))?.ended_with(ASK)?;
    ensure!(judged(&scene, &["connect", "proxy.golang.org:443"])? == ALLOW);
    ensure!(judged(&scene, &["connect", "registry.npmjs.org:80"])? == ASK, "another port");
    Ok(())
}

fn what_is_denied_stays_so(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["allow", "npm", "--all"])?.ended_with(0)?;
    scene.portcullis(&["deny", "npm"])?.ended_with(0)?;
    ensure!(judged(&scene, &["connect", "registry.npmjs.org:443"])? == DENY);
    scene.write(&scene.project().join("fixtures/a"), "x")?;
    let run = |script: &str| scene.portcullis(&["run", "--", "sh", "-c", script]);
    run("cat fixtures/a && echo y > fixtures/a")?.ended_with(0)?;
    scene.portcullis(&["deny", "./fixtures", "--write"])?.ended_with(0)?;
    let finished = run("cat fixtures/a && echo z > fixtures/a")?;
    ensure!(finished.code() != 0 && finished.stdout == "y\n", "{finished:#?}");
    scene.portcullis(&["deny", "./fixtures"])?.ended_with(0)?;
    let finished = run("cat fixtures/a")?;
    ensure!(finished.code() != 0 && finished.stdout.is_empty(), "{finished:#?}");

    // What was allowed before does not stay allowed.
    let notes = scene.home().join("notes");
    scene.write(&notes.join("a"), "NOTES")?;
    let notes = notes.display().to_string();
    scene.portcullis(&["allow", &notes])?.ended_with(0)?;
    ensure!(judged(&scene, &["read", &format!("{notes}/a")])? == ALLOW, "control");
    let told = scene.portcullis(&["deny", &notes])?.ended_with(0)?;
    ensure!(told.stdout.starts_with("taken back: reading "), "{told:#?}");
    ensure!(judged(&scene, &["read", &format!("{notes}/a")])? == DENY);
    Ok(())
}

fn nothing_is_written_for_what_no_answer_can_allow(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let key = scene.home().join(".ssh/id_ed25519");
    scene.write(&key, "KEY")?;
    for (what, why) in [
        (key.display().to_string(), "no answer lifts a denial"),
        ("/".to_owned(), "is all files"),
        ("*".to_owned(), "every host"),
        ("nmp".to_owned(), "is no preset, is it `npm`?"),
        ("./not-there".to_owned(), "cannot be found"),
    ] {
        let refused = scene.portcullis(&["allow", &what])?.ended_with(1)?;
        ensure!(refused.stderr.contains(why), "{what}: {refused:#?}");
    }
    let answers = scene.home().join(".pi/agent/sandbox/projects.json");
    ensure!(!answers.exists(), "something was written");

    // A denial of hosts also counts for their ports, the names below them, and presets of such hosts alone.
    scene.portcullis(&["deny", "denied.test", "*.below.test", "npm", "half.test:80"])?.ended_with(0)?;
    let before = fs::read_to_string(&answers)?;
    for what in ["denied.test", "denied.test:8080", "a.below.test", "*.below.test", "npm", "half.test:80"] {
        let refused = scene.portcullis(&["allow", what])?.ended_with(1)?;
        ensure!(refused.stderr.contains("no answer lifts a denial"), "{what}: {refused:#?}");
        ensure!(refused.stderr.contains("portcullis config edit"), "{what}: {refused:#?}");
    }
    ensure!(fs::read_to_string(&answers)? == before, "something was written");
    // What is denied in part is allowed in part, and an answer lifts `strictAllowlist`.
    let strict = before.replace("\"deniedDomains\"", "\"strictAllowlist\": true, \"deniedDomains\"");
    ensure!(strict != before);
    scene.write(&answers, &strict)?;
    scene.portcullis(&["allow", "half.test", "below.test", "registries"])?.ended_with(0)?;
    for (target, expected) in [("half.test:443", ALLOW), ("half.test:80", DENY), ("below.test:1", ALLOW)] {
        ensure!(judged(&scene, &["connect", target])? == expected, "{target}");
    }
    Ok(())
}

fn for_one_session_only(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.home().join("notes");
    scene.write(&notes, "NOTES")?;
    let notes = notes.display().to_string();
    let run = |allow: &[&str]| scene.portcullis(&[&["run"], allow, &["--", "cat", &notes]].concat());
    let closed = run(&[])?;
    ensure!(closed.code() != 0 && closed.stdout.is_empty(), "control: {closed:#?}");
    let open = run(&["--allow", "npm", "--allow", &notes])?.ended_with(0)?;
    ensure!(open.stdout == "NOTES", "{open:#?}");
    let closed = run(&["--allow", "npm"])?;
    ensure!(closed.stdout.is_empty(), "it holds longer than the session: {closed:#?}");
    let strict = r#"{ "network": { "allowedDomains": [], "deniedDomains": [], "strictAllowlist": true },
        "filesystem": { "denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;
    let settings = scene.outside().join("strict.json");
    scene.write(&settings, strict)?;
    let settings = settings.display().to_string();
    for (allow, is_open) in [("127.0.0.1:1", true), ("127.0.0.1:2", false)] {
        let allowed = ["run", "--settings", &settings, "--allow", allow, "--"];
        let ended = scene.portcullis(&[&allowed[..], &["curl", "-sS", "http://127.0.0.1:1/"]].concat())?;
        // Nothing listens there, which the host finds only if it may look.
        ensure!(ended.stderr.contains("cannot be reached") == is_open, "{allow}: {ended:#?}");
    }
    let wrong = run(&["--allow", "nmp"])?.ended_with(125)?;
    ensure!(wrong.stderr.contains("is no preset"), "{wrong:#?}");
    ensure!(!scene.home().join(".pi/agent/sandbox").exists(), "something was written");
    // `portcullis pi --allow` hands it to the host that pi starts; commands do not see it.
    for (allowed, expected) in [("", ""), (notes.as_str(), "NOTES"), (&format!("npm\n{notes}"), "NOTES")] {
        let mut host = Serve::start(&scene, &[], &[("PORTCULLIS_ALLOW", allowed)])?;
        let hello = host.hello(Interface::Absent);
        host.succeed("hello", &hello)?;
        let (_, output) = host.run(&format!("cat {notes} 2> /dev/null; echo $PORTCULLIS_ALLOW"))?;
        ensure!(output.lines().next() == Some(expected), "{allowed}: {output}");
    }
    Ok(())
}

/// Neither by a file of its own nor by settings; the control is the same file beside the user's settings.
fn no_project_brings_a_preset_along(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let preset = "title   mine\nhost    evil.test:443    for an attack\n";
    for place in ["presets/mine.preset", ".pi/presets/mine.preset", ".pi/sandbox/presets/mine.preset"] {
        scene.write(&scene.project().join(place), preset)?;
        for what in ["mine", "../presets/mine"] {
            scene.portcullis(&["allow", what])?.ended_with(1)?;
        }
    }
    scene.write(&scene.project().join(".pi/portcullis.json"), r#"{ "presets": ["github"] }"#)?;
    let refused = scene.portcullis(&["run", "--", "true"])?.ended_with(125)?;
    ensure!(refused.stderr.contains("this file can only tighten"), "{refused:#?}");
    fs::remove_file(scene.project().join(".pi/portcullis.json"))?;
    // A command cannot write where the user's own presets are.
    let own = scene.home().join(".pi/agent/sandbox/presets");
    scene.write(&own.join("other.preset"), preset)?;
    let script = format!("echo 'title x' > '{}/npm.preset'", own.display());
    let finished = scene.portcullis(&["run", "--ask", "allow", "--", "sh", "-c", &script])?;
    ensure!(finished.code() != 0 && !own.join("npm.preset").exists(), "{finished:#?}");
    scene.write(&own.join("mine.preset"), preset)?;
    scene.portcullis(&["allow", "mine"])?.ended_with(0)?;
    ensure!(judged(&scene, &["connect", "evil.test:443"])? == ALLOW, "control");
    Ok(())
}

fn a_preset_with_a_mistake_is_left_out(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = scene.home().join(".pi/agent/sandbox/presets/mine.preset");
    scene.write(&own, "title   mine\nhost    a.test:443    of mine\n")?;
    scene.portcullis(&["allow", "mine", "npm"])?.ended_with(0)?;
    ensure!(judged(&scene, &["connect", "a.test:443"])? == ALLOW);
    scene.write(&own, "title   mine\nhost    a.test    of mine\n")?;
    let finished = scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let told = "mine.preset`, line 2: `a.test` has no port";
    ensure!(finished.stderr.contains(told) && finished.stderr.contains("allows nothing"), "{finished:#?}");
    ensure!(judged(&scene, &["connect", "a.test:443"])? == ASK);
    ensure!(judged(&scene, &["connect", "registry.npmjs.org:443"])? == ALLOW, "the rest holds");
    let listed = scene.portcullis(&["presets"])?.ended_with(1)?;
    ensure!(listed.stdout.contains(told), "{listed:#?}");
    Ok(())
}

/// The control is the same host, allowed by itself.
fn a_preset_is_no_way_out_for_data(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, super::network::PROGRAM)?;
    let own = scene.home().join(".pi/agent/sandbox/presets/shop.preset");
    scene.write(&own, "title   a shop\nupload  1    small\nhost    allowed.test:80    packages\n")?;
    let settings = world.settings(r#"{ "allowedDomains": [], "deniedDomains": [] }"#)?;
    let send = "head -c 900000 /dev/zero | curl -sS --data-binary @- -H Expect: http://allowed.test/; ";
    let run = |what: &str| {
        let mut command = world.command(&portcullis(user)?)?;
        command.args(["run", "--ask", "deny", "--settings"]).arg(&settings);
        command.args(["--allow", what, "--", "bash", "-c", &format!("{send}{send}{send}")]);
        Finished::run(&mut command)
    };
    let finished = run("shop")?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(finished.stderr.contains("which is what the preset allows"), "{finished:#?}");
    let control = run("allowed.test:80")?;
    ensure!(control.stdout.matches("REACHED").count() == 3, "control: {control:#?}");
    Ok(())
}

fn a_question_offers_the_preset(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, super::network::PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, super::network::asking::ASK, Interface::Present)?;
    let get = |name: &str| format!("curl -sS https://{name}/ 2>&1");
    let id = host.begin(&get("registry.npmjs.org"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let offers = |key: &str, preset: &str| {
        options.iter().position(|option| {
            let covers = option.get("covers").map(Value::to_string).unwrap_or_default();
            option.get("key") == Some(&json!(key)) && covers.contains(preset)
        })
    };
    for key in ["P", "A"] {
        let of_npm = offers(key, "npm's package registry (preset npm): registry.npmjs.org:443");
        ensure!(of_npm < offers(key, "package registries (preset registries): npm, pypi"), "{question:#}");
    }
    let chosen = offers("P", "(preset npm)").context("the preset is offered")?;
    host.answer(&question, &json!(chosen))?;
    host.finish(id)?;
    let kept = fs::read_to_string(scene.home().join(".pi/agent/sandbox/projects.json"))?;
    ensure!(kept.contains(r#""presets": ["npm"]"#), "{kept}");
    // Another host of it is not asked about; there is no such server in this world.
    let (result, output) = host.run(&get("registry.yarnpkg.com"))?;
    ensure!(
        !output.contains("Couldn't connect to server after") && !result.to_string().contains("you said no"),
        "{output}"
    );
    Ok(())
}
