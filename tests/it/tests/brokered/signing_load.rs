//! Many signatures at once, and clients of the signer that do not behave as git does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Interface, Scene, Serve, User, processes};
use serde_json::{Value, json};

use super::signing::{BEFORE, by_ssh, make_key, outside, run, settings};
use super::{logs, marked, section};

as_each_user!(
    fifty_commits_at_once_are_signed_once_each,
    many_questions_are_put_one_after_another_and_end_with_a_no,
    a_signer_is_not_blocked_by_clients_that_hang,
    a_session_ends_while_a_signature_is_asked_about,
);

/// How many commits are made at once.
const COMMITS: usize = 50;

/// Commits in repositories of their own, all at the same time.
fn at_once(count: usize) -> String {
    format!(
        "for one in $(seq {count}); do git init -q $one; done\n\
         for one in $(seq {count}); do git -C $one commit -q --allow-empty -m \"number $one\" 2>$one/said & done; wait\n"
    )
}

fn fifty_commits_at_once_are_signed_once_each(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let count = format!(
        "for one in $(seq {COMMITS}); do git -C $one cat-file commit HEAD; done | grep -c 'BEGIN SSH SIGNATURE'; \
         cat */said"
    );
    let script = BEFORE.to_owned() + &at_once(COMMITS) + &marked(&[&count]);
    let finished = run(&scene, &by_ssh(false), &script)?;
    ensure!(section(&finished.stdout, 0)?.trim() == COMMITS.to_string(), "{finished:#?}");
    let allowed = scene.at("allowed");
    let key = std::fs::read_to_string(scene.home().join(".ssh/signing.pub"))?;
    scene.write(&allowed, &format!("e@x.test {key}"))?;
    let allowed = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
    for number in [1, COMMITS / 2, COMMITS] {
        let made = format!("--git-dir={}", scene.project().join(format!("made/{number}/.git")).display());
        let words = ["-c", &allowed, "-c", "safe.directory=*", &made, "verify-commit", "HEAD"];
        let good = outside(&scene, "git", &words)?;
        ensure!(good.code() == 0 && good.stderr.contains("Good \"git\" signature"), "{number}: {good:#?}");
    }
    let log = logs(&scene)?;
    let signed = log.matches("the commit is signed with `sign`").count();
    ensure!(signed == COMMITS, "{signed} in the log");
    Ok(())
}

/// The subject of a question.
fn subject(question: &Value) -> String {
    question.pointer("/params/subject").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn once(question: &Value) -> Result<Value> {
    let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
    let at = options.iter().position(|one| one.get("key") == Some(&json!("o")));
    Ok(json!(at.context("an answer for once")?))
}

/// Starts a session in which signatures are asked about.
fn asking(scene: &Scene) -> Result<Serve> {
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &settings(scene, &by_ssh(true)).to_string())?;
    Serve::greeted(scene, &[], Interface::Present)
}

fn many_questions_are_put_one_after_another_and_end_with_a_no(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let mut host = asking(&scene)?;
    let script = BEFORE.to_owned()
        + &at_once(20)
        + "for one in $(seq 20); do git -C $one log --format=%s 2>/dev/null; done; cat */said";
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let mut asked = BTreeSet::new();
    for _ in 0..5 {
        let question = host.question()?;
        ensure!(asked.insert(subject(&question)), "asked twice: {question:#}");
        host.answer(&question, &once(&question)?)?;
    }
    let allowed = asked.clone();
    // The answers are taken in by several threads: the noes come after all of the others.
    let signed =
        || anyhow::Ok(logs(&scene)?.matches("the commit is signed with `sign`").count() == allowed.len());
    Deadline::start().until("the signatures", || Ok(signed()?.then_some(())))?;
    // Three noes in a row end the questions.
    for _ in 0..3 {
        let question = host.question()?;
        ensure!(asked.insert(subject(&question)), "asked twice: {question:#}");
        host.answer(&question, &json!("refuse"))?;
    }
    let (_, output) = host.finish(id)?;
    let made: BTreeSet<String> = output
        .lines()
        .filter(|line| line.starts_with("number "))
        .map(|line| format!("{line} (n <e@x.test>)"))
        .collect();
    ensure!(made == allowed, "{made:?} {allowed:?} {output}");
    ensure!(output.contains("you said no several times in a row"), "{output}");
    host.close()?;
    let log = logs(&scene)?;
    ensure!(log.matches("the commit is signed with `sign`").count() == 5, "{log}");
    Ok(())
}

/// Clients that send less, more, or nothing, and stay.
const HANGING: &str = "python3 -c 'import os, socket, sys, time\n\
    text = open(\"commit\", \"rb\").read()\n\
    whole = b\"portcullis-sign/1\\0ssh\\0%d\\0\" % len(text) + text\n\
    def client(piece):\n\
    \x20   there = socket.socket(socket.AF_UNIX)\n\
    \x20   there.connect(os.environ[\"PORTCULLIS_SIGNER\"])\n\
    \x20   there.sendall(piece)\n\
    \x20   return there\n\
    def answer(there):\n\
    \x20   all = b\"\"\n\
    \x20   while piece := there.recv(65536): all += piece\n\
    \x20   return all\n\
    stay = [client(whole[:length]) for length in [0, 3, 18, 30, len(whole) - 1] * 4]\n\
    print(\"TWICE\", answer(client(whole + whole))[:60])\n\
    again = client(whole)\n\
    print(\"ONCE\", answer(again).count(b\"BEGIN SSH SIGNATURE\"))\n\
    try: again.sendall(whole); print(\"AGAIN\", answer(again))\n\
    except OSError as error: print(\"AGAIN\", error)\n\
    print(\"ANOTHER\", answer(client(whole)).count(b\"BEGIN SSH SIGNATURE\"))'";

fn a_signer_is_not_blocked_by_clients_that_hang(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let prepare = "git commit -qm one; git cat-file commit HEAD | sed '/^gpgsig/,/END SSH/d' > commit\n";
    let script = BEFORE.to_owned() + prepare + HANGING;
    let begin = Instant::now();
    let finished = run(&scene, &by_ssh(false), &script)?;
    let said = |name: &str| finished.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    ensure!(said("TWICE").contains("followed by another one"), "{finished:#?}");
    ensure!(said("ONCE") == "ONCE 1", "{finished:#?}");
    ensure!(!said("AGAIN").is_empty() && !said("AGAIN").contains("SIGNATURE"), "{finished:#?}");
    // A request that is sent again is a request like the first: it is decided and logged like that.
    ensure!(said("ANOTHER") == "ANOTHER 1", "{finished:#?}");
    ensure!(begin.elapsed() < Duration::from_secs(90), "{:?}", begin.elapsed());
    let signed = logs(&scene)?.matches("the commit is signed with `sign`").count();
    ensure!(signed == 3, "{signed} in the log");
    Ok(())
}

fn a_session_ends_while_a_signature_is_asked_about(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let mut host = asking(&scene)?;
    host.begin(&(BEFORE.to_owned() + "git commit -qm one"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    ensure!(subject(&question).starts_with("one "), "{question:#}");
    let begin = Instant::now();
    host.close()?;
    ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    ensure!(processes::of_scene(&scene)?.is_empty(), "{:?}", processes::of_scene(&scene)?);
    let log = logs(&scene)?;
    ensure!(!log.contains("is signed with"), "{log}");
    Ok(())
}
