//! Sensitive files below the home directory: denied to tools and commands without a question, under every name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    tools_are_denied_without_a_question,
    commands_do_not_see_them_in_a_visible_home,
    the_home_directory_as_project_changes_nothing,
    settings_lift_an_entry_and_answers_do_not,
    no_offered_answer_opens_keys,
    links_that_lead_nowhere_refuse_no_command,
    other_names_are_refused_with_the_reason,
    rules_on_files_of_the_kernel_hold_for_reading,
);

const SECRET: &str = "hunter2";
const FILES: [(&str, &str); 5] = [
    (".ssh/id_ed25519", "host.ssh-keys"),
    (".aws/credentials", "host.aws"),
    (".config/gh/hosts.yml", "host.forges"),
    (".netrc", "host.netrc"),
    (".bash_history", "host.histories"),
];

/// A home with secrets, and a project with links to a key there, which the user has made.
fn scene(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    for (name, _) in FILES {
        scene.write(&scene.home().join(name), &format!("{SECRET}\n"))?;
    }
    scene.write(&scene.home().join(".ssh/known_hosts"), "a known host\n")?;
    scene.write(&scene.home().join("notes"), "plain notes\n")?;
    let key = scene.home().join(".ssh/id_ed25519");
    symlink(&key, scene.project().join("soft"))?;
    // A separate key: a file with two names is also withheld by the rule on hard links.
    let linked = scene.home().join(".ssh/id_rsa");
    scene.write(&linked, &format!("{SECRET}\n"))?;
    fs::hard_link(linked, scene.project().join("hard"))?;
    Ok(scene)
}

fn settings(scene: &Scene, lifted: &Value) -> Result<()> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~"], "allowWrite": ["."], "denyWrite": [] },
        "protections": { "lift": lifted },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

fn read(path: &PathBuf) -> Value {
    json!({ "callId": "r", "path": path, "intent": { "kind": "read" } })
}

/// The control is a text file beside them, which leads to a question.
fn tools_are_denied_without_a_question(user: User) -> Result<()> {
    let scene = scene(user)?;
    let home = scene.home();
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.request("file/open", &read(&home.join("notes")))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    host.reply(id)?;
    for (name, rule) in FILES {
        let reply = host.call("file/open", &read(&home.join(name)))?.to_string();
        ensure!(reply.contains(rule) && reply.contains("protections.lift"), "{name}: {reply}");
        let write = json!({ "callId": "w", "path": home.join(name), "content": "x" });
        let reply = host.call("file/write", &write)?.to_string();
        ensure!(reply.contains("error"), "{name}: {reply}");
    }
    let key = home.join(".ssh/id_ed25519");
    let crooked = home.join(".ssh/../.ssh/./id_ed25519");
    for path in [scene.project().join("soft"), scene.project().join("hard"), crooked] {
        ensure!(fs::read_to_string(&path)?.contains(SECRET), "the control: it is a key");
        let reply = host.call("file/open", &read(&path))?.to_string();
        ensure!(reply.contains("error") && !reply.contains(SECRET), "{}: {reply}", path.display());
    }
    for (method, more) in [
        ("file/grep", json!({ "pattern": "hunter", "path": home.join(".ssh") })),
        ("file/grep", json!({ "pattern": "hunter", "path": key })),
        ("file/grep", json!({ "pattern": "hunter", "path": "." })),
        ("file/find", json!({ "pattern": "id_*", "path": home.join(".ssh") })),
        ("file/list", json!({ "path": home.join(".ssh") })),
    ] {
        let mut params = json!({ "callId": "s", "cwd": scene.project() });
        if let (Some(all), Some(more)) = (params.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        let reply = host.call(method, &params)?.to_string();
        ensure!(!reply.contains(SECRET) && !reply.contains("known_hosts"), "{method} {more}: {reply}");
    }
    for (name, _) in FILES {
        ensure!(fs::read_to_string(home.join(name))?.contains(SECRET), "{name} is as it was");
    }
    Ok(())
}

/// A script that reads every file in all the ways that a shell has.
fn script(home: &str) -> String {
    let names: Vec<String> = FILES.iter().map(|(name, _)| format!("{home}/{name}")).collect();
    format!(
        "exec 2>/dev/null; cat {home}/notes {home}/.ssh/known_hosts; for f in {names}; do cat \"$f\"; head -c9 <\"$f\"; \
         cat /proc/self/root\"$f\"; cat \"{home}/./x/../$f\"; cp \"$f\" copy && cat copy; ln \"$f\" linked && cat linked; \
         ln -sf \"$f\" turned && cat turned; mv \"$f\" moved && cat moved; done; \
         cat soft hard; ls -a {home}/.ssh; ls -a {home}/.aws; cd {home}/.ssh && cat id_ed25519; \
         cat /proc/*/root{home}/.ssh/id_ed25519; grep -r hunter {home}; true",
        names = names.join(" "),
    )
}

/// The settings make the whole home readable. The controls are the files that commands do read.
fn commands_do_not_see_them_in_a_visible_home(user: User) -> Result<()> {
    let scene = scene(user)?;
    settings(&scene, &json!([]))?;
    let home = scene.home().display().to_string();
    let inside = scene.portcullis(&["run", "--", "bash", "-c", &script(&home)])?;
    ensure!(inside.stdout.contains("plain notes") && inside.stdout.contains("a known host"), "{inside:#?}");
    ensure!(!inside.stdout.contains(SECRET) && !inside.stdout.contains("id_ed25519"), "{inside:#?}");
    for (name, _) in FILES {
        ensure!(fs::read_to_string(scene.home().join(name))?.contains(SECRET), "{name} is as it was");
    }
    Ok(())
}

fn the_home_directory_as_project_changes_nothing(user: User) -> Result<()> {
    let scene = scene(user)?;
    let home = scene.home().display().to_string();
    let mut command =
        scene.portcullis_command(&["run", "--ask", "deny", "--", "bash", "-c", &script(&home)])?;
    command.current_dir(scene.home());
    let inside = portcullis_it::Finished::run(&mut command)?;
    ensure!(inside.stdout.contains("plain notes") && inside.stdout.contains("a known host"), "{inside:#?}");
    ensure!(!inside.stdout.contains(SECRET), "{inside:#?}");
    for (name, _) in FILES {
        ensure!(fs::read_to_string(scene.home().join(name))?.contains(SECRET), "{name} is as it was");
    }
    Ok(())
}

/// The widest answer allows the home directory as a whole, for every project.
fn settings_lift_an_entry_and_answers_do_not(user: User) -> Result<()> {
    let scene = scene(user)?;
    let grants = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "grants": [{ "path": scene.home(), "exact": false, "rights": "read", "grantedAt": 1 }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &grants.to_string())?;
    let cat = |name: &str| format!("cat {}", scene.home().join(name).display());
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (_, output) = host.run(&cat("notes"))?;
    ensure!(output.contains("plain notes"), "the control: the answer holds: {output}");
    let (_, output) = host.run(&cat(".aws/credentials"))?;
    ensure!(!output.contains(SECRET), "{output}");
    let reply = host.call("file/open", &read(&scene.home().join(".aws/credentials")))?.to_string();
    ensure!(reply.contains("host.aws"), "{reply}");

    settings(&scene, &json!(["host.aws"]))?;
    host.succeed("file/open", &read(&scene.home().join(".aws/credentials")))?;
    let (_, output) = host.run(&cat(".aws/credentials"))?;
    ensure!(output.contains(SECRET), "{output}");
    let reply = host.call("file/open", &read(&scene.home().join(".netrc")))?.to_string();
    ensure!(reply.contains("host.netrc"), "one entry is one entry: {reply}");
    Ok(())
}

/// Takes each answer that is offered to a question about a plain file beside the keys, the widest for all projects among
/// them. The control is that file, which tools and commands read afterwards.
fn no_offered_answer_opens_keys(user: User) -> Result<()> {
    let mut widest = 0;
    for at in 0.. {
        let scene = scene(user)?;
        let home = scene.home();
        let known = home.join(".ssh/known_hosts");
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = host.request("file/open", &read(&known))?;
        let question = host.question()?;
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let Some(option) = options.get(at) else { break };
        let covers = option.get("covers").and_then(Value::as_str).unwrap_or_default();
        let is_for_all = option.get("key") == Some(&json!("A"));
        let is_widest = is_for_all && covers.contains("below ~/.ssh,");
        host.answer(&question, &json!(at))?;
        let is_open = host.reply(id)?.get("result").is_some();
        let keys = format!("cat {0}/.ssh/id_*; cat {0}/.ssh/id_ed25519 {0}/.aws/credentials", home.display());
        let told = |text: &str| format!("{option}: {text}");
        // In this session and in another project, by a tool and by a command.
        let key = host.call("file/open", &read(&home.join(".ssh/id_ed25519")))?.to_string();
        ensure!(key.contains("host.ssh-keys") && !key.contains(SECRET), "{}", told(&key));
        let (ended, output) = host.run(&keys)?;
        ensure!(!output.contains(SECRET), "{}", told(&format!("{output} {ended}")));
        host.close()?;
        let other = scene.outside().join("other");
        scene.write(&other.join("x"), "")?;
        let mut host = Serve::start(&scene, &[], &[])?;
        let mut hello = host.hello(Interface::Absent);
        hello.as_object_mut().context("an object")?.insert("cwd".to_owned(), json!(other));
        host.succeed("hello", &hello)?;
        let key = host.call("file/open", &read(&home.join(".ssh/id_ed25519")))?.to_string();
        ensure!(key.contains("host.ssh-keys") && !key.contains(SECRET), "{}", told(&key));
        let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &keys])?;
        let ran = portcullis_it::Finished::run(command.current_dir(&other))?;
        ensure!(!ran.stdout.contains(SECRET), "{}", told(&format!("{ran:#?}")));
        if is_for_all {
            let reply = host.call("file/open", &read(&known))?;
            ensure!(is_open && reply.get("result").is_some(), "the control: {}", told(&reply.to_string()));
        }
        if is_widest {
            widest += 1;
            let cat = format!("cat {}", known.display());
            let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &cat])?;
            let ran = portcullis_it::Finished::run(command.current_dir(&other))?;
            ensure!(ran.stdout.contains("a known host"), "the control: {}", told(&format!("{ran:#?}")));
        }
        host.close()?;
    }
    ensure!(widest == 1, "no answer is for the whole directory in all projects");
    Ok(())
}

/// A home may contain links to files on a file system that is not mounted at the moment.
fn links_that_lead_nowhere_refuse_no_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let late = scene.outside().join("late");
    for (name, target) in [
        (".kube", PathBuf::from("/nowhere/at/all")),
        (".aws", ".aws".into()),
        (".npmrc", ".npmrc2".into()),
        (".npmrc2", "/nowhere".into()),
        (".netrc", late.clone()),
        (".config", "/nowhere".into()),
    ] {
        symlink(target, scene.home().join(name))?;
    }
    for open in [false, true] {
        if open {
            settings(&scene, &json!([]))?;
        }
        let ran = scene.portcullis(&["run", "--", "sh", "-c", "echo ran"])?.ended_with(0)?;
        ensure!(ran.stdout == "ran\n", "{ran:#?}");
    }
    // The target of the link is protected as soon as it exists.
    scene.write(&late, SECRET)?;
    let script = format!("cat {} {}", scene.home().join(".netrc").display(), late.display());
    let read = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", &script])?;
    ensure!(!read.stdout.contains(SECRET), "{read:#?}");
    Ok(())
}

/// The refusal of a hard link to a secret names the same reason in `check` and in the report on a command.
fn other_names_are_refused_with_the_reason(user: User) -> Result<()> {
    let scene = scene(user)?;
    let checked = scene.portcullis(&["check", "read", "hard"])?;
    ensure!(checked.code() == 20 && checked.stdout.contains("host.hard-links"), "{checked:#?}");
    let ran = scene.portcullis(&["run", "--ask", "deny", "--", "cat", "hard"])?;
    ensure!(!ran.stdout.contains(SECRET) && ran.stderr.contains("another name (hard link)"), "{ran:#?}");
    Ok(())
}

/// Commands have a `/proc` and a `/dev` of their own, over which nothing is mounted. The control is a file beside it.
fn rules_on_files_of_the_kernel_hold_for_reading(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/proc/version", "/dev/shm"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [],
        },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let script = "cat /proc/uptime >/dev/null && echo uptime; cat /proc/version && echo version; \
        echo x > /dev/shm/x; cat /dev/shm/x && echo shared";
    let ran = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    ensure!(ran.stdout == "uptime\n", "{ran:#?}");
    Ok(())
}
