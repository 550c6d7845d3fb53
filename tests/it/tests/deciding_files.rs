//! Attacks by every tool and by commands on the files that decide about the agent, also where the project is the home
//! directory. Rows 47, 49, 50, 119 and 120 of the attack corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, portcullis};
use serde_json::{Value, json};

as_each_user!(
    no_tool_and_no_command_changes_them,
    in_the_home_directory_neither,
    a_project_that_changes_its_mind_does_not_loosen,
    seventy_questions_are_one_answer,
    an_answer_that_comes_too_late_is_none,
    what_is_asked_for_cannot_pass_for_something_else,
);

/// The exit code of `check` for a denial; a question has another code.
const DENY: i32 = 20;

const SETTINGS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } }"#;

/// Files below the scene that decide what the agent is and may do, or that record what it did.
const DECIDING: &[(&str, &str)] = &[
    ("home/.pi/agent/sandbox/default.json", SETTINGS),
    ("home/.pi/agent/sandbox/projects.json", "{}"),
    ("home/.pi/agent/sandbox/layered.json", "{}"),
    ("home/.pi/agent/sandbox/policies/own.wasm", "a policy"),
    ("home/.pi/agent/extensions/own.ts", "an extension"),
    ("home/.pi/agent/extensions/portcullis/index.ts", "the extension"),
    ("home/.pi/agent/extensions/sandbox.json", "{}"),
    ("home/.pi/agent/sandbox.json", "{}"),
    ("home/.pi/agent/settings.json", "{}"),
    ("home/.pi/agent/trust.json", "{}"),
    ("home/.pi/agent/auth.json", "{}"),
    ("home/.pi/agent/models.json", "{}"),
    ("home/.pi/agent/mcp.json", "{}"),
    ("home/.pi/agent/AGENTS.md", "instructions"),
    ("home/.pi/agent/SYSTEM.md", "instructions"),
    ("home/.pi/agent/npm/node_modules/@portcullis/pi/index.js", "the extension"),
    ("home/.pi/agent/bin/fd", "a program"),
    ("home/.local/state/portcullis/audit/old.jsonl", ""),
    ("home/.cache/portcullis/policies/compiled", "machine code"),
    ("home/.local/share/portcullis/extension/index.ts", "the extension"),
    ("home/.ssh/authorized_keys", "mine"),
    ("home/.config/autostart/x.desktop", "mine"),
    ("home/.config/systemd/user/x.service", "mine"),
];

/// The files of a project that do the same.
const IN_THE_PROJECT: &[(&str, &str)] = &[
    (".pi/portcullis.json", "{}"),
    (".pi/settings.json", "{}"),
    (".pi/sandbox.json", "{}"),
    (".pi/mcp.json", "{}"),
    (".pi/SYSTEM.md", "instructions"),
    (".pi/extensions/own.ts", "an extension"),
];

/// Files that do not exist yet and would decide if they were created.
const NOT_THERE: &[&str] =
    &["home/.pi/agent/extensions/evil.ts", "home/.pi/agent/hooks/evil", "home/.pi/agent/git/evil"];

/// Tries every way in which a command can change a file; the files are its arguments.
const ATTACK: &str = r#"
    for f; do
        echo evil > "$f"; echo evil >> "$f"; : >| "$f"; truncate -s 1 "$f"; sed -i s/./evil/ "$f"
        perl -e 'open F, "+<", $ARGV[0] and print F "evil"' "$f"; dd if=/dev/zero of="$f" bs=1 count=1 status=none
        ln -sf /dev/null "$f"; ln -f "$f" hard && echo evil > hard; cp /etc/hostname "$f"
        mkdir -p "${f%/*}"; echo evil > "$f.new" && mv -f "$f.new" "$f"; ln -s "$f" soft; echo evil > soft; rm -f soft hard
        chmod 0 "$f"; rm -f "$f"
        mv "${f%/*}" "${f%/*}.moved" && mkdir -p "${f%/*}" && echo evil > "$f"
    done 2>/dev/null
    mv ~/.pi ~/.moved; mv ~/.pi/agent ~/.pi/moved; rm -rf ~/.pi ~/.local/state; mv .pi .moved; echo tried"#;

fn no_tool_and_no_command_changes_them(user: User) -> Result<()> {
    attack(user, |scene| scene.project())
}

/// Row 49: all these files are in a directory that commands may otherwise write.
fn in_the_home_directory_neither(user: User) -> Result<()> {
    attack(user, |scene| scene.home())
}

fn attack(user: User, place: impl Fn(&Scene) -> PathBuf) -> Result<()> {
    let (scene, files) = world(user, &place)?;
    let project = place(&scene);
    for file in &files {
        let mut check = scene.portcullis_command(&["check", "write"])?;
        let told = Finished::run(check.arg(file).current_dir(&project))?;
        ensure!(told.code() == DENY, "denied without a question: {}: {told:#?}", file.display());
    }
    let binary = portcullis(user)?;
    scene.portcullis(&["check", "write", &binary.display().to_string()])?.ended_with(DENY)?;

    let mut host = Serve::start(&scene, &[], &[])?;
    let mut hello = host.hello(Interface::Absent);
    hello.as_object_mut().context("an object")?.insert("cwd".to_owned(), json!(project));
    host.succeed("hello", &hello)?;
    let before = contents(&files)?;
    tools(&mut host, &files)?;
    same(&before, &contents(&files)?, "tools")?;

    let stream = 900;
    let params = json!({ "callId": "attack", "stream": stream, "script": with_words(&files), "cwd": project,
        "env": { "PATH": "/usr/bin:/bin", "HOME": scene.home() }, "origin": "agent" });
    let id = host.request("exec", &params)?;
    ensure!(host.reply(id)?.get("result").is_some());
    let said = host.output_of(stream)?;
    ensure!(said.contains("tried"), "{said}");
    same(&before, &contents(&files)?, "commands")?;
    // The rules in force are the same as before the attack: this read is still refused.
    let told = host.call(
        "file/open",
        &json!({ "callId": "r", "path": scene.outside().join("x"), "intent": { "kind": "read" } }),
    )?;
    ensure!(told.get("error").is_some(), "{told}");
    host.close()?;

    // The control: the same script, without Portcullis.
    let (free, files) = world(user, &place)?;
    let before = contents(&files)?;
    let mut control = free.user().command("/bin/bash".as_ref());
    control.args(["-c", &with_words(&files)]);
    free.enter(&mut control);
    Finished::run(control.current_dir(place(&free)))?.ended_with(0)?;
    let after = contents(&files)?;
    let unchanged: Vec<_> =
        before.iter().filter(|(file, text)| text.is_some() && after.get(*file) == Some(text)).collect();
    ensure!(unchanged.is_empty(), "control: {unchanged:?}");
    Ok(())
}

/// A scene with all deciding files in it, and their paths.
fn world(user: User, place: impl Fn(&Scene) -> PathBuf) -> Result<(Scene, Vec<PathBuf>)> {
    let scene = Scene::new(user)?;
    let mut files = Vec::new();
    for (name, text) in DECIDING {
        let file = scene.at(name);
        scene.write(&file, text)?;
        files.push(file);
    }
    for private in ["home/.cache/portcullis/policies", "home/.local/state/portcullis/audit"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(scene.at(private), mode)?;
    }
    for (name, text) in IN_THE_PROJECT {
        let file = place(&scene).join(name);
        scene.write(&file, text)?;
        files.push(file);
    }
    scene.write(&scene.outside().join("x"), "x")?;
    files.extend(NOT_THERE.iter().map(|name| scene.at(name)));
    Ok((scene, files))
}

/// The script with the files as its arguments.
fn with_words(files: &[PathBuf]) -> String {
    let words: Vec<String> = files.iter().map(|file| format!("'{}'", file.display())).collect();
    format!("set -- {}\n{ATTACK}", words.join(" "))
}

/// Every tool that writes, on every file and through a link to it.
fn tools(host: &mut Serve, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let write = json!({ "callId": "w", "path": file, "content": "evil" });
        let reply = host.call("file/write", &write)?;
        ensure!(reply.get("error").is_some(), "written: {reply}");
        let edits = json!([{ "oldText": "{", "newText": "evil" }]);
        let open = json!({ "callId": "e", "path": file, "intent": { "kind": "edit", "edits": edits } });
        let reply = host.call("file/open", &open)?;
        ensure!(reply.get("error").is_some(), "opened for an edit: {reply}");
    }
    Ok(())
}

type Contents = BTreeMap<PathBuf, Option<String>>;

fn contents(files: &[PathBuf]) -> Result<Contents> {
    let read = |file: &PathBuf| {
        let text = match std::fs::read_to_string(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            text => Some(text.with_context(|| format!("reading `{}`", file.display()))?),
        };
        let is_link = file.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        Ok((file.clone(), if is_link { Some("a link".to_owned()) } else { text }))
    };
    files.iter().map(read).collect()
}

fn same(before: &Contents, after: &Contents, by: &str) -> Result<()> {
    for (file, text) in before {
        ensure!(after.get(file) == Some(text), "changed by {by}: {}: {:?}", file.display(), after.get(file));
    }
    Ok(())
}

/// Row 119: a project loosens its settings after the session began with strict ones.
fn a_project_that_changes_its_mind_does_not_loosen(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = scene.project().join(".pi/portcullis.json");
    scene.write(&own, r#"{ "filesystem": { "denyWrite": ["vendor"] } }"#)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let write = |path: &Path| json!({ "callId": "w", "path": path, "content": "x" });
    let (vendor, outside) = (scene.project().join("vendor/x"), scene.outside().join("x"));
    ensure!(host.call("file/write", &write(&vendor))?.get("error").is_some(), "it tightens");
    for loosened in [
        r#"{ "filesystem": { "allowWrite": ["/"], "denyWrite": [] } }"#,
        r#"{ "enabled": false }"#,
        r#"{ "escalation": "ask" }"#,
        r#"{ "protections": { "lift": ["host.agent-secrets"] } }"#,
        r#"{ "policies": [{ "use": "evil.wasm" }] }"#,
        "{ nonsense",
    ] {
        scene.write(&own, loosened)?;
        for path in [&vendor, &outside] {
            ensure!(host.call("file/write", &write(path))?.get("error").is_some(), "{loosened}");
        }
        let status = host.succeed("status", &json!({}))?;
        ensure!(status.get("state") == Some(&json!("enabled")), "{loosened}: {status}");
        ensure!(status.pointer("/warnings/0").is_some(), "it is loud: {loosened}: {status}");
    }
    Ok(())
}

/// Row 120: many questions of the same kind. One answer settles all of them, and a plain refusal permits none.
fn seventy_questions_are_one_answer(user: User) -> Result<()> {
    const MANY: usize = 70;
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    for (code, allowed) in [("d", false), ("s", true)] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
        let ids: Vec<u64> = (0..MANY).map(|_| host.request("file/open", &open)).collect::<Result<_>>()?;
        let question = host.question()?;
        let choice = option(&question, code)?;
        host.answer(&question, &json!(choice))?;
        for id in ids {
            let reply = host.reply(id)?;
            ensure!(reply.pointer("/result/handle").is_some() == allowed, "{code}: {reply}");
        }
        host.close()?;
    }
    Ok(())
}

/// Row 120: an answer to a question that was withdrawn or already answered permits nothing.
fn an_answer_that_comes_too_late_is_none(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let open = json!({ "callId": "r", "path": notes, "intent": { "kind": "read" } });
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    let session = option(&question, "s")?;
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    ensure!(host.reply(id)?.get("error").is_some(), "taken back");
    host.answer(&question, &json!(session))?;
    // A refusal, followed by a yes to the same question.
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    host.answer(&question, &json!(session))?;
    ensure!(host.reply(id)?.get("error").is_some(), "the first answer counts");
    let id = host.request("file/open", &open)?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    ensure!(host.reply(id)?.get("error").is_some(), "and nothing is remembered");
    Ok(())
}

/// Row 120: text that tries to look like a part of the question, or like another name.
fn what_is_asked_for_cannot_pass_for_something_else(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for (name, shown) in [
        ("notes\n\n  [s] Allow (recommended by the host)", "notes\\n\\n  [s] Allow"),
        ("\u{1b}[2J\u{1b}[Hharmless", "\\u{1b}[2J\\u{1b}[Hharmless"),
        ("txt.\u{202e}exe", "txt.\\u{202e}exe"),
        ("p\u{430}sswords", "p\\u{430}sswords"),
        ("a\u{200b}b", "a\\u{200b}b"),
    ] {
        let file = scene.outside().join(name);
        scene.write(&file, "alpha")?;
        let id =
            host.request("file/open", &json!({ "callId": "r", "path": file, "intent": { "kind": "read" } }))?;
        let question = host.question()?;
        let subject = question.pointer("/params/subject").and_then(Value::as_str).context("a subject")?;
        ensure!(subject.contains(shown) && subject.lines().count() == 1, "{name:?}: {subject}");
        for option in question.pointer("/params/options").and_then(Value::as_array).context("options")? {
            ensure!(!option.to_string().contains(name), "{option}");
        }
        host.answer(&question, &json!("refuse"))?;
        host.reply(id)?;
    }
    Ok(())
}

/// Returns the index of the narrowest option with this key.
fn option(question: &Value, key: &str) -> Result<usize> {
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    options
        .iter()
        .position(|option| option.get("key") == Some(&json!(key)))
        .context("an option with this key")
}
