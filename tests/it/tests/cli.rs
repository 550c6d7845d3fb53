//! The command line: exit codes, settings and policy files.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::{Value, json};

as_each_user!(
    run_gives_the_commands_status,
    run_confines,
    the_project_keeps_the_working_directory,
    there_is_no_sandbox_in_a_sandbox,
    run_asks_as_told,
    questions_while_a_command_runs,
    patterns_hide_what_appears_later,
    check_answers_by_exit_code,
    a_mistake_in_the_settings_permits_nothing,
    another_policy_file,
);

const ALLOW: i32 = 0;
const ERROR: i32 = 1;
const USAGE: i32 = 2;
const ASK: i32 = 10;
const DENY: i32 = 20;
const OWN_FAILURE: i32 = 125;
const CANNOT_EXECUTE: i32 = 126;
const NOT_FOUND: i32 = 127;

fn run_gives_the_commands_status(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("no-program"), "x")?;
    let sh = |script: &'static str| vec!["run", "--", "sh", "-c", script];
    let cases: [(Vec<&str>, i32); 9] = [
        (sh("exit 0"), 0),
        (sh("exit 7"), 7),
        (sh("exit 255"), 255),
        (sh("kill -9 $$"), 128 + 9),
        (sh("kill -TERM $$"), 128 + 15),
        (vec!["run", "--", "./no-program"], CANNOT_EXECUTE),
        (vec!["run", "--", "./no-such-program"], NOT_FOUND),
        (vec!["run", "--", "no-such-program-anywhere"], NOT_FOUND),
        (vec!["run"], USAGE),
    ];
    for (arguments, code) in cases {
        scene.portcullis(&arguments)?.ended_with(code).with_context(|| format!("{arguments:?}"))?;
    }
    let spoken = scene.portcullis(&[
        "run",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; echo \"$0 $1\"",
        "a b",
        "c'd",
    ])?;
    let spoken = spoken.ended_with(0)?;
    ensure!(spoken.stdout == "out\na b c'd\n" && spoken.stderr == "err\n", "{spoken:#?}");
    Ok(())
}

fn run_confines(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let script = format!("echo x > inside; echo x > '{}'", made.display());
    let finished = scene.portcullis(&["run", "--", "sh", "-c", &script])?;
    ensure!(
        finished.code() != 0 && !made.exists() && scene.project().join("inside").exists(),
        "{finished:#?}"
    );

    // From another directory, with the project given as an argument; and the command's `/tmp` is not that of the
    // machine.
    let project = scene.project().display().to_string();
    let outside = tempfile::Builder::new().prefix("portcullis-it-").tempfile_in("/tmp")?;
    let script = format!(
        "pwd; echo y > inside; ls '{}' && echo seen; echo > /tmp/mine && cat /tmp/mine",
        outside.path().display()
    );
    let mut command = scene.portcullis_command(&["run", "--project", &project, "--", "sh", "-c", &script])?;
    let finished = Finished::run(command.current_dir(scene.outside()))?.ended_with(0)?;
    ensure!(!finished.stdout.contains("seen"), "{finished:#?}");
    ensure!(fs::read_to_string(scene.project().join("inside"))? == "y\n", "{finished:#?}");
    Ok(())
}

/// `run`, `pi` and `serve` inside a sandbox fail with a message that says so.
fn there_is_no_sandbox_in_a_sandbox(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let program = portcullis_it::portcullis(user)?;
    let inside = scene.project().join("portcullis");
    fs::copy(program, &inside)?;
    for (words, code) in [("run -- true", OWN_FAILURE), ("pi -p hello", ERROR), ("serve", ERROR)] {
        let script = format!("./portcullis {words}");
        let finished = scene.portcullis(&["run", "--", "sh", "-c", &script])?.ended_with(code)?;
        ensure!(
            finished.stderr.contains("runs in a sandbox of Portcullis already"),
            "{words}: {finished:#?}"
        );
    }
    Ok(())
}

/// With `--project`, the command starts where the caller is if that lies in the project, else in the project.
fn the_project_keeps_the_working_directory(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (project, below) = (scene.project(), scene.project().join("a/b"));
    fs::create_dir_all(&below)?;
    scene.user().own(&below)?;
    std::os::unix::fs::symlink(&below, scene.outside().join("link"))?;
    let (given, link) = (project.display().to_string(), scene.outside().join("link"));
    for (from, starts_in) in [
        (project.as_path(), &project),
        (&below, &below),
        (&link, &below),
        (&scene.outside(), &project),
        (&scene.home(), &project),
    ] {
        let mut command = scene.portcullis_command(&["run", "--project", &given, "--", "pwd", "-P"])?;
        let finished = Finished::run(command.current_dir(from))?.ended_with(0)?;
        let expected = starts_in.canonicalize()?.display().to_string();
        ensure!(finished.stdout.trim_end() == expected, "from {}: {finished:#?}", from.display());
    }
    Ok(())
}

fn run_asks_as_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    // Without a policy that allows commands, running one leads to a question.
    let policy = deny_one(&scene)?;
    let run =
        |ask: &str| scene.portcullis(&["run", "--policy", &policy, "--ask", ask, "--", "touch", "made"]);
    let refused = run("deny")?.ended_with(CANNOT_EXECUTE)?;
    ensure!(!scene.project().join("made").exists(), "{refused:#?}");
    run("allow")?.ended_with(0)?;
    ensure!(scene.project().join("made").exists());
    // Without a terminal, a question counts as refused.
    let unasked = scene.portcullis(&["run", "--policy", &policy, "--", "touch", "made-too"])?;
    let unasked = unasked.ended_with(CANNOT_EXECUTE)?;
    ensure!(!scene.project().join("made-too").exists(), "{unasked:#?}");
    Ok(())
}

/// A command continues after an answer; a refused command gets the reason.
fn questions_while_a_command_runs(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (inside, outside) = (scene.project().join(".npmrc"), scene.outside().join("notes"));
    let script = format!(
        "echo x > .npmrc; echo y > '{0}'; mkdir '{0}-d'; mv '{0}-d' '{0}-e'; echo end",
        outside.display()
    );
    let moved = scene.outside().join("notes-e");
    for ask in ["deny", "prompt"] {
        let refused = scene.portcullis(&["run", "--ask", ask, "--", "sh", "-c", &script])?.ended_with(0)?;
        ensure!(
            refused.stdout.contains("end") && refused.stderr.contains("Permission denied"),
            "{refused:#?}"
        );
        ensure!(!inside.exists() && !outside.exists() && !moved.exists(), "{refused:#?}");
        // The model and the user who runs the command are told which rule refused it.
        let told = |what: &str, rule: &str| {
            let mut lines = refused.stderr.lines().filter(|line| line.contains("The sandbox refused"));
            lines.any(|line| line.contains(what) && line.contains(&format!("(rule `{rule}` of ")))
        };
        ensure!(told(".npmrc", "host.tool-files") && told("notes", "base.outside"), "{refused:#?}");
    }
    let allowed = scene.portcullis(&["run", "--ask", "allow", "--", "sh", "-c", &script])?.ended_with(0)?;
    ensure!(fs::read_to_string(&inside)? == "x\n" && fs::read_to_string(&outside)? == "y\n", "{allowed:#?}");
    ensure!(moved.is_dir(), "made and renamed: {allowed:#?}");
    Ok(())
}

const NO_KEYS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home", "**/*.pem"],
    "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } }"#;

/// Row 9 of the attack corpus: the host creates the file while a command waits for it.
fn patterns_hide_what_appears_later(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let late = scene.project().join("a").join("late.pem");
    // `fdinfo` shows this flag (`O_NOFOLLOW`) for a file that the kernel opened itself, not for one from the broker.
    let by_whom = "sysopen(F, q(seen), 0400000); open(I, q(<), q(/proc/self/fdinfo/) . fileno F); \
        print grep(/^flags:.*[4567].....$/, <I>) ? qq(by the kernel\\n) : qq(by the broker\\n)";
    let read = format!(
        "touch waiting; until [ -e a/late.pem ]; do sleep 0.01; done; cat a/late.pem; echo end; cat seen; \
         perl -e '{by_whom}'"
    );
    let read = read.as_str();
    let run = |arguments: &[&str]| {
        for file in [scene.project().join("waiting"), late.clone()] {
            let _gone = fs::remove_file(file);
        }
        let mut command = scene.portcullis_command(arguments)?;
        std::thread::scope(|scope| {
            let command = scope.spawn(move || Finished::run(&mut command));
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !scene.project().join("waiting").exists() && std::time::Instant::now() < deadline {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            // The file appears with its content by a rename, because the command polls for the name.
            let begun = scene.project().join("late.part");
            scene.write(&begun, "the secret\n")?;
            fs::rename(begun, &late)?;
            command.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    };
    scene.write(&scene.project().join("seen"), "in sight\n")?;
    scene.write(&scene.project().join("a").join("note"), "")?;
    let open = run(&["run", "--", "sh", "-c", read])?.ended_with(0)?;
    ensure!(open.stdout.contains("the secret"), "control, without the pattern: {open:#?}");
    ensure!(open.stdout.ends_with("by the kernel\n"), "who has no pattern pays for none: {open:#?}");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), NO_KEYS)?;
    let hidden = run(&["run", "--", "sh", "-c", read])?.ended_with(0)?;
    ensure!(
        !hidden.stdout.contains("the secret") && hidden.stdout.ends_with("end\nin sight\nby the broker\n"),
        "{hidden:#?}"
    );
    ensure!(hidden.stderr.contains("Permission denied"), "{hidden:#?}");
    ensure!(
        hidden.stderr.contains("refused reading") && hidden.stderr.contains("filesystem.denyRead"),
        "{hidden:#?}"
    );
    let made = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log";
    scene.portcullis(&["run", "--", "sh", "-ec", made])?.ended_with(0)?;
    // A plain path that did not exist at the start (row 10) is hidden as well.
    let plain = NO_KEYS.replace("**/*.pem", "a/late.pem");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &plain)?;
    let hidden = run(&["run", "--", "sh", "-c", read])?.ended_with(0)?;
    ensure!(!hidden.stdout.contains("the secret") && hidden.stdout.contains("end"), "{hidden:#?}");
    Ok(())
}

fn check_answers_by_exit_code(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("inside"), "x")?;
    scene.write(&scene.outside().join("notes"), "x")?;
    scene.write(&scene.home().join(".pi/agent/auth.json"), "{}")?;
    let outside = scene.outside().join("notes").display().to_string();
    let cases: [(&[&str], i32); 16] = [
        (&["read", "inside"], ALLOW),
        (&["write", "new"], ALLOW),
        (&["list", "."], ALLOW),
        (&["exec", "make test"], ALLOW),
        (&["read", "/usr/bin/env"], ALLOW),
        (&["read", "/etc/hostname"], ASK),
        (&["read", &outside], ASK),
        (&["write", &outside], ASK),
        (&["read", "../outside/notes"], ASK),
        (&["connect", "example.com:443"], ASK),
        (&["tool", "mcp__db__query", "{\"sql\":\"select 1\"}"], ASK),
        (&["read", "~/.pi/agent/auth.json"], DENY),
        (&["write", "~/.pi/agent/auth.json"], DENY),
        (&["read"], USAGE),
        (&["tool", "x", "no json"], USAGE),
        (&["connect", "example.com"], USAGE),
    ];
    for (arguments, code) in cases {
        let words: Vec<&str> = ["check"].iter().chain(arguments).copied().collect();
        scene.portcullis(&words)?.ended_with(code).with_context(|| format!("{arguments:?}"))?;
    }
    let told = scene.portcullis(&["check", "--json", "read", "~/.pi/agent/auth.json"])?.ended_with(DENY)?;
    let verdict: Value = serde_json::from_str(&told.stdout).with_context(|| format!("{told:#?}"))?;
    ensure!(verdict.get("effect") == Some(&json!("deny")), "{verdict}");
    // None of the commands took effect.
    ensure!(!scene.project().join("new").exists());
    Ok(())
}

fn a_mistake_in_the_settings_permits_nothing(user: User) -> Result<()> {
    let mistakes = [
        (
            "{\n  \"network\": {\"allowedDomains\": [], \"deniedDomains\": []},\n  \"filesytem\": {}\n}",
            "line 3, column 3",
            "filesystem",
        ),
        ("{\n  \"enabled\": \"yes\"\n}", "line 2, column 14", "enabled"),
        ("{\n  \"enabled\": true,\n}", "line 3, column 1", ""),
        ("", "", ""),
    ];
    for (text, place, key) in mistakes {
        let scene = Scene::new(user)?;
        let file = scene.home().join(".pi/agent/sandbox/default.json");
        scene.write(&file, text)?;
        let finished = scene.portcullis(&["run", "--", "touch", "made"])?.ended_with(OWN_FAILURE)?;
        ensure!(!scene.project().join("made").exists(), "{finished:#?}");
        for part in ["sandbox/default.json", place, key] {
            ensure!(finished.stderr.contains(part), "no `{part}` in {finished:#?}");
        }
        scene.portcullis(&["check", "read", "inside"])?.ended_with(ERROR)?;
    }
    Ok(())
}

fn another_policy_file(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("secret.txt"), "hunter2")?;
    let policy = deny_one(&scene)?;
    scene.portcullis(&["check", "read", "secret.txt"])?.ended_with(ALLOW)?;
    let told = scene.portcullis(&["check", "--policy", &policy, "read", "secret.txt"])?.ended_with(DENY)?;
    ensure!(told.stdout.contains("one.denied"), "{told:#?}");

    let seen = scene.portcullis(&["run", "--", "cat", "secret.txt"])?.ended_with(0)?;
    ensure!(seen.stdout.contains("hunter2"), "{seen:#?}");
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "workspace" }, { "use": policy }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let hidden =
        scene.portcullis(&["run", "--", "sh", "-c", "cat secret.txt; echo x > secret.txt; echo end"])?;
    ensure!(hidden.stdout.contains("end") && !hidden.stdout.contains("hunter2"), "{hidden:#?}");
    ensure!(fs::read_to_string(scene.project().join("secret.txt"))? == "hunter2");
    // A policy that cannot be loaded permits nothing.
    scene.write(&scene.project().join("broken.wasm"), "no wasm")?;
    let broken = scene.portcullis(&["run", "--policy", "broken.wasm", "--", "touch", "made"])?;
    ensure!(broken.code() == OWN_FAILURE && !scene.project().join("made").exists(), "{broken:#?}");
    Ok(())
}

/// Returns the policy that denies `secret.txt`, at a path that the scene's user can read.
fn deny_one(scene: &Scene) -> Result<String> {
    Ok(portcullis_it::guest("deny-one", scene.user())?.display().to_string())
}
