//! The verbs that only read: `audit`, `explain` and `status`; and the examples in help.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    the_log_tells_what_was_done,
    a_denial_names_its_setting,
    who_answered_is_told,
    a_permission_names_its_setting,
    a_changed_line_is_told,
    a_log_that_goes_on_in_another_file_is_one_log,
    tail_follows,
    running_sessions_are_shown,
    the_newest_refusal_here_is_explained,
    a_write_into_the_home_is_explained,
    tables_fit_eighty_columns,
    nothing_from_outside_acts_on_the_terminal,
    examples_in_help_run,
);

const BAD: i32 = 1;
const USAGE: i32 = 2;

fn the_log_tells_what_was_done(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["explain", "LAST"])?.ended_with(BAD)?;
    scene.portcullis(&["audit", "verify"])?.ended_with(0)?;
    scene.portcullis(&["run", "--", "sh", "-c", "exit 3"])?.ended_with(3)?;

    let told = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(told.stdout.lines().count() == 2 && told.stdout.contains("sh -c 'exit 3'"), "{told:#?}");
    let records = json_lines(&scene.portcullis(&["audit", "tail", "--json"])?.ended_with(0)?)?;
    let kinds: Vec<_> = records.iter().filter_map(|record| record.get("kind")?.as_str()).collect();
    ensure!(kinds == ["verdict", "outcome"], "{records:#?}");
    let last = scene.portcullis(&["audit", "tail", "-n", "1", "--json"])?.ended_with(0)?;
    ensure!(json_lines(&last)?.as_slice() == records.get(1..).unwrap_or_default(), "{last:#?}");

    // The decision is found by its own id and by the id of its outcome.
    let explained = json_of(&scene.portcullis(&["explain", "LAST", "--json"])?)?;
    for record in &records {
        let id = record.get("id").and_then(Value::as_str).context("a record has an id")?;
        ensure!(told.stdout.contains(id), "{id} in {told:#?}");
        ensure!(json_of(&scene.portcullis(&["explain", id, "--json"])?)? == explained, "{id}");
        let shown = scene.portcullis(&["audit", "show", id])?.ended_with(0)?;
        ensure!(shown.stdout.contains("sh -c 'exit 3'"), "{shown:#?}");
        // In words; the keys of the record are for `--json`.
        ensure!(shown.stdout.contains("asked by") && !shown.stdout.contains("verdict."), "{shown:#?}");
    }
    ensure!(explained.get("effect") == Some(&json!("allow")), "{explained:#}");
    ensure!(explained.get("logIntact") == Some(&json!(true)), "{explained:#}");
    ensure!(explained.pointer("/outcome/verdict") == Some(&json!(1)), "{explained:#}");
    let votes = explained.get("votes").and_then(Value::as_array).context("votes")?;
    ensure!(votes.iter().filter(|vote| vote.get("decided") == Some(&json!(true))).count() == 1, "{votes:?}");
    let human = scene.portcullis(&["explain", "LAST"])?.ended_with(0)?;
    ensure!(human.stdout.starts_with("allow  run sh") && human.stdout.contains("→"), "{human:#?}");

    let stats = json_of(&scene.portcullis(&["audit", "stats", "--json"])?)?;
    ensure!(stats.pointer("/effects/allow") == Some(&json!(1)), "{stats:#}");
    ensure!(stats.get("open") == Some(&json!(0)), "{stats:#}");
    scene.portcullis(&["audit", "stats"])?.ended_with(0)?;
    Ok(())
}

fn running_sessions_are_shown(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let told = scene.portcullis(&["status"])?.ended_with(0)?;
    ensure!(told.stdout == "no session is running\n", "{told:#?}");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    host.begin("echo begun; sleep 60", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let told = Deadline::start().until("the command in `ps`", || {
        let told = scene.portcullis(&["ps"])?.ended_with(0)?;
        Ok(told.stdout.contains("run echo begun; sleep 60").then_some(told))
    })?;
    let project = scene
        .project()
        .strip_prefix(scene.home())
        .map_or_else(|_| scene.project().display().to_string(), |below| format!("~/{}", below.display()));
    let process = format!("process {}", host.process_id());
    for part in [project, process, "protection on".to_owned(), "started ".to_owned(), "since ".to_owned()] {
        ensure!(told.stdout.contains(&part), "no `{part}` in {told:#?}");
    }
    let open = json!({ "callId": "r", "path": scene.outside().join("notes"), "intent": { "kind": "read" } });
    scene.write(&scene.outside().join("notes"), "alpha")?;
    host.request("file/open", &open)?;
    host.question()?;
    let told = scene.portcullis(&["status"])?.ended_with(0)?;
    ensure!(told.stdout.contains("1 question waits: portcullis asks list"), "{told:#?}");
    let told = json_of(&scene.portcullis(&["status", "--json"])?.ended_with(0)?)?;
    ensure!(told.pointer("/sessions/0/questions") == Some(&json!(1)), "{told:#}");
    ensure!(told.pointer("/sessions/0/session/tier") == Some(&json!("full")), "{told:#}");
    ensure!(told.get("here") == Some(&json!("on")), "{told:#}");
    ensure!(told.pointer("/sessions/0/session/pid") == Some(&json!(host.process_id())), "{told:#}");
    let commands = told.pointer("/sessions/0/commands").and_then(Value::as_array).context("commands")?;
    ensure!(commands.len() == 1, "{told:#}");
    host.kill()?;
    let told = scene.portcullis(&["status"])?.ended_with(0)?;
    ensure!(told.stdout == "no session is running\n", "its host was killed: {told:#?}");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "enabled": false }"#)?;
    let told = scene.portcullis(&["status"])?.ended_with(0)?;
    ensure!(told.stdout.contains("Protection is OFF here"), "{told:#?}");
    Ok(())
}

fn the_newest_refusal_here_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let none = scene.portcullis(&["explain"])?.ended_with(BAD)?;
    ensure!(none.stderr.contains("no refusal in"), "{none:#?}");
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&settings, SETTINGS)?;
    let secret = scene.home().join(".ssh/id");
    scene.write(&secret, "hunter2")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.call("file/open", &json!({ "callId": "r", "path": secret, "intent": { "kind": "read" } }))?;
    let notes = scene.project().join("notes");
    scene.write(&notes, "alpha")?;
    host.succeed("file/open", &json!({ "callId": "s", "path": notes, "intent": { "kind": "read" } }))?;
    host.close()?;
    let told = scene.portcullis(&["explain"])?.ended_with(0)?;
    ensure!(told.stdout.starts_with("deny  read ") && told.stdout.contains(".ssh/id"), "{told:#?}");
    let tail = scene.portcullis(&["audit", "tail", "--denied"])?.ended_with(0)?;
    ensure!(tail.stdout.lines().count() == 1 && tail.stdout.contains(".ssh/id"), "{tail:#?}");
    let elsewhere = scene.outside();
    fs::create_dir_all(&elsewhere)?;
    let mut command = scene.portcullis_command(&["explain"])?;
    let output = command.current_dir(&elsewhere).output()?;
    ensure!(output.status.code() == Some(BAD), "a refusal of another project: {output:?}");
    Ok(())
}

/// A command that creates a file directly in the home is refused without a question; the log, `explain` and the note say
/// so, and the remedy that they name works.
fn a_write_into_the_home_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.home().join("new.txt");
    let script = format!("echo made > '{}'", file.display());
    let run = || scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", &script]);
    let refused = run()?.ended_with(2)?;
    ensure!(refused.stderr.contains("rule `base.closed` of `base`"), "{refused:#?}");
    ensure!(refused.stderr.contains("portcullis allow ") && !file.exists(), "{refused:#?}");
    let told = scene.portcullis(&["explain"])?.ended_with(0)?;
    ensure!(told.stdout.starts_with("deny  write ~/new.txt"), "{told:#?}");
    let words: Vec<&str> = told.stdout.split_whitespace().collect();
    ensure!(words.join(" ").contains("to allow create it yourself, then portcullis allow "), "{told:#?}");
    let denied = scene.portcullis(&["audit", "tail", "--denied"])?.ended_with(0)?;
    ensure!(denied.stdout.lines().count() == 1 && denied.stdout.contains("~/new.txt"), "{denied:#?}");
    scene.write(&file, "")?;
    scene.portcullis(&["allow", &file.display().to_string(), "--write"])?.ended_with(0)?;
    run()?.ended_with(0)?;
    ensure!(fs::read_to_string(&file)? == "made\n");
    Ok(())
}

/// In a pipe a table is 80 columns wide, but a longer word stays whole; a log has one line for each record.
fn tables_fit_eighty_columns(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;
    scene.write(&scene.home().join("notes/x"), "")?;
    scene.portcullis(&["allow", "registries", "~/notes", "a-host-with-a-long-name.example.com:443"])?;
    scene.portcullis(&[
        "run",
        "--ask",
        "deny",
        "--",
        "sh",
        "-c",
        ": 'a script that is longer than a line of \
                       eighty columns, and so on'; echo x > ~/new",
    ])?;
    let narrow = |arguments: &[&str]| -> Result<Finished> {
        Finished::run(scene.portcullis_command(arguments)?.env_remove("COLUMNS"))
    };
    let verbs: [&[&str]; 12] = [
        &["config", "show"],
        &["config", "show", "--changed"],
        &["presets"],
        &["presets", "show", "registries"],
        &["grants", "list"],
        &["audit", "show", "LAST"],
        &["audit", "stats"],
        &["explain", "LAST"],
        &["status"],
        &["doctor"],
        &["home", "show"],
        &["policy", "list"],
    ];
    for verb in verbs {
        let told = narrow(verb)?;
        ensure!(!told.stdout.is_empty(), "{verb:?}: {told:#?}");
        for line in told.stdout.lines() {
            ensure!(line.chars().count() <= 80 || !line.trim().contains(' '), "{verb:?}: {line}");
        }
    }
    let log = narrow(&["audit", "tail"])?;
    ensure!(log.stdout.lines().any(|line| line.chars().count() > 80), "{log:#?}");
    Ok(())
}

fn a_denial_names_its_setting(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&settings, SETTINGS)?;
    let secret = scene.home().join(".ssh/id");
    scene.write(&secret, "hunter2")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let open = json!({ "callId": "r", "path": secret, "intent": { "kind": "read" } });
    let reply = host.call("file/open", &open)?;
    ensure!(reply.get("error").is_some() || !reply.to_string().contains("handle"), "{reply}");
    host.close()?;

    let explained = json_of(&scene.portcullis(&["explain", "LAST", "--json"])?)?;
    ensure!(explained.get("effect") == Some(&json!("deny")), "{explained:#}");
    let setting = explained.get("setting").and_then(Value::as_str).context("a setting")?;
    ensure!(setting.starts_with(&format!("{}:4:", settings.display())), "{setting}");
    ensure!(explained.get("why") == Some(&json!("strictest")), "{explained:#}");
    let human = scene.portcullis(&["explain", "LAST"])?.ended_with(0)?;
    for part in ["deny", "~/.ssh", "not done", "~/.pi/agent/sandbox/default.json:4:"] {
        ensure!(human.stdout.contains(part), "no `{part}` in {human:#?}");
    }
    Ok(())
}

fn a_permission_names_its_setting(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.home().join(".pi/agent/sandbox/default.json");
    let text = SETTINGS.replace(
        "\"limits\": { \"processes\": 500 }",
        "\"policies\": [{ \"use\": \"workspace\" },\n    { \"use\": \"git-guard\", \"config\":\n      { \"protected\": [\"main\"] } }]",
    );
    scene.write(&settings, &text)?;
    let file = "~/.pi/agent/sandbox/default.json";
    let at = |place: &str| format!("set by {file}:{place}");
    for (words, code, place) in [
        (&["connect", "a.example:443"], 0, "2:35 (network.allowedDomains[0])"),
        (&["write", "notes"], 0, "5:20 (filesystem.allowWrite[0])"),
        (&["exec", "git push origin main"], 20, "10:22 (policies[1].config.protected)"),
    ] {
        let words: Vec<&str> = ["check"].iter().chain(words).copied().collect();
        let told = scene.portcullis(&words)?.ended_with(code)?;
        ensure!(told.stdout.contains(&at(place)), "no `{}` in {told:#?}", at(place));
    }
    let told = json_of(&scene.portcullis(&["check", "--json", "connect", "a.example:443"])?)?;
    let setting = told.get("setting").and_then(Value::as_str).context("a setting")?;
    ensure!(setting == format!("{}:2:35 (network.allowedDomains[0])", settings.display()), "{told:#}");

    // Where the settings give no value, the policy's own default is shown.
    scene.write(&settings, &text.replace("\"protected\": [\"main\"]", ""))?;
    let told = scene.portcullis(&["check", "exec", "git push origin main"])?.ended_with(20)?;
    ensure!(told.stdout.contains("set by `protected`, a default of the policy's own"), "{told:#?}");

    // The log contains it as well.
    scene.write(&settings, &text)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    scene.write(&scene.project().join("notes"), "alpha")?;
    let open = json!({ "callId": "r", "path": scene.project().join("notes"), "intent": { "kind": "read" } });
    host.succeed("file/open", &open)?;
    host.close()?;
    let human = scene.portcullis(&["explain", "LAST"])?.ended_with(0)?;
    let place = format!("{file}:5:20 (filesystem.allowWrite[0])");
    ensure!(human.stdout.contains(&place), "no `{place}` in {human:#?}");
    Ok(())
}

/// Where no question was sent, or no client could answer, the log names no answerer.
fn who_answered_is_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
    let refusal = |cause: &str| json!({ "choice": "refuse", "cause": cause });
    for (interface, reply, answered_by, words) in [
        (Interface::Absent, json!(null), "nobody", "nobody: there was no user interface"),
        (Interface::Present, refusal("noInterface"), "nobody", "nobody: there was no user interface"),
        (Interface::Present, refusal("timeout"), "timeout", "nobody: no answer came in time"),
        (Interface::Present, refusal("aborted"), "withdrawal", "nobody: the question was withdrawn"),
        (Interface::Present, json!({ "choice": "refuse" }), "user", "you"),
    ] {
        let mut host = Serve::greeted(&scene, &[], interface)?;
        let id = host.request("file/open", &open)?;
        if !reply.is_null() {
            let asked = host.question()?.get("id").cloned();
            host.line(json!({ "jsonrpc": "2.0", "id": asked, "result": reply }).to_string())?;
        }
        ensure!(host.reply(id)?.get("error").is_some());
        host.close()?;
        let explained = json_of(&scene.portcullis(&["explain", "LAST", "--json"])?)?;
        ensure!(explained.get("answeredBy") == Some(&json!(answered_by)), "{reply}: {explained:#}");
        let human = scene.portcullis(&["explain", "LAST"])?.ended_with(0)?;
        let is_told = |line: &str| line.trim_start().starts_with("answered by") && line.ends_with(words);
        ensure!(human.stdout.lines().any(is_told), "{reply}: {human:#?}");
    }
    Ok(())
}

pub(super) const SETTINGS: &str = r#"{
  "network": { "allowedDomains": ["a.example"], "deniedDomains": [] },
  "filesystem": {
    "denyRead": ["~/.ssh", "~"],
    "allowWrite": ["."], "denyWrite": ["*.pem"]
  },
  "ripgrep": { "command": "rg" },
  "limits": { "processes": 500 }
}"#;

fn a_changed_line_is_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for script in ["true", "false"] {
        scene.portcullis(&["run", "--", script])?;
    }
    scene.portcullis(&["audit", "verify"])?.ended_with(0)?;
    let log = logs(&scene)?.into_iter().next().context("a log")?;
    let text = fs::read_to_string(&log)?;
    fs::write(&log, text.replacen("allow", "ALLOW", 1))?;
    let told = scene.portcullis(&["audit", "verify"])?.ended_with(BAD)?;
    ensure!(told.stdout.contains("line 2") && told.stdout.contains("intact"), "{told:#?}");
    let file = log.display().to_string();
    let told = scene.portcullis(&["audit", "verify", &file])?.ended_with(BAD)?;
    ensure!(told.stdout.contains("line 2") && !told.stdout.contains("intact"), "{told:#?}");
    // A log that does not exist is not a broken log.
    let told = scene.portcullis(&["audit", "verify", "no-such-log"])?.ended_with(USAGE)?;
    ensure!(told.stdout.is_empty() && told.stderr.contains("there is no log `"), "{told:#?}");
    let folder = scene.project().display().to_string();
    let told = scene.portcullis(&["audit", "verify", &folder])?.ended_with(BAD)?;
    ensure!(told.stdout.starts_with("NOT READ"), "{told:#?}");
    let told = scene.portcullis(&["audit", "verify", "--json", &file])?.ended_with(BAD)?;
    let told: Value = serde_json::from_str(&told.stdout)?;
    ensure!(told.get("intact") == Some(&json!(false)), "{told:#}");
    let id = format!("{}:1", log.file_stem().context("a name")?.to_string_lossy());
    let told = scene.portcullis(&["explain", &id])?.ended_with(0)?;
    ensure!(told.stdout.contains("LOG BROKEN"), "{told:#?}");
    // A truncated line is reported, and the complete ones are still read.
    fs::write(&log, text.get(..text.len() - 9).context("a long line")?)?;
    scene.portcullis(&["audit", "verify"])?.ended_with(BAD)?;
    let records = json_lines(&scene.portcullis(&["audit", "tail", "--json"])?.ended_with(0)?)?;
    ensure!(records.len() == 3, "{records:#?}");
    Ok(())
}

fn a_log_that_goes_on_in_another_file_is_one_log(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let first = logs(&scene)?.pop().context("a log")?;
    let name = first.file_stem().context("a name")?.to_string_lossy().into_owned();
    let second = first.with_file_name(format!("{name}~2.jsonl"));
    let text = fs::read_to_string(&first)?;
    let (one, two) = text.split_once('\n').context("two lines")?;
    fs::write(&first, format!("{one}\n"))?;
    scene.write(&second, two)?;
    let intact = scene.portcullis(&["audit", "verify"])?.ended_with(0)?;
    ensure!(intact.stdout.contains("2 lines") && intact.stdout.lines().count() == 1, "{intact:#?}");
    let explained = json_of(&scene.portcullis(&["explain", &format!("{name}:1"), "--json"])?)?;
    ensure!(explained.pointer("/outcome/result").is_some(), "{explained:#}");
    let told = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(told.stdout.lines().count() == 2, "{told:#?}");
    let stats = json_of(&scene.portcullis(&["audit", "stats", "--json"])?)?;
    ensure!(stats.get("logs") == Some(&json!(1)) && stats.get("open") == Some(&json!(0)), "{stats:#}");
    // Removing a log file is detected in the next one.
    fs::remove_file(&first)?;
    let told = scene.portcullis(&["audit", "verify"])?.ended_with(BAD)?;
    ensure!(told.stdout.contains("BROKEN"), "{told:#?}");
    Ok(())
}

fn tail_follows(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
    let mut output = tempfile::NamedTempFile::new()?;
    let mut command = scene.portcullis_command(&["audit", "tail", "-f", "-n", "1", "--json"])?;
    let mut tail = command.stdout(output.as_file_mut().try_clone()?).spawn()?;
    let seen = |count: usize| {
        Deadline::start().until("what is added to the log", || {
            let text = fs::read_to_string(output.path())?;
            Ok((text.lines().count() >= count).then_some(text))
        })
    };
    let outcome = seen(1).and_then(|_| {
        scene.portcullis(&["run", "--", "echo", "later"])?.ended_with(0)?;
        seen(3)
    });
    tail.kill()?;
    tail.wait()?;
    let text = outcome?;
    ensure!(text.lines().nth(1).is_some_and(|line| line.contains("echo later")), "{text}");
    Ok(())
}

fn nothing_from_outside_acts_on_the_terminal(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "sh", "-c", ": '\u{1b}[2J\u{202e}\u{9b}1m'"])?.ended_with(0)?;
    let verbs: [&[&str]; 8] = [
        &["audit", "tail"],
        &["audit", "tail", "--json"],
        &["audit", "show", "LAST"],
        &["audit", "show", "LAST", "--json"],
        &["audit", "stats"],
        &["explain", "LAST"],
        &["explain", "LAST", "--json"],
        &["explain", "\u{1b}[2J:1"],
    ];
    for verb in verbs {
        let told = scene.portcullis(verb)?;
        let acts = |character: char| (character.is_control() && character != '\n') || character == '\u{202e}';
        ensure!(!told.stdout.contains(acts) && !told.stderr.contains(acts), "{verb:?}: {told:?}");
    }
    let record = json_of(&scene.portcullis(&["audit", "show", "LAST", "--json"])?)?;
    ensure!(record.to_string().contains('\u{202e}'), "the JSON says less than the log: {record}");
    Ok(())
}

/// Pages whose examples neither need a registry, a person or another program, nor leave the scene.
const PAGES: [&str; 18] = [
    "",
    "status",
    "check",
    "explain",
    "audit",
    "config show",
    "config validate",
    "config path",
    "asks list",
    "grants",
    "allow",
    "deny",
    "presets",
    "home show",
    "changes",
    "undo",
    "redo",
    "branch",
];

/// Executes the examples in the help of verbs, as a user would type them. Wrong usage ends with 2.
fn examples_in_help_run(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("Makefile"), "test:\n\ttrue\n")?;
    for (folder, file) in [("src", "main.rs"), (".pi", "portcullis.json"), ("fixtures", "x")] {
        scene.write(&scene.project().join(folder).join(file), "{}")?;
    }
    scene.write(&scene.home().join("src/site/x"), "")?;
    scene.write(&scene.home().join("notes/x"), "")?;
    let lib = scene.project().parent().context("a parent")?.join("lib");
    fs::create_dir_all(lib)?;
    let program = portcullis_it::portcullis(user)?;
    let folder = program.parent().context("a folder")?.display().to_string();
    let mut count = 0;
    for page in PAGES {
        let words: Vec<&str> = page.split_whitespace().chain(["--help"]).collect();
        let help = scene.portcullis(&words)?.ended_with(0)?.stdout;
        let examples = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        for line in examples.take_while(|line| line.starts_with("  portcullis ")) {
            // The explanation is a column of its own.
            let line = line.trim().split("  ").next().unwrap_or_default();
            if line.starts_with("portcullis pi") || line.contains("tail -f") || line.contains(".wasm") {
                continue;
            }
            count += 1;
            let mut bash = scene.program("/bin/bash".as_ref());
            scene.enter(&mut bash);
            let finished = Finished::run(bash.args(["-c", &format!("PATH='{folder}':$PATH; {line}")]))?;
            ensure!(
                finished.code() != USAGE && finished.code() < 100 && !finished.stderr.contains("panic"),
                "{line}: {finished:#?}"
            );
        }
    }
    ensure!(count >= 30, "{count} examples");
    Ok(())
}

pub(super) fn json_of(finished: &Finished) -> Result<Value> {
    ensure!(finished.code() == 0, "{finished:#?}");
    serde_json::from_str(&finished.stdout).with_context(|| format!("{finished:#?}"))
}

fn json_lines(finished: &Finished) -> Result<Vec<Value>> {
    finished.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns the logs, the oldest first.
fn logs(scene: &Scene) -> Result<Vec<PathBuf>> {
    let mut files = scene.logs()?;
    files.sort_by_key(|file| file.metadata().and_then(|metadata| metadata.modified()).ok());
    Ok(files)
}
