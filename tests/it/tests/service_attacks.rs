//! Attacks on services of this machine, by a command that was allowed one of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    one_that_was_allowed_leads_to_no_other,
    what_never_connects_holds_nothing_of_the_host,
    thousands_that_wait_take_a_share_of_the_host,
);

/// A service of this machine, with the number of its connections.
struct Service(u16, Arc<AtomicUsize>);

impl Service {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let service = Self(listener.local_addr()?.port(), Arc::default());
        let count = Arc::clone(&service.1);
        // It ends with the test process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    let _request = stream.read(&mut [0; 1024]);
                    let _reply = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nREACHED\n");
                });
            }
        });
        Ok(service)
    }

    fn connections(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

/// Answers each question with yes if it is about a port, and with no otherwise, until the command has ended.
fn answer_all(host: &mut Serve, id: u64, allowed: u16) -> Result<Value> {
    loop {
        let message = host.wait("an end", |message| {
            message.get("method") == Some(&json!("ask")) || message.get("id") == Some(&json!(id))
        })?;
        if message.get("method").is_none() {
            return Ok(message);
        }
        let about = message.pointer("/params/subject").and_then(Value::as_str).unwrap_or_default();
        let is_allowed = about == format!("127.0.0.1:{allowed}");
        host.answer(&message, &if is_allowed { json!(0) } else { json!("refuse") })?;
    }
}

/// Ways to a port of the loopback: by its names, by the proxy, and by a program that goes from one port to another.
const WAYS: &[&str] = &[
    "curl -sS -m 9 http://127.0.0.1:<other>/",
    "curl -sS -m 9 http://localhost:<other>/",
    "curl -sS -m 9 http://0.0.0.0:<other>/",
    "curl -sS -m 9 -x ${PORTCULLIS_PROXY:-''} http://127.0.0.1:<other>/",
    "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); @a = map { pack_sockaddr_in($_, inet_aton(q(127.0.0.1))) } \
     (<open>, <other>); for (1..40) { socket(S, AF_INET, SOCK_STREAM, 0); connect(S, $a[$_ % 2]) or next; \
     syswrite S, qq(GET / HTTP/1.0\\r\\nHost: 127.0.0.1:<other>\\r\\n\\r\\n); @l = <S>; \
     print @l if (unpack_sockaddr_in(getpeername S))[0] == <other> }'",
];

/// Ways that there are inside only: the addresses that stand for this machine's loopback.
const INSIDE: &[&str] = &[
    "curl -sS -m 9 http://198.19.255.253:<other>/",
    "curl -sS -m 9 -H 'Host: 127.0.0.1:<open>' http://198.19.255.253:<other>/",
    "curl -sS -m 9 'http://[::ffff:198.19.255.253]:<other>/'",
    "curl -sS -m 9 http://198.19.255.254:<other>/",
    "curl -sS -m 9 --noproxy '' -x $PORTCULLIS_PROXY http://198.19.255.253:<other>/",
    "curl -sS -m 9 --noproxy '' -p -x $PORTCULLIS_PROXY http://localhost:<other>/",
    "curl -sS -m 9 --noproxy '' -p -x $PORTCULLIS_PROXY http://127.0.0.2:<other>/",
    "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); send(S, qq(GET / HTTP/1.0\\r\\n\\r\\n), 0x20000000, \
     pack_sockaddr_in(<other>, inet_aton(q(198.19.255.253)))); print <S>'",
];

fn one_that_was_allowed_leads_to_no_other(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (open, other) = (Service::start()?, Service::start()?);
    let script =
        |way: &str| way.replace("<open>", &open.0.to_string()).replace("<other>", &other.0.to_string());
    for way in WAYS {
        let before = other.connections();
        let mut command = scene.user().command("/bin/sh".as_ref());
        Finished::run(command.args(["-c", &script(way)]))?;
        ensure!(other.connections() > before, "the control: {way}");
    }
    let before = other.connections();
    for way in WAYS.iter().chain(INSIDE) {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let first = format!("curl -sS http://127.0.0.1:{}/ && {}", open.0, script(way));
        let id = host.begin(&first, &json!({ "PATH": "/usr/bin:/bin" }))?;
        let ended = answer_all(&mut host, id, open.0)?;
        let output = host.output_of(u32::try_from(id)?)?;
        ensure!(output.contains("REACHED"), "the allowed one, {way}: {ended} {output}");
        ensure!(other.connections() == before, "{way}: {ended} {output}");
    }
    Ok(())
}

/// Starts processes whose connections never come about: the option 21 (IP_MINTTL) drops everything that is not from a
/// neighbour. They are killed while they wait.
fn hanging(port: u16) -> String {
    format!(
        "perl -MSocket -e 'for (1..150) {{ if ($p = fork) {{ push @p, $p; next }} socket(S, AF_INET, SOCK_STREAM, 0); \
         setsockopt(S, 0, 21, pack(q(i), 255)); setsockopt(S, 6, 7, pack(q(i), 127)); \
         connect(S, pack_sockaddr_in({port}, inet_aton(q(127.0.0.1)))) and print qq(CONNECTED\\n); exit }} \
         sleep 2; kill KILL => @p; print qq(did\\n)'"
    )
}

fn count(host: &Serve, what: &str) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{}/{what}", host.process_id()))?.count())
}

fn what_never_connects_holds_nothing_of_the_host(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let service = Service::start()?;
    let mut control = scene.user().command("/bin/sh".as_ref());
    let control = Finished::run(control.args(["-c", &hanging(service.0)]))?;
    ensure!(control.stdout == "did\n", "the control: they do not connect anywhere: {control:?}");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let get = format!("curl -sS http://127.0.0.1:{}/", service.0);
    let id = host.begin(&get, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    let options = question.pointer("/params/options").and_then(Value::as_array);
    let session =
        options.and_then(|all| all.iter().position(|option| option.get("key") == Some(&json!("s"))));
    host.answer(&question, &json!(session))?;
    ensure!(host.finish(id)?.1.contains("REACHED"));
    let before = [count(&host, "task")?, count(&host, "fd")?];
    for round in 0..3 {
        let (result, output) = host.run(&hanging(service.0))?;
        ensure!(output.ends_with("did\n") && !output.contains("CONNECTED"), "{round}: {result} {output}");
        let threads = count(&host, "task")?;
        ensure!(threads < before[0] + 60, "{round}: {threads} threads, and {before:?} before");
    }
    Deadline::start().until("the end of what hangs", || {
        let now = [count(&host, "task")?, count(&host, "fd")?];
        Ok((now[0] <= before[0] + 2 && now[1] <= before[1] + 8).then_some(()))
    })?;
    let (_, output) = host.run(&get)?;
    ensure!(output.contains("REACHED"), "{output}");
    Ok(())
}

/// They wait for an answer that never comes, with as many descriptors as the host may have.
fn thousands_that_wait_take_a_share_of_the_host(user: User) -> Result<()> {
    let scene = Scene::new(user)?.through("prlimit", &["--nofile=1024:1024"]);
    let service = Service::start()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let wait = hanging(service.0)
        .replace("1..150", "1..1200")
        .replace("setsockopt(S, 0, 21", "0 && setsockopt(S, 0, 21");
    let id = host.begin(&wait.replace("sleep 2", "sleep 6"), &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = host.question()?;
    // The host still has descriptors for everything else.
    scene.write(&scene.project().join("file"), "text\n")?;
    let path = scene.project().join("file");
    for _ in 0..20 {
        let read = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        host.succeed("file/open", &read)?;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let taken = count(&host, "fd")?;
    ensure!(taken < 512, "{taken} descriptors");
    host.answer(&question, &json!("refuse"))?;
    let (result, output) = host.finish(id)?;
    ensure!(output.contains("did") && service.connections() == 0, "{result} {output}");
    Ok(())
}
