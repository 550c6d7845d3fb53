//! Services of this machine: a connection to a loopback port where a process listens outside, but none inside, is a
//! question.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    a_service_of_this_machine_is_a_question,
    a_kept_answer_matches_in_the_next_session,
    programs_inside_come_first,
    where_nobody_listens_there_is_no_question,
    without_an_interface_the_refusal_is_said,
);

/// A server on this machine's loopback, which counts its connections.
struct Service {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Service {
    fn start(address: &str) -> Result<Self> {
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        // It ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut stream = stream;
                let _request = stream.read(&mut [0; 1024]);
                let _reply = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nREACHED\n");
            }
        });
        Ok(Self { port, connections })
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn script(&self, template: &str) -> String {
        template.replace("PORT", &self.port.to_string())
    }
}

const CURL: &str = "curl -sS http://127.0.0.1:PORT/";

/// Programs that connect in different ways: blocking, not blocking, by name, through a socket of IPv6.
const CLIENTS: &[&str] = &[
    CURL,
    "curl -sS http://localhost:PORT/",
    "curl -sS http://0.0.0.0:PORT/",
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT && printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3 && cat <&3'",
    "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => q(127.0.0.1:PORT), Timeout => 9) or die qq($@); \
     print $s qq(GET / HTTP/1.0\\r\\n\\r\\n); print <$s>'",
    "perl -MSocket=:all -e 'socket(S, AF_INET6, SOCK_STREAM, 0) or die; \
     connect(S, pack_sockaddr_in6(PORT, inet_pton(AF_INET6, q(::ffff:127.0.0.1)))) or die $!; \
     syswrite S, qq(GET / HTTP/1.0\\r\\n\\r\\n); print <S>'",
];

fn begin(host: &mut Serve, script: &str) -> Result<u64> {
    host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))
}

fn subject(question: &Value) -> &str {
    question.pointer("/params/subject").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the index of the option with this key.
fn choice(question: &Value, key: &str) -> Value {
    let options = question.pointer("/params/options").and_then(Value::as_array);
    let at = options.and_then(|all| all.iter().position(|option| option.get("key") == Some(&json!(key))));
    json!(at)
}

fn a_service_of_this_machine_is_a_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let service = Service::start("127.0.0.1:0")?;
    for client in CLIENTS {
        let script = service.script(client);
        let mut command = scene.user().command("/bin/sh".as_ref());
        let control = Finished::run(command.args(["-c", &script]))?;
        ensure!(control.stdout.contains("REACHED"), "the control: {client}: {control:?}");
    }
    let expected = format!("127.0.0.1:{}", service.port);
    for client in CLIENTS {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let before = service.connections();
        // A "no" is for the command.
        let id = begin(&mut host, &service.script(&format!("{client}; {client}; true")))?;
        let question = host.question()?;
        ensure!(subject(&question) == expected, "{client}: {question}");
        host.answer(&question, &json!("refuse"))?;
        let (result, output) = host.finish(id)?;
        ensure!(service.connections() == before, "{client}: {output}");
        ensure!(!output.contains("REACHED"), "{client}: {output}");
        ensure!(result.to_string().contains("you said no"), "{client}: {result}");
        // A yes is for the command, too.
        for _ in 0..2 {
            let id = begin(&mut host, &service.script(&format!("{client}; {client}")))?;
            let question = host.question()?;
            host.answer(&question, &choice(&question, "o"))?;
            let (_, output) = host.finish(id)?;
            ensure!(output.matches("REACHED").count() == 2, "{client}: {output}");
        }
        ensure!(host.close()?.success());
    }
    Ok(())
}

fn a_kept_answer_matches_in_the_next_session(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let service = Service::start("127.0.0.1:0")?;
    for key in ["s", "P"] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = begin(&mut host, &service.script(CURL))?;
        let question = host.question()?;
        host.answer(&question, &choice(&question, key))?;
        ensure!(host.finish(id)?.1.contains("REACHED"), "{key}");
        let (_, output) = host.run(&service.script(CURL))?;
        ensure!(output.contains("REACHED"), "{key}: {output}");
        ensure!(host.close()?.success());
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (_, output) = host.run(&service.script(CURL))?;
    ensure!(output.contains("REACHED"), "{output}");
    // The answer was for this port.
    let other = Service::start("127.0.0.1:0")?;
    let id = begin(&mut host, &other.script(CURL))?;
    let question = host.question()?;
    host.answer(&question, &json!("refuse"))?;
    host.finish(id)?;
    ensure!(other.connections() == 0);
    Ok(())
}

/// A server that a command starts is reached without a question, also on a port that this machine uses.
fn programs_inside_come_first(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let service = Service::start("127.0.0.1:0")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let server = "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(LocalAddr => q(127.0.0.1:PORT), Listen => 9, \
        ReuseAddr => 1) or die; open(F, q(>), q(ready)); close F; \
        while ($c = $l->accept) { sysread $c, $x, 999; print $c qq(HTTP/1.0 200 OK\\r\\n\\r\\nINSIDE\\n); close $c }'";
    let script = format!("{server} & until [ -e ready ]; do sleep 0.1; done; {CURL}; kill %1");
    let (_, output) = host.run(&service.script(&script))?;
    ensure!(output.contains("INSIDE") && service.connections() == 0, "{output}");
    Ok(())
}

fn where_nobody_listens_there_is_no_question(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (_, output) = host.run(&CURL.replace("PORT", &port.to_string()))?;
    ensure!(output.contains("curl: (7)") && !output.contains("ermission denied"), "{output}");
    // A server on an address of this machine that is not its loopback is no service on its loopback.
    let service = Service::start("127.0.0.2:0")?;
    let (_, output) = host.run(&service.script(CURL))?;
    ensure!(output.contains("curl: (7)") && service.connections() == 0, "{output}");
    Ok(())
}

fn without_an_interface_the_refusal_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let service = Service::start("127.0.0.1:0")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (result, output) = host.run(&service.script(CURL))?;
    ensure!(service.connections() == 0 && !output.contains("REACHED"), "{output}");
    let told = result.to_string();
    ensure!(told.contains(&format!("127.0.0.1:{}", service.port)) && told.contains("rule `"), "{told}");
    Ok(())
}
