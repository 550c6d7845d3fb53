//! The memory of every process of a command, searched from outside.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User, World, processes};

use super::{SECRET, before, folders, run};
use crate::network::PROGRAM;

as_each_user!(nothing_of_the_keys_is_in_the_memory_of_a_command);

const SEARCH: &str = include_str!("search_memory.py");

/// Clients that have used the credential and still run: a shell, Python on an open connection, Node in both versions of
/// HTTP, and git.
const CLIENTS: &str = "\
    cp $SSL_CERT_FILE bundle.pem\n\
    python3 -c 'import http.client, os, ssl, time\n\
    there = http.client.HTTPSConnection(\"allowed.test\", 9443)\n\
    there.request(\"GET\", \"/echo\", headers={\"Authorization\": \"Bearer \" + os.environ[\"FORGE_TOKEN\"]})\n\
    said = there.getresponse().read()\n\
    open(\"python-is-there\", \"wb\").write(said)\n\
    while not os.path.exists(\"stop\"): time.sleep(0.1)' &\n\
    node -e 'fetch(process.env.B + \"/echo\", { headers: { authorization: \"Bearer \" + process.env.FORGE_TOKEN } })\
     .then(a => a.text()).then(text => { require(\"fs\").writeFileSync(\"node-is-there\", text); \
     setInterval(() => require(\"fs\").existsSync(\"stop\") && process.exit(), 100) })' &\n\
    node -e 'const c = require(\"http2\").connect(process.env.B);\n\
    const r = c.request({ \":path\": \"/echo\", authorization: \"Bearer \" + process.env.FORGE_TOKEN });\n\
    let text = \"\"; r.on(\"data\", (piece) => text += piece);\n\
    r.on(\"end\", () => { require(\"fs\").writeFileSync(\"http2-is-there\", text); \
     setInterval(() => require(\"fs\").existsSync(\"stop\") && process.exit(), 100) })' &\n\
    git clone -q $B/git/repo.git cloned && touch git-is-there\n\
    while [ ! -e stop ]; do sleep 0.1; done; wait\n";

/// What the search found.
#[derive(Debug)]
struct Found {
    secrets_in_host: usize,
    keys_in_host: usize,
    in_others: usize,
    others: usize,
}

/// Searches a host and all that it has started.
fn search(scene: &Scene, host: u32) -> Result<Found> {
    let mut python = Command::new("python3");
    let bundle = scene.project().join("bundle.pem");
    python.args(["-c", SEARCH, &host.to_string()]).arg(bundle).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn()?;
    python.stdin.take().context("a pipe")?.write_all(SECRET.as_bytes())?;
    let output = python.wait_with_output()?;
    ensure!(output.status.success(), "the search failed");
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let [secrets_in_host, keys_in_host, in_others, others] = numbers.as_slice() else {
        anyhow::bail!("the search printed {text}")
    };
    Ok(Found {
        secrets_in_host: *secrets_in_host,
        keys_in_host: *keys_in_host,
        in_others: *in_others,
        others: *others,
    })
}

fn nothing_of_the_keys_is_in_the_memory_of_a_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?) + CLIENTS;
    let stop = scene.project().join("stop");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&world, &scene, &script));
        let found = while_they_run(&scene);
        scene.write(&stop, "")?;
        let finished = running.join().ok().context("the run panicked")??;
        let found = found.with_context(|| format!("{finished:#?}"))?;
        // The host has both, so the search can find them.
        ensure!(found.secrets_in_host > 0 && found.keys_in_host > 0, "{found:?}");
        ensure!(found.others >= 5 && found.in_others == 0, "{found:?}");
        Ok(())
    })
}

fn while_they_run(scene: &Scene) -> Result<Found> {
    for name in ["python-is-there", "node-is-there", "http2-is-there", "git-is-there"] {
        Deadline::start().until(name, || Ok(scene.project().join(name).exists().then_some(())))?;
    }
    let is_host = |one: &processes::Process| one.command_line.contains("run --ask deny --settings");
    let mut hosts: Vec<u32> =
        processes::of_scene(scene)?.into_iter().filter(is_host).map(|one| one.id).collect();
    // The programs that start it have the same words on their command line, and so may what it has forked.
    hosts.sort_unstable();
    let host = hosts.into_iter().find(|id| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == "portcullis")
    });
    let host = host.context("no host runs")?;
    // A dump would lie where commands can read it.
    let limits = std::fs::read_to_string(format!("/proc/{host}/limits"))?;
    let dumps = limits.lines().find(|line| line.starts_with("Max core file size")).context("a limit")?;
    ensure!(dumps.split_whitespace().nth(4) == Some("0"), "{dumps}");
    search(scene, host)
}
