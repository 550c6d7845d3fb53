//! Names that the user's own tools execute: new dot files of a project, start-up files of a home, and the same answer for
//! commands and tools whatever is writable and whichever policy decides.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    new_dot_files_are_not_written_unasked,
    one_question_covers_a_place,
    start_up_names_of_a_home_are_not_written_unasked,
    commands_and_tools_give_the_same_answer,
);

/// Names of a home that start programs, as the product has them.
const HOME: &str = include_str!("../../../host/names/data/home.txt");

/// The number of the option that allows for this command.
const ONCE: u64 = 0;

/// Ways in which a command gives `.foorc` in the directory `$1` content of its own.
const WAYS: &[&str] = &[
    "echo evil > $1/.foorc",
    "echo evil > t && mv t $1/.foorc",
    "echo evil > t && ln t $1/.foorc",
    "echo evil > t && ln -s $PWD/t $1/.foorc",
    "mkdir d && echo evil > d/.foorc && mv d/.foorc $1/",
    "echo evil > t && echo old > o && mv -T t $1/.foorc",
    "mkfifo $1/.foorc",
    "mkdir -p t/x && echo evil > t/x/y && mv t $1/.foorc",
    "perl -e 'open F, \"+>\", \"$ARGV[0]/.FooRC\" or exit 1; print F \"evil\"' $1",
];

/// Settings with these writable places and these policies.
fn settings(scene: &Scene, allow_write: &Value, policies: &[&str]) -> Result<()> {
    let mut settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": allow_write, "denyWrite": [] },
    });
    if !policies.is_empty() {
        let policies: Vec<Value> = policies.iter().map(|name| json!({ "use": name })).collect();
        settings.as_object_mut().context("an object")?.insert("policies".to_owned(), json!(policies));
    }
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

/// A session in `directory`.
fn session(scene: &Scene, directory: &Path, interface: Interface) -> Result<Serve> {
    let mut host = Serve::start(scene, &[], &[])?;
    let mut hello = host.hello(interface);
    hello.as_object_mut().context("an object")?.insert("cwd".to_owned(), json!(directory));
    host.succeed("hello", &hello)?;
    Ok(host)
}

/// Runs a script in `directory` and returns what it says.
fn run(host: &mut Serve, directory: &Path, stream: u32, script: &str) -> Result<String> {
    let params = json!({ "callId": format!("c{stream}"), "stream": stream, "script": script, "cwd": directory,
        "env": { "PATH": "/usr/bin:/bin" }, "origin": "agent" });
    host.succeed("exec", &params)?;
    host.output_of(stream)
}

/// Whether the tool `write` may write there; what it wrote is removed.
fn tool_writes(host: &mut Serve, path: &Path) -> Result<bool> {
    host.call("file/write", &json!({ "callId": "w", "path": path, "content": "evil" }))?;
    let is_written = fs::read_to_string(path).is_ok_and(|text| text == "evil");
    if is_written {
        fs::remove_file(path)?;
    }
    Ok(is_written)
}

fn new_dot_files_are_not_written_unasked(user: User) -> Result<()> {
    let make = || -> Result<Scene> {
        let scene = Scene::new(user)?;
        for (name, text) in [(".there", "old"), ("sub/package.json", "{}"), ("plain/x", "")] {
            scene.write(&scene.project().join(name), text)?;
        }
        Ok(scene)
    };
    for way in WAYS {
        let scene = make()?;
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        for place in [".", "sub"] {
            host.run(&format!("set -- {place}; {way}"))?;
            for name in [".foorc", ".FooRC"] {
                let path = scene.project().join(place).join(name);
                ensure!(path.symlink_metadata().is_err(), "{way} in {place}");
                ensure!(!tool_writes(&mut host, &path)?, "the tool write in {place}");
            }
        }
        // A directory on the way that the command makes itself frees nothing.
        host.run("mkdir -p .github/workflows .bundle/plugin; echo evil > .github/workflows/ci.yml; echo evil > .bundle/plugin/x")?;
        for name in [".github/workflows/ci.yml", ".bundle/plugin/x"] {
            ensure!(!scene.project().join(name).exists(), "{name}");
        }
        host.close()?;
        // The control: the same script, free.
        let free = make()?;
        let mut control = user.command("/bin/bash".as_ref());
        control.args(["-c", &format!("set -- sub; {way}")]);
        free.enter(&mut control);
        Finished::run(&mut control)?.ended_with(0)?;
        let made = [".foorc", ".FooRC"].map(|name| free.project().join("sub").join(name).symlink_metadata());
        ensure!(made.iter().any(Result::is_ok), "control: {way}");
    }
    ordinary_work_needs_no_question(&make()?)
}

/// What was there, what a scaffold makes, what is harmless, and what lies deeper than a project's root.
fn ordinary_work_needs_no_question(scene: &Scene) -> Result<()> {
    const WORK: &[&str] = &[
        "echo new > .there",
        "echo new > .there.tmp && mv .there.tmp .there",
        "rm .there && echo again > .there",
        "mv .there .away.bak && echo again > .there",
        "mkdir app && echo x > app/.foorc && echo '{}' > app/package.json && echo y > app/.barrc",
        "echo target > .gitignore && echo x > .editorconfig && echo x > .env.example",
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x",
        "git init -q other && echo x > other/.foorc",
        "python3 -m venv --without-pip .venv",
        "mkdir -p .pytest_cache/v .cache/x .next/y && echo x > .pytest_cache/v/.lock && echo x > .cache/x/.y",
        "mkdir -p node_modules/.bin node_modules/.cache && echo x > node_modules/.package-lock.json",
        "mkdir -p .github/ISSUE_TEMPLATE && echo x > .github/ISSUE_TEMPLATE/bug.md",
        "echo x > plain/.note && mkdir -p src/deep && echo x > src/deep/.note",
        "echo x > .tmpAbCdEf && mv .tmpAbCdEf Cargo.lock",
    ];
    let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
    for work in WORK {
        let (_, said) = host.run(&format!("set -e; {work}; echo done"))?;
        ensure!(said.ends_with("done\n"), "{work}: {said}");
    }
    for name in [".there", ".gitignore", ".mailmap", "plain/.other"] {
        let written = host.call(
            "file/write",
            &json!({ "callId": "w", "path": scene.project().join(name), "content": "tool" }),
        )?;
        ensure!(written.get("result").is_some(), "{name}: {written}");
    }
    host.close()?;
    Ok(())
}

fn one_question_covers_a_place(user: User) -> Result<()> {
    const CASES: &[(&str, &[&str])] = &[
        (
            "for n in .arc .brc .crc; do echo x > $n; done; mkdir .drc; echo x > .drc/conf",
            &[".arc", ".brc", ".crc", ".drc/conf"],
        ),
        (
            "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo '{}' > .vscode/settings.json",
            &[".vscode/tasks.json", ".vscode/settings.json"],
        ),
    ];
    for (script, files) in CASES {
        for yes in [true, false] {
            let scene = Scene::new(user)?;
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
            let question = host.question()?;
            host.answer(&question, &if yes { json!(ONCE) } else { json!("refuse") })?;
            host.finish(id).with_context(|| format!("{script}: a second question"))?;
            for file in *files {
                ensure!(scene.project().join(file).exists() == yes, "{script}: {file}, answered {yes}");
            }
            // It was for that command, and what was refused stays a question.
            let id = host.begin("echo x > .other", &json!({ "PATH": "/usr/bin:/bin" }))?;
            let question = host.question()?;
            host.answer(&question, &json!("refuse"))?;
            host.finish(id)?;
            ensure!(!scene.project().join(".other").exists());
            host.close()?;
        }
    }
    Ok(())
}

fn home_names() -> Vec<&'static str> {
    let entries = HOME.lines().filter(|line| !line.starts_with("# ") && *line != "#");
    entries.filter_map(|line| Some(line.split_once(" | ")?.0)).collect()
}

/// A home with half of the names there: every other one is a file, or a directory with a file in it.
fn start_up_names_of_a_home_are_not_written_unasked(user: User) -> Result<()> {
    let names = home_names();
    ensure!(names.len() >= 158, "{}", names.len());
    let scene = Scene::new(user)?;
    settings(&scene, &json!(["."]), &[])?;
    let home = scene.home();
    // What is a directory for its tool may be a file to an attacker.
    let targets: Vec<PathBuf> = names
        .iter()
        .enumerate()
        .map(|(number, name)| home.join(name).join(if number % 2 == 0 { "evil" } else { "" }))
        .map(|path| path.components().collect())
        .collect();
    for (path, name) in targets.iter().zip(&names).step_by(3) {
        let is_there = [".pi", ".ssh", ".gnupg"].iter().any(|own| name.starts_with(own));
        if !is_there && !home.join(name).exists() {
            scene.write(path, "old")?;
        }
    }
    let mut host = session(&scene, &home, Interface::Absent)?;
    let list: String = targets.iter().map(|path| format!("'{}'\n", path.display())).collect();
    // Each in a command of its own shell word; all of them in few commands, because each has only so many questions.
    let script = format!(
        "for f in {}; do mkdir -p \"${{f%/*}}\"; (echo evil > \"$f\"); echo evil > e; mv -fT e \"$f\"; done 2>/dev/null; echo tried",
        list.replace('\n', " ")
    );
    let said = run(&mut host, &home, 900, &script)?;
    ensure!(said.ends_with("tried\n"), "{said}");
    let is_evil = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.trim() == "evil");
    let written: Vec<_> = targets.iter().filter(|path| is_evil(path)).collect();
    ensure!(written.is_empty(), "commands wrote {written:?}");
    for path in &targets {
        ensure!(!tool_writes(&mut host, path)?, "the tool write: {}", path.display());
    }
    for name in ["notes.txt", ".wget-hsts", ".gitignore", "src/p/main.rs"] {
        scene.write(&home.join("src/p/x"), "")?;
        let said = run(&mut host, &home, 901, &format!("echo evil > {name} && echo done"))?;
        ensure!(said == "done\n" && tool_writes(&mut host, &home.join(name))?, "{name}: {said}");
    }
    host.close()?;
    executed_without_us(user)
}

/// The control: the tools do execute what stands there.
fn executed_without_us(user: User) -> Result<()> {
    const CONTROLS: &[(&str, &str, &str)] = &[
        (".bash_profile", "touch ~/RAN", "bash -lc true"),
        (".profile", "touch ~/RAN", "sh -lc true"),
        (".bashrc", "touch ~/RAN", "bash -ic true </dev/null"),
        (".local/lib/pythonVERSION/site-packages/usercustomize.py", "open('RAN', 'w')", "python3 -c 0"),
        (".local/lib/pythonVERSION/site-packages/x.pth", "import os; open('RAN', 'w')", "python3 -c 0"),
        (".gitconfig", "[core]\n\tfsmonitor = touch ~/RAN; false\n", "git init -q w; cd w; git status"),
        (".config/git/config", "[alias]\n\tst = !touch ~/RAN\n", "git st"),
        (".curlrc", "output = RAN", "curl -s file:///etc/hostname"),
    ];
    let scene = Scene::new(user)?;
    let home = scene.home();
    let run = |script: &str| {
        let mut command = user.command("/usr/bin/env".as_ref());
        command.args(["-i", "PATH=/usr/local/bin:/usr/bin:/bin"]).arg(format!("HOME={}", home.display()));
        Finished::run(command.args(["/bin/bash", "-c", script]).current_dir(&home))
    };
    let version = run("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")?.stdout;
    for (name, text, tool) in CONTROLS {
        let file = home.join(name.replace("VERSION", version.trim()));
        scene.write(&file, text)?;
        run(tool)?;
        ensure!(home.join("RAN").exists(), "control: {tool} does not execute {name}");
        fs::remove_file(home.join("RAN"))?;
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Names that are protected at their place in the project, and names that are not.
const NAMES: &[(&str, bool)] = &[
    (".pi/skills/SKILL.md", true),
    (".pi/prompts/x.md", true),
    (".pi/settings.json", true),
    (".pi/extensions/x.ts", true),
    (".github/workflows/ci.yml", true),
    (".github/hooks/x.json", true),
    (".github/ISSUE_TEMPLATE/bug.md", false),
    (".cargo/config.toml", true),
    (".vscode/tasks.json", true),
    ("src/.vscode/tasks.json", true),
    ("src/pnpm-workspace.yaml", true),
    (".envrc", true),
    (".foorc", true),
    (".config/foo.toml", true),
    ("notes.txt", false),
    ("src/notes.txt", false),
    (".gitignore", false),
];

fn commands_and_tools_give_the_same_answer(user: User) -> Result<()> {
    let writable = [
        json!(["."]),
        json!(["./.pi"]),
        json!(["./.github"]),
        json!(["./.cargo"]),
        json!([".", "./.pi"]),
        json!(["./src", "./.vscode"]),
    ];
    // What is asked of every policy would be a question for the command itself under `git-guard` or `secrets` alone.
    let policies: &[&[&str]] =
        &[&[], &["guard"], &["bosun"], &["workspace", "git-guard"], &["workspace", "secrets"]];
    let mut wrong = Vec::new();
    for allow_write in &writable {
        for policies in policies {
            let told = format!("allowWrite {allow_write}, policies {policies:?}");
            let scene = Scene::new(user)?;
            settings(&scene, allow_write, policies)?;
            for (name, _) in NAMES {
                let directory = scene.project().join(name);
                scene.write(&directory.with_file_name("there.txt"), "")?;
            }
            let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let (_, said) = host.run(&format!(
                "for n in {}; do echo evil > $n; done 2>/dev/null; echo tried",
                names.join(" ")
            ))?;
            ensure!(said.ends_with("tried\n"), "{told}: {said}");
            for (name, is_protected) in NAMES {
                let path = scene.project().join(name);
                let by_command = path.exists();
                if by_command {
                    fs::remove_file(&path)?;
                }
                let by_tool = tool_writes(&mut host, &path)?;
                if by_command != by_tool || *is_protected && by_command {
                    wrong.push(format!("{told}: {name}: command {by_command}, tool {by_tool}"));
                }
            }
            host.close()?;
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
