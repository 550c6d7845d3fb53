//! Keys to sign with, and the agents that hold them: they stay outside, also in places that are open to commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

use super::searched_processes::{SearchedProcess, search};
use super::signing::{BEFORE, by_ssh, checked, end_gpg, make_gpg_key, make_key, outside, settings};
use super::{marked, section};

as_each_user!(
    a_yes_to_the_question_signs_once,
    nothing_of_a_key_is_in_the_memory_of_a_command,
    an_agent_of_ssh_in_an_open_place_is_not_reached,
    an_agent_of_gpg_in_an_open_place_is_not_reached,
);

/// Connects to each of its arguments.
const CONNECT: &str = "python3 -c 'import socket, sys\n\
    for path in sys.argv[1:]:\n\
    \x20   try: socket.socket(socket.AF_UNIX).connect(path); print(\"CONNECTED\")\n\
    \x20   except OSError as error: print(error)'";

/// The control is the no to the second question.
fn a_yes_to_the_question_signs_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &settings(&scene, &by_ssh(true)).to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let script =
        BEFORE.to_owned() + "git commit -qm 'add the file' && git commit -q --allow-empty -m second 2>&1";
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    let text = |pointer: &str| question.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    ensure!(text("/params/title").ends_with("wants to sign a commit with your key “sign”"), "{question:#}");
    ensure!(text("/params/subject") == "add the file (n <e@x.test>)", "{question:#}");
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let kinds: Vec<&str> = options.iter().filter_map(|one| one.get("key")?.as_str()).collect();
    ensure!(!kinds.iter().any(|key| ["P", "A"].contains(key)), "no answer is kept: {question:#}");
    let once = kinds.iter().position(|key| *key == "o").context("an answer for once")?;
    host.answer(&question, &json!(once))?;
    let second = host.question()?;
    ensure!(second.to_string().contains("second (n <e@x.test>)"), "{second:#}");
    host.answer(&second, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("not signed") && output.contains("you said no"), "{output}");
    let (_, output) = host.run("cd made && git log --format=%s")?;
    ensure!(output.trim() == "add the file", "{output}");
    host.close()?;
    let good = checked(&scene, &["verify-commit", "HEAD"])?;
    ensure!(good.code() == 0 && good.stderr.contains("Good \"git\" signature"), "{good:#?}");
    Ok(())
}

/// The program outside keeps the key in its memory until the search is over, so that the search can find it there.
const OWN_KEYGEN: &str = "#!/bin/sh\nKEY=$(sed -n 4p ~/.ssh/signing)\ntouch \"$THERE/there\"\n\
    while [ ! -e \"$THERE/stop\" ]; do sleep 0.1; done\n: \"$KEY\"\nexec /usr/bin/ssh-keygen \"$@\"\n";

fn nothing_of_a_key_is_in_the_memory_of_a_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let own = scene.at("own-keygen");
    scene.write(&own.join("ssh-keygen"), OWN_KEYGEN)?;
    fs::set_permissions(own.join("ssh-keygen"), fs::Permissions::from_mode(0o755))?;
    let file = scene.at("signing.json");
    scene.write(&file, &settings(&scene, &by_ssh(false)).to_string())?;
    let file = file.to_str().context("a path of text")?;
    let script = BEFORE.to_owned() + "sleep 1000 & git commit -qm one; kill %1; git cat-file commit HEAD";
    let mut command = scene.portcullis_command(&[
        "run",
        "--ask",
        "deny",
        "--settings",
        file,
        "--",
        "bash",
        "-c",
        &script,
    ])?;
    let path = format!("{}:{}", own.display(), std::env::var("PATH")?);
    command.env("PATH", path).env("THERE", scene.project());
    std::thread::scope(|scope| {
        let running = scope.spawn(move || Finished::run(&mut command));
        let found = while_it_signs(&scene);
        scene.write(&scene.project().join("stop"), "")?;
        let finished = running.join().ok().context("the run panicked")??;
        let found = found.with_context(|| format!("{finished:#?}"))?;
        let (outside, inside): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_outside);
        ensure!(outside.iter().any(|one| one.found > 0), "the control: {outside:?}");
        // bash, sleep, git, and the program in the place of ssh-keygen.
        ensure!(inside.len() >= 4 && inside.iter().all(|one| one.found == 0), "{inside:?}");
        ensure!(finished.stdout.contains("BEGIN SSH SIGNATURE"), "{finished:#?}");
        Ok(())
    })
}

fn while_it_signs(scene: &Scene) -> Result<Vec<SearchedProcess>> {
    let there = scene.project().join("there");
    Deadline::start().until("the signature", || Ok(there.exists().then_some(())))?;
    let key = fs::read_to_string(scene.home().join(".ssh/signing"))?;
    let lines: Vec<&str> = key.lines().filter(|line| !line.starts_with('-')).collect();
    let body = STANDARD.decode(lines.concat())?;
    // The private part of a key of the kind ed25519 comes after its length of 64 bytes.
    let at = body.windows(4).position(|bytes| bytes == [0, 0, 0, 64]).context("a private part")? + 4;
    let private = body.get(at..at + 32).context("32 bytes")?;
    search(scene, &[lines.get(2).context("a third line")?.as_bytes(), private])
}

/// Runs a script inside with a key to sign with, a directory that is open to commands, and variables.
fn run(
    scene: &Scene,
    (signing, open): (&Value, &Path),
    variables: &[(&str, &Path)],
    script: &str,
) -> Result<Finished> {
    let mut all = settings(scene, signing);
    all["filesystem"]["allowRead"] = json!([scene.project(), open]);
    let file = scene.at("signing.json");
    scene.write(&file, &all.to_string())?;
    let file = file.to_str().context("a path of text")?;
    let words = ["run", "--ask", "deny", "--settings", file, "--", "bash", "-c", script];
    let mut command = scene.portcullis_command(&words)?;
    Finished::run(command.envs(variables.iter().copied()))
}

struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The key is in the agent alone, and beside its public key in a second run.
fn an_agent_of_ssh_in_an_open_place_is_not_reached(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let open = scene.home().join("keys");
    let (key, socket) = (scene.home().join(".ssh/signing"), open.join("agent"));
    scene.write(&open.join("signing.pub"), &fs::read_to_string(key.with_extension("pub"))?)?;
    let mut agent = scene.user().command("/usr/bin/ssh-agent".as_ref());
    let _agent = Agent(agent.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).spawn()?);
    Deadline::start().until("the agent", || Ok(socket.exists().then_some(())))?;
    let mut add = scene.user().command("/usr/bin/ssh-add".as_ref());
    let added = add.arg(&key).env("SSH_AUTH_SOCK", &socket).output()?;
    ensure!(added.status.success(), "{added:?}");
    let signing = json!({ "name": "sign", "form": "ssh", "key": "~/keys/signing.pub", "ask": false });
    let connect = format!("{CONNECT} '{0}'; SSH_AUTH_SOCK='{0}' ssh-add -l", socket.display());
    let scripts = [
        "git commit -qm one && git cat-file commit HEAD | grep -c 'BEGIN SSH SIGNATURE'",
        connect.as_str(),
        "cat ~/keys/signing.pub ~/keys/signing",
    ];
    let script = BEFORE.to_owned() + &marked(&scripts);
    let variables = [("SSH_AUTH_SOCK", socket.as_path())];
    let finished = run(&scene, (&signing, &open), &variables, &script)?;
    ensure!(section(&finished.stdout, 0)?.trim() == "1", "the agent is used outside: {finished:#?}");
    let said = section(&finished.stdout, 1)?;
    ensure!(!said.contains("CONNECTED") && !said.contains("SHA256"), "{finished:#?}");
    let control = outside(&scene, "/bin/sh", &["-c", &connect])?;
    ensure!(control.stdout.contains("CONNECTED") && control.stdout.contains("SHA256"), "{control:#?}");
    // The private key beside the public one is closed, and the public one is open.
    fs::copy(&key, open.join("signing"))?;
    user.own(&open.join("signing"))?;
    fs::remove_dir_all(scene.project().join("made"))?;
    let finished = run(&scene, (&signing, &open), &[], &script)?;
    ensure!(section(&finished.stdout, 0)?.trim() == "1", "{finished:#?}");
    let said = section(&finished.stdout, 2)?;
    ensure!(said.contains("ssh-ed25519 ") && !said.contains("OPENSSH PRIVATE"), "{finished:#?}");
    Ok(())
}

/// Its agent starts when the host signs, while the command runs.
fn an_agent_of_gpg_in_an_open_place_is_not_reached(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let open = scene.home().join("keys");
    let key = make_gpg_key(&scene, &open, "")?;
    end_gpg(&scene, &open)?;
    let signing = json!({ "name": "sign", "form": "gpg", "key": key, "ask": false });
    let socket = open.join("S.gpg-agent");
    let connect = format!("{CONNECT} '{}'; ls '{}'", socket.display(), open.display());
    let scripts =
        ["git commit -qm one && git cat-file commit HEAD | grep -c 'BEGIN PGP SIGNATURE'", connect.as_str()];
    let script = BEFORE.to_owned() + &marked(&scripts);
    let finished = run(&scene, (&signing, &open), &[("GNUPGHOME", &open)], &script);
    let control = outside(&scene, "/bin/sh", &["-c", &connect]);
    end_gpg(&scene, &open)?;
    let (finished, control) = (finished?, control?);
    ensure!(section(&finished.stdout, 0)?.trim() == "1", "{finished:#?}");
    let said = section(&finished.stdout, 1)?;
    ensure!(!said.contains("CONNECTED") && !said.contains("private-keys"), "{finished:#?}");
    ensure!(control.stdout.contains("CONNECTED") && control.stdout.contains("private-keys"), "{control:#?}");
    Ok(())
}
