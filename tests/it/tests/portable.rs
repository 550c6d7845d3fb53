//! The program of systems other than Linux, built on Linux: real pi, the portable gate, and commands under a confiner of
//! the tests' own, or refused. Never without one.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{bash, expecting, expecting_no, read, say, write};
use portcullis_it::{Confiner, Interface, Launch, PiVersion, Scene, Serve, User, World, script};
use serde_json::json;

use crate::network::PROGRAM;
use crate::network::asking::ASK;
use crate::network::programs::prepared;

on_each_pi!(pi_works_with_commands_that_are_confined, pi_works_with_commands_that_are_refused);
as_each_user!(
    what_does_not_confine_runs_nothing,
    doctor_tells_what_came_through,
    a_connection_through_the_proxy_waits_for_the_answer,
    programs_use_the_proxies_with_the_same_decisions,
    a_question_about_a_client_that_has_gone_is_withdrawn,
    what_ignores_the_proxy_is_refused,
    a_refused_write_is_asked_about_and_the_command_run_again,
    a_command_ends_with_its_host,
);

fn portable(user: User, confiner: Confiner) -> Result<Scene> {
    Scene::new(user)?.portable(confiner)
}

/// The seven tools' gate is the portable one, and so is the sandbox.
fn pi_works_with_commands_that_are_confined(version: PiVersion, user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let (outside, secret) = (scene.outside().join("made"), scene.home().join(".ssh/id_ed25519"));
    scene.write(&secret, "PRIVATE")?;
    let steps = script([
        bash(&format!(
            "echo x > '{}'; echo sum-$((40+2)); echo in > of-bash; echo home-$HOME",
            outside.display()
        )),
        expecting("sum-42[^$]*home-.*portcullis-commands", write("of-pi", "alpha")),
        expecting("[Ww]rote", read("of-pi")),
        expecting("alpha", read(&secret.display().to_string())),
        expecting_no("PRIVATE", say("done")),
    ]);
    let finished = Launch::guarded(&scene, version, &steps)?.print("go")?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(!outside.exists(), "{finished:#?}");
    ensure!(scene.project().join("of-bash").exists() && scene.project().join("of-pi").exists());
    // Control: alone, pi writes there.
    let finished = Launch::plain(&scene, version, &steps)?.print("go")?;
    ensure!(outside.exists(), "{finished:#?}");
    Ok(())
}

fn pi_works_with_commands_that_are_refused(version: PiVersion, user: User) -> Result<()> {
    let scene = portable(user, Confiner::Missing)?;
    let steps = script([
        bash("echo ran > ran; echo sum-$((40+2))"),
        expecting("refused because the sandbox could not be set up", write("of-pi", "alpha")),
        expecting("[Ww]rote", read("of-pi")),
        expecting("alpha", say("done")),
    ]);
    let finished = Launch::guarded(&scene, version, &steps)?.print("go")?;
    ensure!(finished.stdout.contains("done"), "{finished:#?}");
    ensure!(!scene.project().join("ran").exists() && scene.project().join("of-pi").exists(), "{finished:#?}");
    Ok(())
}

fn what_does_not_confine_runs_nothing(user: User) -> Result<()> {
    for (confiner, told) in [
        (Confiner::Nothing, "not stopped: reading a hidden file"),
        (Confiner::Everything, "not possible in it: writing the temporary directory"),
        (Confiner::Missing, "not possible in it"),
    ] {
        let scene = portable(user, confiner)?;
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        let id = host.begin("echo ran > ran", &json!({ "PATH": "/usr/bin:/bin" }))?;
        let reply = host.reply(id)?.to_string();
        ensure!(reply.contains(told), "{reply}");
        ensure!(!scene.project().join("ran").exists());
    }
    // Control.
    let scene = portable(user, Confiner::Confines)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.run("echo ran > ran")?;
    ensure!(scene.project().join("ran").exists());
    Ok(())
}

fn doctor_tells_what_came_through(user: User) -> Result<()> {
    let doctor = |confiner| portable(user, confiner)?.portcullis(&["doctor"]);
    let good = doctor(Confiner::Confines)?;
    ensure!(good.stdout.contains("experimental: not run by its makers"), "{good:#?}");
    ensure!(good.stdout.contains("blocked") && !good.stdout.contains("CAME THROUGH"), "{good:#?}");
    let bad = doctor(Confiner::Nothing)?;
    ensure!(bad.stdout.contains("CAME THROUGH") && bad.stdout.contains("no sandbox"), "{bad:#?}");
    let closed = doctor(Confiner::Everything)?;
    ensure!(closed.stdout.contains("NOT POSSIBLE") && closed.code() != good.code(), "{closed:#?}");
    Ok(())
}

/// The request to the proxy is held, and the same rules and answers hold as elsewhere.
fn a_connection_through_the_proxy_waits_for_the_answer(user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    for get in ["curl -sS http://allowed.test/", "curl -sS --proxy $ALL_PROXY http://allowed.test:8080/"] {
        let before = world.seen().unwrap_or_default();
        let id = host.begin(get, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        let subject = question.pointer("/params/subject").and_then(|text| text.as_str());
        ensure!(subject.context("a subject")?.starts_with("allowed.test:"), "{question}");
        ensure!(world.seen().unwrap_or_default() == before, "something left before the answer");
        host.answer(&question, &json!(1))?;
        let (_, output) = host.finish(id)?;
        ensure!(output.contains("REACHED"), "{get}: {output}");
    }
    let id = host.begin("curl -sS http://evil.test/", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(!output.contains("REACHED"), "{output}");
    Ok(())
}

/// Programs with the proxies that they use. They print `REACHED` on success; `HOST` stands for the host.
const BY_PROXY: [&str; 6] = [
    "curl -sS http://HOST/",
    "curl -sS --proxy \"$ALL_PROXY\" http://HOST/",
    "git ls-remote http://HOST:8081/repo.git | sed -n 's/.*HEAD/REACHED/p'",
    "git -c http.proxy=\"$ALL_PROXY\" ls-remote http://HOST:8081/repo.git | sed -n 's/.*HEAD/REACHED/p'",
    "npm view --cache=c1 --fetch-retries=0 --registry=http://HOST:8081/npm/ hello name | sed 's/hello/REACHED/'",
    "npm view --cache=c2 --fetch-retries=0 --proxy=\"$ALL_PROXY\" --registry=http://HOST:8081/npm/ hello name | \
     sed 's/hello/REACHED/'",
];

/// Programs with ways past the proxies.
const PAST_PROXY: [&str; 3] = [
    "curl -sS --max-time 5 --noproxy '*' http://HOST/",
    "env -u http_proxy -u all_proxy -u ALL_PROXY -u HTTP_PROXY \
     git ls-remote http://HOST:8081/repo.git | sed -n 's/.*HEAD/REACHED/p'",
    "exec 3<> /dev/tcp/HOST/80 && echo REACHED",
];

fn programs_use_the_proxies_with_the_same_decisions(user: User) -> Result<()> {
    const SOME: &str = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": ["evil.test"] }"#;
    let scene = portable(user, Confiner::Confines)?;
    let world = World::new(&scene, PROGRAM)?;
    prepared(&scene)?;
    let mut host = Serve::inside(&scene, &world, SOME, Interface::Present)?;
    let environment = json!({ "PATH": std::env::var("PATH")? });
    let seen = || world.seen().unwrap_or_default();
    for script in BY_PROXY {
        let of = |name: &str| script.replace("HOST", name);
        let id = host.begin(&of("allowed.test"), &environment)?;
        let (_, output) = host.finish(id)?;
        ensure!(output.contains("REACHED"), "{script}: {output}");
        let id = host.begin(&of("evil.test"), &environment)?;
        let (_, output) = host.finish(id)?;
        ensure!(!output.contains("REACHED") && !seen().contains("203.0.113.2"), "{script}: {output}");
        // It is not allowed, so each command asks. A yes for once covers the other connections of its command.
        let id = host.begin(&of("sub.allowed.test"), &environment)?;
        let question = host.question()?;
        let subject = question.pointer("/params/subject").and_then(|text| text.as_str());
        ensure!(subject.context("a subject")?.starts_with("sub.allowed.test:"), "{script}: {question}");
        host.answer(&question, &json!(0))?;
        let (_, output) = host.finish(id)?;
        ensure!(output.contains("REACHED"), "{script}: {output}");
    }
    for script in PAST_PROXY {
        let script = script.replace("HOST", "allowed.test");
        let id = host.begin(&script, &environment)?;
        let (_, output) = host.finish(id)?;
        ensure!(!output.contains("REACHED"), "{script}: {output}");
        // Control.
        let alone = world.control(&script)?;
        ensure!(alone.stdout.contains("REACHED"), "{script}: {alone:#?}");
    }
    Ok(())
}

/// The system does not tell which process has connected, but a closed socket is seen.
fn a_question_about_a_client_that_has_gone_is_withdrawn(user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let id = host.begin(
        "timeout 2 curl -sS http://allowed.test/; sleep 2; echo over",
        &json!({ "PATH": "/usr/bin:/bin" }),
    )?;
    host.question()?;
    host.wait("a withdrawal", |message| message.get("method") == Some(&json!("ask/withdraw")))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("over") && !output.contains("REACHED"), "{output}");
    Ok(())
}

fn what_ignores_the_proxy_is_refused(user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = server.local_addr()?.port();
    let script = format!("(exec 3<> /dev/tcp/127.0.0.1/{port}) && echo reached || echo refused");
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (_, output) = host.run(&script)?;
    ensure!(output.contains("refused") && !output.contains("reached"), "{output}");
    let control = std::process::Command::new("/bin/bash").args(["-c", &script]).output()?;
    ensure!(String::from_utf8_lossy(&control.stdout).contains("reached"));
    Ok(())
}

/// The confiner of the tests refuses with the words of Linux, so the command says those of macOS.
fn a_refused_write_is_asked_about_and_the_command_run_again(user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let place = scene.outside().display().to_string();
    let file = format!("{place}/new");
    let script = format!(
        "echo run >> runs; echo x > {file} || {{ echo 'bash: {file}: Operation not permitted' >&2; exit 1; }}"
    );
    let runs = || std::fs::read_to_string(scene.project().join("runs")).unwrap_or_default().lines().count();
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    let subject = |question: &serde_json::Value| question.pointer("/params/subject").cloned();
    ensure!(subject(&question) == Some(json!(place)) && runs() == 1, "{question}");
    host.answer(&question, &json!(0))?;
    let again = host.question()?;
    ensure!(again.to_string().contains("Run this command again?") && runs() == 1, "{again}");
    host.answer(&again, &json!(0))?;
    host.finish(id)?;
    ensure!(runs() == 2, "{}", runs());
    // Control: a path that commands may write is not asked about, whatever a command says.
    let own = scene.project().join("own").display().to_string();
    let id = host.begin(
        &format!("echo 'bash: {own}: Operation not permitted' >&2; exit 1"),
        &json!({ "PATH": "/usr/bin:/bin" }),
    )?;
    host.finish(id)?;
    Ok(())
}

fn a_command_ends_with_its_host(user: User) -> Result<()> {
    let scene = portable(user, Confiner::Confines)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.begin("echo $$ > pid; exec sleep 300", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let file = scene.project().join("pid");
    let pid = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    let deadline = portcullis_it::Deadline::start();
    while pid().is_none() {
        ensure!(!deadline.left().is_zero(), "{}", host.errors());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let command = pid().context("a number")?;
    let has_ended = || portcullis_each_user::has_ended(command.trim());
    ensure!(!has_ended(), "control");
    host.kill()?;
    while !has_ended() {
        ensure!(!deadline.left().is_zero(), "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(())
}
