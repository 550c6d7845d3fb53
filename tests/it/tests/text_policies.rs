//! Policies in Cedar and Rego, as `docs/text-policies.md` shows them: from an empty file to a verdict in pi, mistakes
//! with their places, files that cannot be used or that the agent attacks, and texts that do not end.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, say, script, write};
use portcullis_it::{Deadline, Finished, Interface, Launch, PiVersion, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(cedar, rego);

const PAGE: &str = include_str!("../../../docs/text-policies.md");
const ALLOW: i32 = 0;
const ASK: i32 = 10;
const DENY: i32 = 20;
const OWN_FAILURE: i32 = 1;
/// The longest time to compile an engine with its text on a busy machine.
const LINTING: Duration = Duration::from_secs(300);
/// A language with its examples.
#[derive(Clone, Copy)]
struct Language {
    name: &'static str,
    /// A valid text that denies one command.
    short: &'static str,
    /// Texts with a mistake, and a part of the message with its place.
    mistakes: &'static [(&'static str, &'static str)],
    /// Texts that do not end, or take too much memory.
    endless: &'static [&'static str],
}

const CEDAR: Language = Language {
    name: "cedar",
    short: "@id(\"short\") forbid (principal, action == Action::\"exec\", resource) when { resource.program == \"make\" };",
    mistakes: &[
        ("forbid (principal, action, resource)\nwehn { true };", "team.cedar:2:1: "),
        (
            "// ü\nforbid (principal, action == Action::\"exec\", resource)\nwhen { resource.progam == \"rm\" };",
            "team.cedar:3:8: ",
        ),
        ("forbid (principal, action == Action::\"execute\", resource);", "team.cedar:1:"),
        ("@reasn(\"x\")\nforbid (principal, action, resource);", "unknown annotation `@reasn`"),
    ],
    endless: &[],
};

const REGO: Language = Language {
    name: "rego",
    short: "package portcullis\ndeny contains {\"rule\": \"short\"} if input.resource.program == \"make\"\n",
    mistakes: &[
        ("package portcullis\n\ndeny contains \"x\" fi true\n", "team.rego:3:19: "),
        ("package portcullis\ndeny if time.now_ns() > 0\n", "team.rego:2:20: "),
        ("package team\ndeny if true\n", "write `package portcullis`"),
    ],
    endless: &[
        "package portcullis\nallow if {\n  input.action == \"exec\"\n  some a in numbers.range(1, 5000)\n  \
         some b in numbers.range(1, 5000)\n  a + b == 0\n}\n",
        "package portcullis\nall := [text | input.action == \"exec\"; some a in numbers.range(1, 1000000); \
         text := sprintf(\"%d and a longer text that takes memory\", [a])]\nallow if count(all) == 0\n",
    ],
};

fn cedar(user: User) -> Result<()> {
    whole_way(user, CEDAR)
}

fn rego(user: User) -> Result<()> {
    whole_way(user, REGO)
}

/// All of it in one scene: compiling an engine takes most of the time.
fn whole_way(user: User, language: Language) -> Result<()> {
    let scene = Scene::new(user)?;
    from_an_empty_file(&scene, language).context("from an empty file to a verdict")?;
    mistakes_have_places(&scene, language).context("mistakes")?;
    files_that_cannot_be_used(&scene, language).context("files")?;
    the_agent_cannot_write_it(&scene, language).context("in the project")?;
    an_edit_counts_at_once(&scene, language).context("an edit")?;
    what_does_not_end_denies(&scene, language).context("endless")
}

fn from_an_empty_file(scene: &Scene, language: Language) -> Result<()> {
    let name = file_name(language);
    let file = scene.project().join(&name);
    let started = Instant::now();
    scene.write(&file, "")?;
    scene.write(&file, &block(language.name)?)?;
    // The engine is compiled with its text first.
    let linting = &mut scene.portcullis_command(&["policy", "lint", &name])?;
    Finished::run_until(Deadline::after(LINTING), linting)?.ended_with(0)?;
    scene.portcullis(&["policy", "run", &name, "exec", "git -C lib push origin main"])?.ended_with(ASK)?;
    scene.portcullis(&["check", "--policy", &name, "exec", "npm publish"])?.ended_with(DENY)?;
    in_pi(scene, language)?;
    let taken = format!(
        "{}: from an empty file over lint, run and check to a verdict in pi in {:.1} s\n",
        language.name,
        started.elapsed().as_secs_f64()
    );
    std::io::stdout().write_all(taken.as_bytes())?;

    scene.write(&scene.project().join("cases.toml"), &block("toml")?)?;
    let tested =
        scene.portcullis(&["policy", "test", &name, "--cases", "cases.toml", "--json"])?.ended_with(0)?;
    let tested: Value = serde_json::from_str(&tested.stdout)?;
    ensure!(tested.get("run") == Some(&json!(4)), "{tested}");
    let rules = tested.pointer("/rules").and_then(Value::as_object).context("rules")?;
    ensure!(
        ["publish", "push", "vendored"].iter().all(|rule| rules.get(*rule) == Some(&true.into())),
        "{tested}"
    );
    // The control: a case that does not hold.
    let wrong = "[[case]]\nname = 'x'\ncommand = 'npm publish'\nexpect = 'allow'\n";
    scene.write(&scene.project().join("wrong.toml"), wrong)?;
    scene.portcullis(&["policy", "test", &name, "--cases", "wrong.toml"])?.ended_with(1)?;
    Ok(())
}

/// The text as one of the user's policies, in pi.
fn in_pi(scene: &Scene, language: Language) -> Result<()> {
    scene.write(&sandbox(scene).join(file_name(language)), &block(language.name)?)?;
    settings(scene, language, &json!({ "policyFile": file_name(language) }))?;
    let steps = script([
        bash("echo made > made && npm publish"),
        expecting("publishing is for people", write("vendor/a.c", "x")),
        expecting("vendored", bash("echo made > made")),
        say("done"),
    ]);
    let finished = Launch::guarded(scene, PiVersion::V1_5, &steps)?.print("go")?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(scene.project().join("made").exists(), "control: {finished:#?}");
    ensure!(!scene.project().join("vendor/a.c").exists(), "{finished:#?}");
    Ok(())
}

fn mistakes_have_places(scene: &Scene, language: Language) -> Result<()> {
    let name = file_name(language);
    for (text, expected) in language.mistakes {
        scene.write(&scene.project().join(&name), text)?;
        let linted = scene.portcullis(&["policy", "lint", &name])?.ended_with(OWN_FAILURE)?;
        ensure!(linted.stderr.contains(expected), "{text}: {linted:#?}");
        let checked = scene.portcullis(&["check", "--policy", &name, "exec", "ls"])?;
        ensure!(checked.stderr.contains(expected) && ![ALLOW, ASK].contains(&checked.code()), "{checked:#?}");
        // In the settings, no session begins.
        scene.write(&sandbox(scene).join(&name), text)?;
        settings(scene, language, &json!({ "policyFile": name }))?;
        refuses_to_start(scene, expected)?;
    }
    Ok(())
}

fn files_that_cannot_be_used(scene: &Scene, language: Language) -> Result<()> {
    let name = file_name(language);
    let file = sandbox(scene).join(&name);
    settings(scene, language, &json!({ "policyFile": name }))?;
    fs::remove_file(&file)?;
    refuses_to_start(scene, &name)?;
    scene.write(&file, &format!("{}\n{}", language.short, " ".repeat(256 * 1024)))?;
    refuses_to_start(scene, "larger than 256 KiB")?;
    fs::write(&file, [language.short.as_bytes(), b"\xff"].concat())?;
    refuses_to_start(scene, "not UTF-8")?;
    fs::remove_file(&file)?;
    fs::create_dir(&file)?;
    refuses_to_start(scene, "no plain file")?;
    fs::remove_dir(&file)?;

    scene.write(&file, language.short)?;
    settings(scene, language, &json!({ "policyFile": name, "policyText": "" }))?;
    refuses_to_start(scene, "either `policyFile` or `policyText`")?;
    // Without a text, and with a name that only the file of the configuration has, which would not be protected.
    settings(scene, language, &json!({}))?;
    refuses_to_start(scene, "policyText")?;
    scene.write(&sandbox(scene).join("text.json"), &json!({ "policyFile": name }).to_string())?;
    use_policy(scene, &json!({ "use": language.name, "configFile": "text.json" }))?;
    refuses_to_start(scene, "belongs in `config`")?;
    // The controls.
    settings(scene, language, &json!({ "policyText": language.short }))?;
    scene.portcullis(&["check", "exec", "make"])?.ended_with(DENY)?;
    settings(scene, language, &json!({ "policyFile": name }))?;
    scene.portcullis(&["check", "exec", "make"])?.ended_with(DENY)?;
    scene.portcullis(&["check", "exec", "ls"])?.ended_with(ALLOW)?;
    Ok(())
}

/// Tries to replace the text, or the directory that holds it.
const ATTACK: &str = "echo > rules/F; ln rules/F hard; echo > hard; echo x > new; mv new rules/F; rm -f rules/F; ln -sf /dev/null rules/F; \
                      mv rules elsewhere; rm -rf rules; mkdir -p rules; echo > rules/F; echo x > other; echo tried";

fn the_agent_cannot_write_it(scene: &Scene, language: Language) -> Result<()> {
    let rules = scene.project().join("rules");
    fs::create_dir(&rules)?;
    scene.user().own(&rules)?;
    let file = rules.join(file_name(language));
    scene.write(&file, language.short)?;
    settings(scene, language, &json!({ "policyFile": file }))?;
    let checked = format!("rules/{}", file_name(language));
    scene.portcullis(&["check", "write", &checked])?.ended_with(DENY)?;
    scene.portcullis(&["check", "write", "other"])?.ended_with(ALLOW)?;
    let attack = ATTACK.replace('F', &file_name(language));
    let attacked = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", &attack])?;
    ensure!(attacked.stdout.contains("tried") && scene.project().join("other").exists(), "{attacked:#?}");
    ensure!(fs::read_to_string(&file)? == language.short, "{attacked:#?}");
    scene.portcullis(&["check", "exec", "make"])?.ended_with(DENY)?;

    // The control: the same commands without Portcullis.
    let mut control = scene.user().command("/bin/sh".as_ref());
    control.args(["-c", &attack]);
    scene.enter(&mut control);
    Finished::run(control.current_dir(scene.project()))?;
    ensure!(fs::read_to_string(&file).ok().as_deref() != Some(language.short), "control");
    Ok(())
}

fn an_edit_counts_at_once(scene: &Scene, language: Language) -> Result<()> {
    let file = sandbox(scene).join(file_name(language));
    scene.write(&file, language.short)?;
    settings(scene, language, &json!({ "policyFile": file_name(language) }))?;
    let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
    ensure!(is_denied(&mut host, "make")?, "the text denies it");
    scene.write(&file, &language.short.replace("make", "nothing"))?;
    ensure!(!is_denied(&mut host, "make")?, "the edit allows it");
    // A text with a mistake leaves the one before in force.
    scene.write(&file, &language.short.replace("make", "true"))?;
    ensure!(is_denied(&mut host, "true")?, "the second edit denies it");
    scene.write(&file, "deny (")?;
    ensure!(is_denied(&mut host, "true")?, "what was in force before the mistake still is");
    host.close()?;
    Ok(())
}

fn is_denied(host: &mut Serve, script: &str) -> Result<bool> {
    let (reply, _) = host.run(script)?;
    Ok(reply.get("denied").is_some())
}

fn what_does_not_end_denies(scene: &Scene, language: Language) -> Result<()> {
    let name = file_name(language);
    scene.write(&sandbox(scene).join(&name), language.short)?;
    for text in language.endless {
        scene.write(&scene.project().join(&name), text)?;
        let run = scene.portcullis(&["policy", "run", &name, "exec", "ls"])?.ended_with(DENY)?;
        ensure!(run.stdout.contains("policy"), "{run:#?}");
        // The control: a request for which the endless part does not run.
        let control = scene.portcullis(&["policy", "run", &name, "read", "/etc/hosts"])?;
        ensure!([ALLOW, ASK].contains(&control.code()), "{control:#?}");
    }
    Ok(())
}

/// No session begins, and the message says why.
fn refuses_to_start(scene: &Scene, expected: &str) -> Result<()> {
    let refused = scene.portcullis(&["run", "--", "true"])?;
    ensure!(refused.stderr.contains(expected) && refused.code() == 125, "{expected}: {refused:#?}");
    Ok(())
}

fn settings(scene: &Scene, language: Language, config: &Value) -> Result<()> {
    use_policy(scene, &json!({ "use": language.name, "config": config }))
}

fn use_policy(scene: &Scene, policy: &Value) -> Result<()> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, policy],
    });
    scene.write(&sandbox(scene).join("default.json"), &settings.to_string())
}

fn sandbox(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox")
}

fn file_name(language: Language) -> String {
    Path::new("team").with_extension(language.name).display().to_string()
}

/// Returns the page's first block in a language.
fn block(language: &str) -> Result<String> {
    let start = format!("```{language}\n");
    let block = PAGE.split_once(&start).and_then(|(_, rest)| rest.split_once("```"));
    Ok(block.with_context(|| format!("the page has no block in {language}"))?.0.to_owned())
}
