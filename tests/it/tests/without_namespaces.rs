//! A machine that denies user namespaces to ordinary users, and a user whose settings accept Landlock instead.

use std::fs;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(commands_are_held, tools_and_commands_share_a_session, patterns_and_grants_hold);

/// Arguments for `unshare`, before those of the host, that take away user namespaces.
const NO_NAMESPACES: &[&str] =
    &["-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"];

const SETTINGS: &str = r#"{ "requiredTier": "landlock", "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["DENIED"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] } }"#;

fn scene(user: User, denied: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &SETTINGS.replace("DENIED", denied))?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "secret")?;
    Ok(scene)
}

fn through(scene: &Scene, arguments: &[&str]) -> Result<Finished> {
    let host = portcullis_it::portcullis(scene.user())?;
    let mut command = scene.user().command("unshare".as_ref());
    command.args(NO_NAMESPACES).arg(host).args(arguments);
    scene.enter(&mut command);
    Finished::run(&mut command)
}

fn commands_are_held(user: User) -> Result<()> {
    let scene = scene(user, "~")?;
    let told = through(&scene, &["doctor", "--json"])?.ended_with(3)?;
    let told: Value = serde_json::from_str(&told.stdout)?;
    ensure!(
        told.get("tier") == Some(&json!("landlock")) && told.get("requiredTier") == Some(&json!("landlock")),
        "{told:#}"
    );
    let attacks = told.get("selfTest").and_then(Value::as_array).cloned().unwrap_or_default();
    ensure!(attacks.len() >= 15, "{told:#}");
    for attack in &attacks {
        ensure!(attack.get("came") != Some(&json!("through")), "{attack}");
    }
    let run = through(&scene, &["run", "--", "sh", "-c", "echo x > new && git init -q r && mktemp"])?;
    let run = run.ended_with(0)?;
    ensure!(run.stderr.contains("`landlock`"), "{run:#?}");
    ensure!(!run.stdout.starts_with("/tmp/tmp") && scene.project().join("new").exists(), "{run:#?}");
    let (home, outside) = (scene.home().display().to_string(), scene.outside().display().to_string());
    let attacks = [
        format!("cat '{home}/.ssh/id_rsa'"),
        format!("ls '{home}/.ssh'"),
        format!("echo x > '{outside}/new'"),
        format!("ln -s '{outside}' l && echo x > l/newer"),
        "echo x > r/.git/hooks/pre-commit".to_owned(),
        "git -C r config core.fsmonitor ./x".to_owned(),
        format!("chmod 755 '{outside}'"),
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/1' 2>&1 | grep -q refused".to_owned(),
    ];
    let tries = attacks.iter().map(|attack| format!("({attack}) >/dev/null 2>&1 && echo through\n"));
    let script = tries.collect::<String>() + "true";
    let inside = through(&scene, &["run", "--", "sh", "-c", &script])?.ended_with(0)?;
    ensure!(inside.stdout.is_empty(), "{script}: {inside:#?}");
    let mut free = scene.user().command("sh".as_ref());
    free.args(["-c", &script]);
    scene.enter(&mut free);
    let free = Finished::run(&mut free)?;
    ensure!(free.stdout.lines().count() == attacks.len(), "control: {script}: {free:#?}");
    Ok(())
}

fn tools_and_commands_share_a_session(user: User) -> Result<()> {
    let scene = scene(user, "~")?;
    let mut host = Serve::start_through(&scene, "unshare", NO_NAMESPACES)?;
    let said = host.succeed("hello", &host.hello(Interface::Absent))?;
    let warned = said.pointer("/status/warnings").map(ToString::to_string).unwrap_or_default();
    ensure!(warned.contains("only of the tier `landlock`"), "{said}");
    let path = scene.project().join("file");
    host.succeed("file/write", &json!({ "callId": "w", "path": path, "content": "x" }))?;
    let (ended, output) = host.run("cat file && echo y > made && echo $TMPDIR")?;
    ensure!(ended.get("exitCode") == Some(&json!(0)) && output.starts_with('x'), "{ended} {output}");
    let open = json!({ "callId": "r", "path": scene.project().join("made"), "intent": { "kind": "read" } });
    host.succeed("file/open", &open)?;
    let secret =
        json!({ "callId": "s", "path": scene.home().join(".ssh/id_rsa"), "intent": { "kind": "read" } });
    ensure!(host.call("file/open", &secret)?.get("error").is_some());
    Ok(())
}

fn patterns_and_grants_hold(user: User) -> Result<()> {
    let scene = scene(user, "**/*.pem")?;
    scene.write(&scene.project().join("sub/key.pem"), "secret")?;
    let hidden = "cat sub/key.pem || cp sub/key.pem c || ln sub/key.pem h || cat < sub/key.pem";
    let inside = through(&scene, &["run", "--", "sh", "-c", &format!("{{ {hidden}; }} 2>/dev/null")])?;
    ensure!(inside.code() != 0 && !inside.stdout.contains("secret"), "{inside:#?}");
    let own = "cat /proc/self/status > s && grep -q Name s && echo x > new && cat new";
    ensure!(through(&scene, &["run", "--", "sh", "-c", own])?.ended_with(0)?.stdout == "x\n");
    let temporary = "f=$(mktemp) && echo y > $f && cat $f && ! cat sub/key.pem 2>/dev/null";
    ensure!(through(&scene, &["run", "--", "sh", "-c", temporary])?.ended_with(0)?.stdout == "y\n");
    // A grant to write outside applies here as well.
    let target = scene.outside().join("asked");
    let script = format!("echo x > '{}'", target.display());
    ensure!(through(&scene, &["run", "--", "sh", "-c", &script])?.code() != 0 && !target.exists());
    through(&scene, &["run", "--ask", "allow", "--", "sh", "-c", &script])?.ended_with(0)?;
    ensure!(fs::read_to_string(&target)? == "x\n");
    Ok(())
}
