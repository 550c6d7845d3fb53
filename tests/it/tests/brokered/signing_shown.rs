//! Commits and tags that want to look different in the question from what git shows of them, and settings of git that
//! want another program or another key.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

use super::signing::{BEFORE, by_ssh, checked, make_key, settings};

as_each_user!(the_question_shows_what_git_shows, settings_of_git_choose_no_other_key,);

/// Sends a request by hand: writes the object of the first argument's script to the socket, and prints the answer. It
/// changes the object after it was sent.
const ASK: &str = "ask() { python3 -c 'import os, socket, sys\n\
    text = open(sys.argv[1], \"rb\").read()\n\
    there = socket.socket(socket.AF_UNIX)\n\
    there.connect(os.environ[\"PORTCULLIS_SIGNER\"])\n\
    there.sendall(b\"portcullis-sign/1\\0ssh\\0%d\\0\" % len(text) + text)\n\
    open(sys.argv[1], \"wb\").write(text.replace(b\"One\", b\"Two\"))\n\
    answer = b\"\"\n\
    while piece := there.recv(65536): answer += piece\n\
    print(answer.decode())' \"$1\"; }\n";

/// A commit and a tag.
const OBJECTS: &str = "I='n <e@x.test> 1700000000 +0000' T=4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
    commit() { printf \"tree $T\\nauthor ${2:-$I}\\ncommitter $I\\n$3\\n$1\"; }\n\
    tag() { printf \"object $T\\ntype ${3:-commit}\\ntag $2\\ntagger $I\\n\\n$1\"; }\n";

/// Objects with the subject of their question, or with the reason why there is none.
const OBJECTS_SHOWN: &[(&str, Result<&str, &str>)] = &[
    ("commit 'One\\n\\nmore\\n'", Ok("One (n <e@x.test>)")),
    ("commit '\\n\\nOne\\nhidden\\n\\nmore\\n'", Ok("One hidden (n <e@x.test>)")),
    ("commit 'One\\n' 'm <m@x.test> 1 +0000'", Ok("One (n <e@x.test>, written by m <m@x.test>)")),
    ("tag 'One\\n' v1", Ok("v1: One (n <e@x.test>)")),
    ("tag 'One\\n' v1 tag", Ok("v1 (of a tag): One (n <e@x.test>)")),
    ("commit 'One \\033[2J\\033[1;1H\\r\\342\\200\\256enO\\n'", Ok("One ")),
    ("commit \"One $(head -c 2000 /dev/zero | tr '\\0' a)\\n\"", Err("too long to be shown")),
    ("commit 'One\\n' '' 'encoding UTF-7\\n'", Err("another encoding than UTF-8")),
    ("commit 'One\\n' '' 'mergetag any text\\n'", Err("only commits and tags")),
    ("tag 'One\\n' 'v1 (of a tag)'", Err("only commits and tags")),
    ("tag 'One\\n-----BEGIN SSH SIGNATURE-----\\n' v1", Err("only commits and tags")),
];

fn text<'a>(question: &'a Value, pointer: &str) -> &'a str {
    question.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn greeted(scene: &Scene, ask: bool) -> Result<Serve> {
    make_key(scene, "")?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &settings(scene, &by_ssh(ask)).to_string())?;
    Serve::greeted(scene, &[], Interface::Present)
}

fn the_question_shows_what_git_shows(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = greeted(&scene, true)?;
    let environment = json!({ "PATH": "/usr/bin:/bin" });
    for (object, shown) in OBJECTS_SHOWN {
        let id = host.begin(&format!("{ASK}{OBJECTS}{object} > object; ask object"), &environment)?;
        let wanted = match shown {
            Ok(wanted) => wanted,
            Err(reason) => {
                let (_, output) = host.finish(id)?;
                ensure!(output.contains(reason) && !output.contains("BEGIN SSH"), "{object}: {output}");
                continue;
            }
        };
        let question = host.question()?;
        let subject = text(&question, "/params/subject");
        ensure!(
            subject == *wanted || wanted.ends_with(' ') && subject.starts_with(wanted),
            "{object}: {subject}"
        );
        let is_plain = |one: char| !one.is_control() && !('\u{202a}'..='\u{202e}').contains(&one);
        ensure!(subject.chars().all(is_plain), "{object}: {subject:?}");
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let once = options.iter().position(|one| one.get("key") == Some(&json!("o"))).context("a yes")?;
        host.answer(&question, &json!(once))?;
        let (_, output) = host.finish(id)?;
        ensure!(output.contains("BEGIN SSH SIGNATURE"), "{object}: {output}");
        if object.starts_with("commit 'One\\n\\nmore") {
            let signature =
                output.split_once("S-----").map(|(_, rest)| format!("-----{rest}")).context("one")?;
            is_of_the_first_text(&scene, &signature)?;
        }
    }
    host.close()?;
    Ok(())
}

/// The object changed after it was sent: the signature is one of what the question showed.
fn is_of_the_first_text(scene: &Scene, signature: &str) -> Result<()> {
    scene.write(&scene.at("signature"), signature)?;
    let changed = fs::read_to_string(scene.project().join("object"))?;
    ensure!(changed.contains("Two"), "the object has changed: {changed}");
    let check = |object: &str| {
        scene.write(&scene.at("object"), object)?;
        let script = format!(
            "/usr/bin/ssh-keygen -Y check-novalidate -n git -s '{}' < '{}'",
            scene.at("signature").display(),
            scene.at("object").display()
        );
        super::signing::outside(scene, "/bin/sh", &["-c", &script])
    };
    ensure!(check(&changed.replace("Two", "One"))?.code() == 0 && check(&changed)?.code() != 0);
    Ok(())
}

/// Programs and keys that a command names are used inside alone, where no key is.
fn settings_of_git_choose_no_other_key(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = greeted(&scene, false)?;
    let other = "ssh-keygen -q -t ed25519 -N '' -f other\n\
        printf '#!/bin/sh\\ntouch ran\\nexit 1\\n' > own && chmod +x own\n";
    let script = format!(
        "{BEFORE}{other}git -c user.signingkey=$PWD/other.pub commit -qm one 2>&1; \
         git config user.signingkey $PWD/other.pub; git commit -q --allow-empty -m two 2>&1; \
         git -c gpg.ssh.program=$PWD/own commit -q --allow-empty -m three 2>&1; ls ran; \
         git -c gpg.format=openpgp -c gpg.program=$PWD/own commit -q --allow-empty -m four 2>&1; \
         git log --format=%s"
    );
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("ran\n") && output.trim().ends_with("two\none"), "{output}");
    host.close()?;
    for commit in ["HEAD", "HEAD~1"] {
        let good = checked(&scene, &["verify-commit", commit])?;
        ensure!(good.code() == 0 && good.stderr.contains("Good \"git\" signature for e@x.test"), "{good:#?}");
    }
    Ok(())
}
