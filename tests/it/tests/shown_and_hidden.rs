//! Visibility of the user's files, and what answers reveal about their existence: below the temporary directory, behind
//! links, in the agent's own directory, and in errors.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::RwLockReadGuard;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, PiVersion, Scene, Serve, User, machine_tmp};
use serde_json::{Value, json};

as_each_user!(
    a_home_below_tmp_is_a_home,
    what_is_shown_below_tmp_is_as_writable_as_anywhere,
    a_policys_deny_holds_behind_links,
    errors_tell_nothing_about_closed_places,
);

on_each_pi!(every_file_that_pi_keeps_is_known);

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))
}

/// Makes a directory of the user in the machine's own `/tmp`.
fn below_tmp(user: User) -> Result<(tempfile::TempDir, RwLockReadGuard<'static, ()>)> {
    let here = machine_tmp::live_in();
    let directory = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in("/tmp")?;
    user.own(directory.path())?;
    Ok((directory, here))
}

fn a_home_below_tmp_is_a_home(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (directory, _here) = below_tmp(user)?;
    let home = directory.path().join("u");
    let private = home.join("docs/private");
    scene.write(&private, "private\n")?;
    scene.write(&home.join("p/f"), "")?;
    let script = format!(
        "cat {0}; echo x >> {0}; echo x > {1}/new; echo mine > f; cat f",
        private.display(),
        home.display()
    );
    let run = |command: &mut std::process::Command| {
        command.env("HOME", &home).current_dir(home.join("p"));
        Finished::run(command)
    };
    let mut plain = user.command("/bin/sh".as_ref());
    scene.enter(&mut plain);
    ensure!(run(plain.args(["-c", &script]))?.stdout == "private\nmine\n", "control");
    fs::remove_file(home.join("new"))?;
    let ran = run(&mut scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &script])?)?;
    ensure!(ran.stdout == "mine\n", "{ran:?}");
    let said = format!("`{}` is a file of yours, and commands have a `/tmp` of their own", private.display());
    for words in [["cat", "$HOME/docs/private"], ["d=docs; cat", "~/$d/private"], ["cat", "../docs/private"]]
    {
        let script = words.join(" ");
        let ran = run(&mut scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &script])?)?;
        ensure!(ran.code() != 0 && ran.stderr.contains(&said), "{script}: {ran:?}");
        ensure!(ran.stderr.contains("portcullis allow"), "{script}: {ran:?}");
    }
    ensure!(text(&private)? == "private\nx\n" && !home.join("new").exists(), "it was written");
    for what in ["read", "write"] {
        let path = private.to_str().context("UTF-8")?;
        let checked = run(&mut scene.portcullis_command(&["check", what, path])?)?;
        ensure!(!checked.stdout.starts_with("allow"), "{checked:?}");
    }
    Ok(())
}

fn what_is_shown_below_tmp_is_as_writable_as_anywhere(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (directory, _here) = below_tmp(user)?;
    let (read, written) = (directory.path().join("read/f"), directory.path().join("written/f"));
    scene.write(&read, "theirs\n")?;
    scene.write(&written, "")?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": [], "denyWrite": [],
            "allowRead": [".", read.parent()], "allowWrite": [".", written.parent()],
        },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (_, seen) = host.run(&format!(
        "cat {0}; echo evil >> {0}; echo evil > {1}/new; echo mine > {2}; echo tmp > /tmp/own; cat /tmp/own",
        read.display(),
        read.parent().context("a parent")?.display(),
        written.display()
    ))?;
    ensure!(seen.starts_with("theirs\n") && seen.ends_with("tmp\n"), "{seen}");
    host.call("file/write", &json!({ "callId": "w", "path": read, "content": "evil" }))?;
    ensure!(text(&read)? == "theirs\n" && !read.with_file_name("new").exists(), "it was written");
    ensure!(text(&written)? == "mine\n", "what may be written is not");
    ensure!(!Path::new("/tmp/own").exists(), "the session's own is the machine's");
    Ok(())
}

fn a_policys_deny_holds_behind_links(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let secret = scene.home().join("cloud/aws/credentials");
    scene.write(&secret, "aws_secret\n")?;
    std::os::unix::fs::symlink("cloud/aws", scene.home().join(".aws"))?;
    scene.write(&scene.home().join("plain"), "plain\n")?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": "guard" }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let opens = |host: &mut Serve, path: &Path| -> Result<bool> {
        let call = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        Ok(host
            .call("file/open", &call)?
            .pointer("/result/handle")
            .is_some_and(|handle| *handle != Value::Null))
    };
    ensure!(opens(&mut host, &scene.home().join("plain"))?, "control: this policy lets tools read");
    let linked = scene.home().join(".aws/credentials");
    for path in [&linked, &secret] {
        ensure!(!opens(&mut host, path)?, "{}", path.display());
        let (_, seen) = host.run(&format!("cat {}", path.display()))?;
        ensure!(!seen.contains("aws_secret"), "{}: {seen}", path.display());
    }
    Ok(())
}

fn errors_tell_nothing_about_closed_places(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let documents = scene.home().join("Documents");
    scene.write(&documents.join("private.txt"), "private")?;
    scene.write(&scene.home().join(".pi/agent/auth.json"), "{}")?;
    std::os::unix::fs::symlink(&documents, scene.project().join("l"))?;
    // The scene is not below `/home`, so its home is closed because it is a home directory.
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let mut told = |path: &Path| -> Result<String> {
        let call = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        let reply = host.call("file/open", &call)?;
        let said = reply.get("error").or(reply.get("result")).context("a reply")?;
        Ok(said.to_string().replace(&*path.to_string_lossy(), "PATH"))
    };
    let agent = scene.home().join(".pi/agent");
    let pairs = [
        (documents.join("private.txt/x"), documents.join("nonexist.txt/x")),
        (scene.project().join("l/private.txt/x"), scene.project().join("l/nonexist.txt/x")),
        (agent.join("auth.json/x"), agent.join("mcp-oauth/x")),
    ];
    for (there, missing) in pairs {
        let (there, missing) = (told(&there)?, told(&missing)?);
        ensure!(!there.contains("not a directory"), "{there}");
        for said in [there, missing] {
            ensure!(said.contains("denied") || said.contains("refused") || said.contains("rule"), "{said}");
        }
    }
    let plain = told(&scene.project().join("f/x"))?;
    ensure!(
        plain.contains("no such") || plain.contains("not found") || plain.contains("does not exist"),
        "{plain}"
    );
    Ok(())
}

/// The entries of pi's own directory that an agent may read: those intended for it, and those without secrets.
const OPEN: [&str; 15] = [
    "APPEND_SYSTEM.md",
    "SYSTEM.md",
    "bin",
    "extensions",
    "git",
    "hooks",
    "keybindings.json",
    "npm",
    "prompts",
    "settings.json",
    "skills",
    "themes",
    "tmp",
    "tools",
    "trust.json",
];

fn every_file_that_pi_keeps_is_known(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let pi = scene.install_pi(version)?;
    let package = pi.cli.ancestors().find(|folder| folder.join("dist").is_dir()).context("pi's package")?;
    let mut names = BTreeSet::new();
    collect(&package.join("dist"), &mut names)?;
    ensure!(names.contains("auth.json") && names.contains("sessions"), "not found in pi: {names:?}");
    let folder = scene.home().join(".pi/agent");
    for name in &names {
        scene.write(&folder.join(name), "held\n")?;
    }
    let listed = "for name in ~/.pi/agent/*; do grep -qs held $name && basename $name; done; true";
    let seen = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", listed])?.ended_with(0)?;
    let seen: BTreeSet<&str> = seen.stdout.lines().collect();
    ensure!(seen.contains("settings.json"), "nothing of it is shown: {seen:?}");
    let unknown: Vec<_> = seen.iter().filter(|name| !OPEN.contains(name)).collect();
    ensure!(unknown.is_empty(), "shown, and in no list: {unknown:?}");
    Ok(())
}

/// Collects the names that pi's code joins to the path of its directory.
fn collect(folder: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, names)?;
        } else if path.extension().is_some_and(|ending| ending == "js") {
            let code = text(&path)?;
            let uses = ["join(", "resolve("].iter().flat_map(|call| code.split(call).skip(1));
            names.extend(uses.filter_map(|rest| {
                let (directory, rest) = rest.split_once("gentDir")?;
                let is_word = directory.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
                let rest = rest.strip_prefix("()").unwrap_or(rest).strip_prefix(',')?.trim_start();
                let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
                (is_word && !name.contains('/')).then(|| name.to_owned())
            }));
        }
    }
    Ok(())
}
