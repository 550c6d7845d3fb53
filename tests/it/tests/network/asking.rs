//! Connections that wait for an answer of the user.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes::Process;
use portcullis_it::script::{bash, expecting, say, turns};
use portcullis_it::{Deadline, Interface, Launch, PiVersion, Scene, Serve, User, World, processes};
use serde_json::{Value, json};

use super::PROGRAM;

as_each_user!(
    a_connection_waits_and_a_grant_holds_for_the_next_command,
    names_are_shown_in_letters_that_cannot_be_mistaken,
    a_no_is_for_the_command_and_told,
    no_yes_survives_a_later_denial,
    what_is_taken_back_is_asked_again_while_the_command_runs,
    a_no_to_more_than_the_budget_is_remembered,
    a_question_says_what_an_address_is,
    who_gives_up_takes_the_question_back,
    closing_a_socket_at_once_leads_to_no_further_questions,
    unknown_processes_of_several_commands_share_their_answers,
    an_aborted_command_takes_its_question_along,
    the_time_of_a_command_stands_still_while_it_waits,
    a_killed_host_lets_nothing_through,
    many_that_wait_cost_little_and_are_one_question,
    many_that_wait_inside_the_call_are_one_question,
);

on_each_pi!(in_pis_terminal);

pub(crate) const ASK: &str = r#"{ "allowedDomains": [], "deniedDomains": [] }"#;
pub(super) const GET: &str = "curl -sS http://allowed.test/";

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn labels(question: &Value) -> String {
    question.pointer("/params/options").map(Value::to_string).unwrap_or_default()
}

fn a_connection_waits_and_a_grant_holds_for_the_next_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let id = host.begin(&format!("{GET} --connect-timeout 2"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "allowed.test:80", "{question}");
    ensure!(text(&question, "/params/asker").contains("curl (pid "), "{question}");
    ensure!(text(&question, "/params/callId") == format!("call-{id}"), "{question}");
    ensure!(labels(&question).contains("For this command"), "{question}");
    // Longer than the client's own timeout for connecting.
    std::thread::sleep(Duration::from_millis(2_500));
    ensure!(!world.seen().unwrap_or_default().contains("allowed"), "something left before the answer");
    host.answer(&question, &json!(1))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.contains("REACHED"), "{output}");
    // The grant is for this host and port.
    let (_, output) = host.run(GET)?;
    ensure!(output.contains("REACHED"), "{output}");
    let id = host.begin("curl -sS http://allowed.test:8080/", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "allowed.test:8080", "{question}");
    host.answer(&question, &json!("refuse"))?;
    host.finish(id)?;
    Ok(())
}

/// Row 99: the first letter is a Cyrillic one.
fn names_are_shown_in_letters_that_cannot_be_mistaken(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let environment = json!({ "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8" });
    let id = host.begin("curl -sS http://аllowed.test/", &environment)?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "xn--llowed-2nf.test:80", "{question}");
    host.answer(&question, &json!("refuse"))?;
    host.finish(id)?;
    Ok(())
}

fn a_no_is_for_the_command_and_told(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let id = host.begin(&format!("{GET}; {GET}"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    let (result, output) = host.finish(id)?;
    ensure!(output.matches("Couldn't connect").count() == 2 && !output.contains("you said no"), "{output}");
    let told =
        "network: no connection to allowed.test:80: `allowedDomains` does not name this host; you said no";
    ensure!(notes(&result).contains(told), "{result}");
    ensure!(notes(&result).contains("you said no for this command"), "{result}");
    // Another command leads to a question again: a plain refusal applies once, and one for the session has its own
    // option.
    let id = host.begin(GET, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "d").context("a no for the session")?)?;
    host.finish(id)?;
    let (result, _) = host.run(GET)?;
    ensure!(notes(&result).contains("you said no for this session"), "{result}");
    let screen = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
    ensure!(screen.to_string().contains("This session: no connections to allowed.test:80"), "{screen:#}");
    Ok(())
}

/// For an answer for the session and one for the project; the control is the connection before the denial.
fn no_yes_survives_a_later_denial(user: User) -> Result<()> {
    for key in ["s", "P"] {
        let scene = Scene::new(user)?;
        let world = World::new(&scene, PROGRAM)?;
        let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
        let id = host.begin(GET, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        host.answer(&question, &choice(&question, key).with_context(|| format!("{key}: {question}"))?)?;
        host.finish(id)?;
        let (_, output) = host.run(GET)?;
        ensure!(output.contains("REACHED"), "control, {key}: {output}");
        for denied in ["allowed.test", "*.test", "allowed.test:80"] {
            let network = json!({ "allowedDomains": [], "deniedDomains": [denied] });
            world.settings_of_the_user(&network.to_string())?;
            let (result, output) = host.run(GET)?;
            ensure!(
                !output.contains("REACHED") && notes(&result).contains("deniedDomains"),
                "{key}, {denied}: {output}"
            );
            world.settings_of_the_user(ASK)?;
            let (_, output) = host.run(GET)?;
            ensure!(output.contains("REACHED"), "{key}, the denial is gone: {output}");
        }
        host.close()?;
    }
    Ok(())
}

/// Returns the notes for the model beside the output.
pub(super) fn notes(result: &Value) -> String {
    result.pointer("/notes").map(Value::to_string).unwrap_or_default()
}

/// Returns the index of the option with this key.
fn choice(question: &Value, key: &str) -> Option<Value> {
    let options = question.pointer("/params/options")?.as_array()?;
    options.iter().position(|option| option.get("key") == Some(&json!(key))).map(|place| json!(place))
}

/// The control is the second connection, which the answer covers.
fn what_is_taken_back_is_asked_again_while_the_command_runs(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let script = format!("{GET}; {GET}; touch twice; until [ -e go ]; do sleep 0.1; done; {GET}");
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    host.answer(&question, &choice(&question, "s").context("an answer for the session")?)?;
    let twice = scene.project().join("twice");
    Deadline::start().until("the first connections", || Ok(twice.exists().then_some(())))?;

    let mut press = |event: Value| host.succeed("menu", &json!({ "event": event }));
    let overview = press(json!({ "kind": "open" }))?;
    let items = overview.get("items").and_then(Value::as_array).context("items")?;
    let answers = items.iter().position(|item| item.to_string().contains("Kept answers"));
    press(json!({ "kind": "choose", "index": answers.context("the answers")? }))?;
    let done = press(json!({ "kind": "key", "key": "d", "index": 0 }))?;
    ensure!(done.to_string().contains("taken back: connections to allowed.test:80"), "{done:#}");
    scene.write(&scene.project().join("go"), "")?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "allowed.test:80", "{question}");
    host.answer(&question, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.matches("REACHED").count() == 2, "{output}");
    Ok(())
}

fn a_no_to_more_than_the_budget_is_remembered(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let network = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": [], "uploadBudgetMib": 1 }"#;
    let mut host = Serve::inside(&scene, &world, network, Interface::Present)?;
    let send = "head -c 1200000 /dev/zero | curl -sS --data-binary @- -H Expect: http://allowed.test/";
    // The control is the plain refusal, which applies to this connection.
    for (answer, is_last) in [("refuse", false), ("d", true)] {
        let id = host.begin(send, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        ensure!(text(&question, "/params/title").ends_with("wants to send more to"), "{question}");
        ensure!(choice(&question, "s").is_none() && choice(&question, "A").is_none(), "{question}");
        host.answer(&question, &choice(&question, answer).unwrap_or(json!(answer)))?;
        let (result, _) = host.finish(id)?;
        ensure!(result.to_string().contains("you said no for this session") == is_last, "{result}");
    }
    let (result, _) = host.run(send)?;
    ensure!(result.to_string().contains("you said no for this session"), "{result}");
    // Only connections beyond the budget are refused, and the answer can be withdrawn.
    let screen = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
    let told = "This session: no more than the budget over connections to allowed.test:80";
    ensure!(screen.to_string().contains(told), "{screen:#}");
    Ok(())
}

fn a_question_says_what_an_address_is(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let through_proxy = |place: &str| format!("curl -sS -x \"$PORTCULLIS_PROXY\" http://{place}/");
    for (script, subject, meaning, is_kept_for_all) in [
        (
            through_proxy("127.0.0.1:8000"),
            "127.0.0.1:8000",
            "`127.0.0.1` is this machine itself (loopback), not the sandbox",
            false,
        ),
        (
            through_proxy("[::1]:8000"),
            "[::1]:8000",
            "`::1` is this machine itself (loopback), not the sandbox",
            false,
        ),
        (
            "curl -sS http://169.254.169.254/".to_owned(),
            "169.254.169.254:80",
            "is the metadata service of a cloud",
            false,
        ),
        ("curl -sS http://10.0.0.1/".to_owned(), "10.0.0.1:80", "`10.0.0.1` is in a private network", true),
        ("curl -sS http://203.0.113.1/".to_owned(), "203.0.113.1:80", "`allowedDomains` does not name", true),
    ] {
        let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        ensure!(text(&question, "/params/subject") == subject, "{question}");
        let reason = text(&question, "/params/reason");
        ensure!(reason.contains(meaning), "{question}");
        ensure!(reason.contains(" is in a ") == meaning.contains(" is in a "), "{question}");
        ensure!(choice(&question, "A").is_some() == is_kept_for_all, "{question}");
        ensure!(choice(&question, "s").is_some() && choice(&question, "P").is_some(), "{question}");
        host.answer(&question, &json!("refuse"))?;
        let (_, output) = host.finish(id)?;
        ensure!(!output.contains("REACHED"), "{output}");
    }
    Ok(())
}

fn who_gives_up_takes_the_question_back(user: User) -> Result<()> {
    // Inside connect(2) a program cannot enforce a timeout of its own, but it can be killed.
    for (hold, give_up) in
        [("accept", format!("{GET} --max-time 1")), ("connect", format!("timeout 1 {GET}"))]
    {
        let scene = Scene::new(user)?;
        let world = World::new(&scene, PROGRAM)?.holding(hold);
        let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
        let id = host.begin(&format!("{give_up}; echo over"), &json!({ "PATH": "/usr/bin:/bin" }))?;
        host.question()?;
        host.wait("a withdrawal", |message| message.get("method") == Some(&json!("ask/withdraw")))?;
        let (_, output) = host.finish(id)?;
        ensure!(output.contains("over") && !output.contains("REACHED"), "{output}");
    }
    Ok(())
}

/// A script that connects to a hundred addresses, one after another; `keep` is done with each socket.
fn to_a_hundred(keep: &str) -> String {
    format!(
        "cat > many.py <<'END'\n\
        import socket\n\
        kept = []\n\
        for n in range(100):\n    s = socket.socket(); s.settimeout(5)\n    \
        try: s.connect((f\"203.0.113.{{n + 100}}\", 80))\n    except OSError: pass\n    {keep}\nEND\n\
        python3 many.py"
    )
}

/// Refuses every question of a command, and returns the subjects of the questions with the calls that led to them.
fn refused_by(host: &mut Serve, script: &str) -> Result<Vec<(String, String)>> {
    let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let mut asked = Vec::new();
    loop {
        let message = host.wait("a question or the end", |message| {
            let is_reply = message.get("method").is_none() && message.get("id") == Some(&json!(id));
            is_reply || message.get("method") == Some(&json!("ask"))
        })?;
        if message.get("method").is_none() {
            return Ok(asked);
        }
        let call = text(&message, "/params/callId").to_owned();
        asked.push((text(&message, "/params/subject").to_owned(), call));
        host.answer(&message, &json!("refuse"))?;
    }
}

/// The process of a socket that is closed at once cannot be found any more. The control keeps the sockets open.
fn closing_a_socket_at_once_leads_to_no_further_questions(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    for keep in ["kept.append(s)", "s.close()", "s.close()"] {
        let mut asked = refused_by(&mut host, &to_a_hundred(keep))?;
        ensure!(asked.len() == 20, "{keep}: {} questions: {asked:?}", asked.len());
        ensure!(asked.iter().all(|(_, call)| call.starts_with("call-")), "{keep}: {asked:?}");
        asked.sort();
        asked.dedup_by(|one, other| one.0 == other.0);
        ensure!(asked.len() == 20, "{keep}: a host was asked about twice: {asked:?}");
    }
    Ok(())
}

/// With two commands, the owner of a closed socket is not known: both share one count of questions, and a refusal
/// applies to both.
fn unknown_processes_of_several_commands_share_their_answers(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let other = host.begin("until [ -e go ]; do sleep 0.1; done", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let mut unknown = 0;
    for _ in 0..3 {
        let mut asked = refused_by(&mut host, &to_a_hundred("s.close()"))?;
        let known = asked.iter().filter(|(_, call)| !call.is_empty()).count();
        ensure!(known == 20, "{known} questions: {asked:?}");
        unknown += asked.len() - known;
        let count = asked.len();
        asked.sort();
        asked.dedup_by(|one, other| one.0 == other.0);
        ensure!(asked.len() == count, "a host was asked about twice: {asked:?}");
    }
    ensure!(unknown <= 20, "{unknown} questions about unknown processes");
    scene.write(&scene.project().join("go"), "")?;
    host.finish(other)?;
    Ok(())
}

fn an_aborted_command_takes_its_question_along(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let id = host.begin(GET, &json!({ "PATH": "/usr/bin:/bin" }))?;
    host.question()?;
    host.line(json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": id } }).to_string())?;
    host.wait("a withdrawal", |message| message.get("method") == Some(&json!("ask/withdraw")))?;
    let reply = host.reply(id)?;
    ensure!(reply.get("error").is_some(), "{reply}");
    ensure!(host.close()?.success());
    ensure!(!world.seen().unwrap_or_default().contains("allowed"));
    Ok(())
}

fn the_time_of_a_command_stands_still_while_it_waits(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    let params = json!({
        "callId": "c", "stream": 77, "script": GET, "cwd": scene.project(),
        "env": { "PATH": "/usr/bin:/bin" }, "origin": "agent", "timeoutMs": 1_500,
    });
    let id = host.request("exec", &params)?;
    let question = host.question()?;
    std::thread::sleep(Duration::from_millis(2_500));
    host.answer(&question, &json!(0))?;
    let reply = host.reply(id)?;
    ensure!(reply.pointer("/result/timedOutAfterMs").is_none(), "{reply}");
    ensure!(reply.pointer("/result/exitCode") == Some(&json!(0)), "{reply}");
    Ok(())
}

fn a_killed_host_lets_nothing_through(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    host.begin(&format!("{GET}; echo ended > ended"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    host.question()?;
    // Kills the host itself, and not the processes around it.
    let process = host_of(&scene)?;
    ensure!(Command::new("kill").args(["-KILL", &process.id.to_string()]).status()?.success());
    processes::wait_end(&process)?;
    std::thread::sleep(Duration::from_millis(300));
    ensure!(!world.seen().unwrap_or_default().contains("allowed"));
    ensure!(!scene.project().join("ended").exists(), "the command went on");
    Ok(())
}

/// The number of connections of one command that wait at the same time; below the default limit on file descriptors of
/// a process.
const MANY: usize = 1_000;
/// The environment variable that overrides that number.
const MANY_VARIABLE: &str = "PORTCULLIS_IT_PENDING";
/// The cost that they may cause the host: threads in total, and KiB for each connection.
const THREADS: u64 = 4;
const MEMORY: usize = 20;

fn many_that_wait_cost_little_and_are_one_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?.holding("accept");
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    host.run("true")?;
    let many = std::env::var(MANY_VARIABLE).map_or(Ok(MANY), |number| number.parse())?;
    let process = host_of(&scene)?;
    let status = |field: &str| -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", process.id))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).context("a line of the status")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse()?)
    };
    let (threads, memory) = (status("Threads")?, status("VmRSS")?);
    let script = format!(
        "ulimit -n $(ulimit -Hn); perl -MIO::Socket::INET -e 'for (1 .. {many}) {{ push @s, IO::Socket::INET->new(PeerAddr => q(203.0.113.1), \
         PeerPort => 80) }} for (@s) {{ sysread($_, my $b, 9) or $n++ }} print qq($n\\n)'"
    );
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "203.0.113.1:80", "{question}");
    let descriptors = format!("/proc/{}/fd", process.id);
    // Where the host's limit on file descriptors is lower, the remaining connections are refused at once.
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.id))?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files")).context("a limit")?;
    let limit: usize = limit.split_whitespace().next().context("a number")?.parse()?;
    let waiting = many.min((limit - 256) / 2);
    Deadline::start().until("all of them to wait", || {
        Ok((std::fs::read_dir(&descriptors)?.count() > waiting).then_some(()))
    })?;
    let cost = (status("Threads")?.saturating_sub(threads), status("VmRSS")?.saturating_sub(memory));
    let memory = u64::try_from(MEMORY * many)?;
    ensure!(cost.0 <= THREADS && cost.1 <= memory, "{} threads and {} KiB more", cost.0, cost.1);
    host.answer(&question, &json!("refuse"))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.trim() == many.to_string(), "{output}");
    Ok(())
}

/// Each waiting call has a thread of the command and none of the host, where a waiting call is an entry of a table.
fn many_that_wait_inside_the_call_are_one_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut host = Serve::inside(&scene, &world, ASK, Interface::Present)?;
    host.run("true")?;
    let process = host_of(&scene)?;
    let count = |what: &str| {
        Ok::<_, anyhow::Error>(std::fs::read_dir(format!("/proc/{}/{what}", process.id))?.count())
    };
    let before = (count("task")?, count("fd")?);
    let script = "cat > many.py <<'END'\n\
        import socket, threading\n\
        got = []\n\
        def one():\n    s = socket.create_connection((\"203.0.113.1\", 22), timeout=20); got.append(s.recv(99))\n\
        threads = [threading.Thread(target=one) for _ in range(100)]\n\
        [t.start() for t in threads]\nprint(\"begun\", flush=True)\n[t.join() for t in threads]\n\
        print(len([g for g in got if b\"REACHED\" in g]))\nEND\n\
        exec python3 many.py";
    let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    ensure!(text(&question, "/params/subject") == "203.0.113.1:22", "{question}");
    std::thread::sleep(Duration::from_secs(2));
    let during = (count("task")?, count("fd")?);
    ensure!(during.0 <= before.0 + 3 && during.1 <= before.1 + 8, "{before:?} became {during:?}");
    host.answer(&question, &json!(0))?;
    let (_, output) = host.finish(id)?;
    ensure!(output.trim().ends_with("\n100"), "{output}");
    Ok(())
}

/// Returns the process of the host; those around it have its command line after their own.
fn host_of(scene: &Scene) -> Result<Process> {
    let found = processes::of_scene(scene)?.into_iter().find(|process| {
        process.command_line.ends_with("portcullis serve") && !process.command_line.contains("/world ")
    });
    found.context("no host runs")
}

/// A command waits for a prompt and continues after the answer; the next command needs no prompt.
fn in_pis_terminal(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    world.settings_of_the_user(ASK)?;
    let script = turns([
        ("first", vec![bash(GET), expecting("REACHED", say("first over"))]),
        ("second", vec![bash(GET), expecting("REACHED", say("second over"))]),
        (
            "third",
            vec![bash("curl -sS http://sub.allowed.test/"), expecting("you said no", say("third over"))],
        ),
        (
            "fourth",
            vec![bash("curl -sS http://sub.allowed.test/"), expecting("you said no", say("fourth over"))],
        ),
        (
            "fifth",
            vec![
                bash("curl -sS http://sub.allowed.test/"),
                expecting("you said no for this session", say("fifth over")),
            ],
        ),
    ]);
    let screen = Launch::guarded(&scene, version, &script)?.inside(&world).screen()?;
    screen.wait_for("Portcullis on")?;
    screen.enter("the first")?;
    screen.wait("a question about the host", |text| {
        text.contains("allowed.test:80") && text.contains("[esc]  No")
    })?;
    // The options below the plain refusal: for this command, for this session.
    screen.press_calmly("Down")?;
    screen.press("Down")?;
    screen.press("Enter")?;
    screen.wait_for("first over")?;
    screen.enter("the second")?;
    screen.wait_for("second over")?;
    screen.enter("the third")?;
    screen.wait("another question", |text| {
        text.contains("sub.allowed.test:80") && text.contains("[esc]  No")
    })?;
    screen.press_calmly("Escape")?;
    screen.wait_for("third over")?;
    // The refusal applied once: the next command leads to a question again. A refusal for the session has its own key.
    screen.enter("the fourth")?;
    screen.wait("the question again", |text| text.contains("[m]    More") && text.contains("[esc]  No"))?;
    screen.press_calmly("m")?;
    screen.wait_for("[d]    No, for this session")?;
    screen.press_calmly("d")?;
    screen.wait_for("fourth over")?;
    screen.enter("the fifth")?;
    screen.wait_for("fifth over")?;
    screen.enter("/sandbox")?;
    screen.wait_for("This session: no connections to sub.allowed.test:80")?;
    screen.press("Escape")?;
    screen.wait_gone("Recent decisions")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}
