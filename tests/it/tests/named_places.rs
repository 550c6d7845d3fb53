//! The host's checks, before a command starts, of paths that the command names: neither these names nor the project
//! files that the host reads for the checks can make it do anything else.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(
    a_new_directory_makes_no_repository,
    a_new_directory_keeps_the_questions_below_it,
    a_new_directory_follows_no_link,
    files_that_name_paths_cost_little,
    what_the_project_names_opens_nothing,
    what_is_fetched_is_what_commands_read,
);

/// What makes a repository of `~/beside/evil`, but for one directory. Git runs what its settings say.
const PARTS: &str = "mkdir -p ~/beside/evil/refs && echo 'ref: refs/heads/main' > ~/beside/evil/HEAD && \
                     printf '[core]\\nbare = true\\n[alias]\\nhi = !echo PWNED\\n' > ~/beside/evil/config";
const LAST_PART: &str = "mkdir -p ~/beside/evil/objects; echo x > ~/beside/evil/objects/x";
const USER: &str = "cd ~/beside/evil && git hi";

/// A project, and a directory beside it in the home that commands may write.
fn prepared(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join("beside/file"), "")?;
    let settings = json!({ "filesystem": {
        "denyRead": ["~"], "allowRead": [".", "~/beside"], "allowWrite": [".", "~/beside"],
        "denyWrite": [],
    } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    Ok(scene)
}

fn outside(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(["-c", script]))
}

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    scene.portcullis(&["run", "--ask", "deny", "--", "bash", "-c", script])
}

fn a_new_directory_makes_no_repository(user: User) -> Result<()> {
    let control = prepared(user)?;
    outside(&control, &format!("{PARTS}; {LAST_PART}"))?.ended_with(0)?;
    ensure!(outside(&control, USER)?.stdout.contains("PWNED"), "the control");
    let scene = prepared(user)?;
    run(&scene, PARTS)?.ended_with(0)?;
    for attack in [LAST_PART, "cd ~/beside/evil && mkdir -p ./objects && touch objects/x"] {
        let ran = run(&scene, attack)?;
        let shown = outside(&scene, USER)?;
        ensure!(!shown.stdout.contains("PWNED"), "{attack}: {ran:?}");
        ensure!(!scene.home().join("beside/evil/objects").exists(), "{attack}: {ran:?}");
    }
    // A harmless directory is made.
    run(&scene, "mkdir -p ~/beside/new/objects && touch ~/beside/new/objects/x")?.ended_with(0)?;
    Ok(())
}

fn a_new_directory_keeps_the_questions_below_it(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let tasks = scene.home().join("beside/.vscode/tasks.json");
    let script = "mkdir -p ~/beside/.vscode && echo '{}' > ~/beside/.vscode/tasks.json";
    let ran = run(&scene, script)?;
    ensure!(!tasks.exists() && ran.stderr.contains("host.editor-files"), "{ran:?}");
    outside(&scene, script)?.ended_with(0)?;
    ensure!(tasks.exists(), "the control");
    Ok(())
}

/// A link takes the place of the directory around the new one, while the question is open.
fn a_new_directory_follows_no_link(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let at = |name: &str| scene.home().join(name);
    scene.write(&at("work/around/file"), "")?;
    scene.write(&at("private/file"), "")?;
    let swap = format!("cd '{}' && mv around was && ln -s ../private around", at("work").display());
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let script = "mkdir -p ~/work/around/new && touch ~/work/around/new/x";
    let environment = json!({ "PATH": "/usr/bin:/bin", "HOME": scene.home() });
    let id = host.begin(script, &environment)?;
    let question = host.question()?;
    outside(&scene, &swap)?.ended_with(0)?;
    host.answer(&question, &json!(0))?;
    let (result, output) = host.finish(id)?;
    ensure!(!at("private/new").exists(), "{result} {output}");
    outside(&scene, script)?.ended_with(0)?;
    ensure!(at("private/new/x").exists(), "the control");
    Ok(())
}

/// Project files that could hang the host or cost it much: pipes without a writer, long and deeply nested files, and
/// thousands of commands that lead to them.
fn files_that_name_paths_cost_little(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let project = |name: &str| scene.project().join(name);
    let long: String =
        (0..24_000).map(|number| format!("[d{number}]\npath = \"/home/x/{number}\"\n")).collect();
    let deep = format!("a = {}{}", "[".repeat(400_000), "]".repeat(400_000));
    let quick = |what: &str, script: &str| {
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        let before = Instant::now();
        host.run(script)?;
        let took = before.elapsed();
        ensure!(took < Duration::from_secs(10), "{what}: {took:?}");
        Ok(())
    };
    // The programs themselves would wait for a pipe.
    let none = "go() { :; }; cargo() { :; }; npm() { :; }; uv() { :; }; git() { :; }; ";
    let many = none.to_owned() + &"cargo build; ".repeat(300);
    for (what, text) in [("long", &long), ("deep", &deep)] {
        scene.write(&project("Cargo.toml"), text)?;
        quick(what, &many)?;
    }
    fs::remove_file(project("Cargo.toml"))?;
    let pipes = "mkdir .git; for name in go.mod go.work Cargo.toml package.json pyproject.toml .git/config; \
                 do mkfifo $name; done";
    outside(&scene, pipes)?.ended_with(0)?;
    let control = outside(&scene, "timeout 2 cat Cargo.toml")?;
    ensure!(control.code() == 124, "the control: a reader waits: {control:?}");
    quick("pipes", &format!("{none} go build; cargo build; npm ci; uv sync; git fetch"))
}

/// A hostile project names keys and system files in its own files; the session has no user.
fn what_the_project_names_opens_nothing(user: User) -> Result<()> {
    let scene = prepared(user)?;
    for name in [".ssh/id_rsa", "Documents/letter", ".aws/credentials"] {
        scene.write(&scene.home().join(name), "SECRET\n")?;
    }
    let home = scene.home();
    let paths = ["~", "~/.ssh", "/", "/etc", "../home", "../home/.ssh", "../home/Documents"];
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    let paths =
        [paths, vec![home.display().to_string(), home.join(".ssh/id_rsa").display().to_string()]].concat();
    let git: String =
        (0..).zip(&paths).map(|(n, path)| format!("[remote \"r{n}\"]\n\turl = {path}\n")).collect();
    let go: String = paths.iter().map(|path| format!("replace a => {path}\n")).collect();
    let cargo: String = (0..).zip(&paths).map(|(n, path)| format!("[d{n}]\npath = \"{path}\"\n")).collect();
    outside(&scene, "git init -q")?.ended_with(0)?;
    for (name, text) in [(".git/config", &git), ("go.mod", &go), ("Cargo.toml", &cargo)] {
        scene.write(&scene.project().join(name), text)?;
    }
    let look = "go build; cargo build; for n in 0 1 2 3 4 5 6 7 8; do git fetch r$n; done; \
                cat ~/.ssh/id_rsa ~/Documents/letter ~/.aws/credentials";
    let ran = run(&scene, look)?;
    ensure!(!ran.stdout.contains("SECRET"), "{ran:?}");
    // With an interface, no question is about the home as a whole, or about keys.
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.begin(look, &json!({ "PATH": "/usr/bin:/bin", "HOME": home }))?;
    let mut asked = Vec::new();
    loop {
        let message = host.wait("an end", |message| {
            message.get("method") == Some(&json!("ask")) || message.get("id") == Some(&json!(id))
        })?;
        if message.get("method").is_none() {
            break;
        }
        asked.push(message.pointer("/params/subject").cloned().unwrap_or_default());
        host.answer(&message, &json!("refuse"))?;
    }
    let letters = json!(home.join("Documents"));
    ensure!(asked.iter().all(|subject| *subject == letters), "{asked:?}");
    ensure!(outside(&scene, look)?.stdout.matches("SECRET").count() == 3, "the control");
    Ok(())
}

/// Commands may write the address of a repository that they read, because the user's git fetches nothing from there
/// that is news to them. One that takes its objects from a closed place is not of that kind.
fn what_is_fetched_is_what_commands_read(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let at = |name: &str| scene.at(name).display().to_string();
    let make = format!(
        "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=u GIT_CONFIG_KEY_1=user.email \
         GIT_CONFIG_VALUE_1=u@u.test; git init -q && git init -q ~/closed && echo SECRET > ~/closed/f && \
         git -C ~/closed add f && git -C ~/closed commit -q -m one && git clone -q ~/closed '{0}' && \
         git clone -q --shared ~/closed '{1}' && mkdir -p '{2}/.git' && for name in objects refs; do \
         ln -s ~/closed/.git/$name '{2}/.git/'; done && cp ~/closed/.git/HEAD ~/closed/.git/config '{2}/.git/'",
        at("whole"),
        at("lends"),
        at("linked"),
    );
    outside(&scene, &make)?.ended_with(0)?;
    for (name, expected) in [("whole", true), ("lends", false), ("linked", false)] {
        let add = format!("git config remote.{name}.url '{}'", at(name));
        let ran = run(&scene, &add)?;
        let config = fs::read_to_string(scene.project().join(".git/config"))?;
        ensure!(config.contains(&format!("/{name}")) == expected, "{name}: {ran:?}");
        // The control: what a fetch from there brings into the project.
        let brings = format!("{add}; git fetch -q {name} && git show FETCH_HEAD:f");
        ensure!(outside(&scene, &brings)?.stdout == "SECRET\n", "the control: {name}");
    }
    Ok(())
}
