//! Commands outside the sandbox: off by default, a question for each command where the user turned them on, and logged.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, expecting, say, turns};
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(the_host_asks_each_time, a_project_cannot_turn_it_on);
on_each_pi!(the_agent_asks_and_the_user_answers, without_the_setting_there_is_no_such_tool);

const TOOL: &str = "run_outside_sandbox";
const SETTINGS: &str = r#"{ "escalation": "ask", "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;

fn escalate(scene: &Scene, script: &str) -> Value {
    json!({ "callId": "e", "script": script, "cwd": scene.project() })
}

fn is(verdict: &Value, effect: &str, rule: &str) -> bool {
    verdict.get("effect") == Some(&json!(effect)) && verdict.get("rule") == Some(&json!(rule))
}

fn the_host_asks_each_time(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let verdict = host.succeed("escalate", &escalate(&scene, "true"))?;
    ensure!(is(&verdict, "deny", "host.escalation-off"), "{verdict}");

    // An edit of the settings turns them on in the running session.
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    for (choice, effect) in [(json!(0), "allow"), (json!("refuse"), "deny"), (json!(0), "allow")] {
        let id = host.request("escalate", &escalate(&scene, "make install"))?;
        let question = host.question()?;
        ensure!(question.to_string().contains("OUTSIDE the sandbox"), "{question}");
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let lasts = |option: &&Value| option.get("scope") != Some(&json!("once"));
        let lasting: Vec<&Value> = options.iter().filter(lasts).collect();
        let denies = |option: &&Value| option.get("effect") == Some(&json!("deny"));
        ensure!(lasting.len() == 1 && lasting.iter().all(denies), "no yes lasts: {question}");
        host.answer(&question, &choice)?;
        let verdict = host.reply(id)?;
        ensure!(is(verdict.get("result").unwrap_or(&verdict), effect, "host.escalation"), "{verdict}");
    }
    host.close()?;
    let log = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(log.stdout.matches("run outside make install").count() == 3, "{log:#?}");
    ensure!(
        log.stdout.matches("outside of the sandbox").count() == 2,
        "what was allowed has an outcome: {log:#?}"
    );

    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let verdict = host.succeed("escalate", &escalate(&scene, "true"))?;
    ensure!(is(&verdict, "deny", "host.escalation"), "nobody is there: {verdict}");
    Ok(())
}

fn a_project_cannot_turn_it_on(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join(".pi/portcullis.json"), r#"{ "escalation": "ask" }"#)?;
    let refused = scene.portcullis(&["config", "show"])?.ended_with(1)?;
    ensure!(refused.stderr.contains("can only tighten"), "{refused:#?}");
    Ok(())
}

fn the_agent_asks_and_the_user_answers(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    let made = scene.outside().join("made");
    let leave = |echo: &str| {
        let script = format!("echo {echo} >> '{}'; echo sum-$((40+2))", made.display());
        calls([call(TOOL, &json!({ "command": script }))])
    };
    let script = turns([
        ("first", vec![leave("one"), expecting("sum-42", say("first over"))]),
        ("second", vec![leave("two"), expecting("you said no", say("second over"))]),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.screen()?;
    screen.wait_for("Portcullis on")?;
    for (turn, key) in [("first", "o"), ("second", "Escape")] {
        screen.enter(turn)?;
        let shown = screen.wait_for("[o]    Once")?;
        ensure!(shown.contains("wants to run this OUTSIDE the sandbox"), "{shown}");
        ensure!(!shown.contains("[s]") && !shown.contains("[P]"), "{shown}");
        screen.press_calmly(key)?;
        screen.wait_for(&format!("{turn} over"))?;
    }
    ensure!(std::fs::read_to_string(&made)? == "one\n", "exactly the one that was allowed ran outside");
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

fn without_the_setting_there_is_no_such_tool(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let script = portcullis_it::script([
        calls([call(TOOL, &json!({ "command": format!("touch '{}'", made.display()) }))]),
        say("over"),
    ]);
    let finished = Launch::guarded(&scene, version, &script)?.print("go")?;
    ensure!(!made.exists(), "{finished:#?}");
    let requests = format!("{:?}", finished.requests.first());
    ensure!(!requests.contains(TOOL), "it is not offered: {requests}");
    Ok(())
}
