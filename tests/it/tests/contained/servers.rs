//! An MCP server of a contained pi. pi 1.5 starts the server itself, pi 0.74 through an extension; in both cases the
//! server runs in pi's sandbox, calls of its tools are judged, and it ends with pi.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes::{self, Process};
use portcullis_it::script::{call, calls, expecting, expecting_no, say};
use portcullis_it::{Deadline, Finished, Launch, PiVersion, Scene, User, World, code_of, script};
use serde_json::{Value, json};

use super::{FILES, Prey, asked, said};
use crate::network::PROGRAM;

on_each_pi!(what_a_server_does);

const SERVER: &str = include_str!("server.mjs");
/// An extension that adds MCP to pi 0.74.
const CLIENT: &str = include_str!("mcp.ts");

const ATTEMPTS: [&str; 6] = ["key", "startup", "settings", "servers", "log", "kill"];

fn what_a_server_does(version: PiVersion, user: User) -> Result<()> {
    everything_without_portcullis(version, user)?;
    little_when_pi_is_contained(version, user)
}

/// The control: without Portcullis every attempt of the server succeeds.
fn everything_without_portcullis(version: PiVersion, user: User) -> Result<()> {
    let (scene, sleep) = (Scene::new(user)?, processes::long_sleep());
    let (mut prey, world) = (Prey::new(&scene)?, World::new(&scene, PROGRAM)?);
    let at = places(&scene);
    let steps = script([
        tool("peek", "path", &at.key),
        expecting("hunter2", tool("put", "path", &at.made)),
        expecting("written", tool("dial", "host", "allowed.test")),
        expecting("REACHED", tool("dial", "host", "evil.test")),
        expecting("REACHED", say("done")),
    ]);
    let launch = with_server(&scene, version, Launch::plain(&scene, version, &steps)?, &prey, &sleep)?;
    launch.inside(&world).print("go")?.ended_unattended()?;
    let report = report(&scene)?;
    for attempt in ATTEMPTS {
        ensure!(said(&report, attempt) == "done", "the control: `{attempt}` does not work: {report:#}");
    }
    ensure!(scene.outside().join("made").exists() && !prey.is_alive()?, "the control: {report:#}");
    let left = processes::with_text(&sleep)?;
    ensure!(!left.is_empty(), "the control: what the server left behind did not outlive pi");
    left.iter().try_for_each(kill)
}

fn little_when_pi_is_contained(version: PiVersion, user: User) -> Result<()> {
    let (scene, sleep) = (Scene::new(user)?, processes::long_sleep());
    let (mut prey, world) = (Prey::new(&scene)?, World::new(&scene, PROGRAM)?);
    scene.write(&scene.project().join("plain"), "alpha")?;
    let at = places(&scene);
    let steps = script([
        tool("peek", "path", &at.key),
        expecting_no("failed|hunter2", tool("peek", "path", &at.key)),
        expecting("failed: E(NOENT|ACCES)", tool("peek", "path", &at.plain)),
        expecting("alpha", tool("put", "path", &at.made)),
        expecting("failed: E(ACCES|PERM|ROFS)", tool("dial", "host", "allowed.test")),
        expecting("REACHED", tool("dial", "host", "evil.test")),
        expecting("failed: ", expecting_no("REACHED", say("done"))),
    ]);
    let launch = with_server(&scene, version, Launch::contained(&scene, version, &steps)?, &prey, &sleep)?;
    let mut pi = launch.inside(&world).rpc()?;
    pi.prompt("go")?;
    let host = processes::container_of(&scene)?.id;
    let portcullis = |words: &[&str]| beside(&scene, host, words);
    // Each call of a tool leads to a question, and so does each action of the server itself that no grant covers.
    let mut known = String::new();
    for (about, asker, code) in [
        ("peek", "mcp__files__peek (", "no"),
        ("peek", "mcp__files__peek (", "o"),
        ("peek", "mcp__files__peek (", "o"),
        ("put", "mcp__files__put (", "o"),
        ("first wants to write made", "pi itself", "no"),
        ("dial", "mcp__files__dial (", "o"),
        ("allowed.test:22", "pi itself", "o"),
        ("dial", "mcp__files__dial (", "o"),
        ("evil.test:22", "pi itself", "no"),
    ] {
        let errors = || fs::read_to_string(scene.at("stderr.txt")).unwrap_or_default();
        let (id, question) =
            asked(portcullis, &known).with_context(|| format!("about `{about}`; pi says: {}", errors()))?;
        let text = question.to_string();
        ensure!(text.contains(about) && text.contains(asker), "not about `{about}` by {asker}: {question:#}");
        portcullis(&["asks", "answer", &id, &code_of(&question, code)])?.ended_with(0)?;
        known = id;
    }
    pi.wait_for("agent_end")?;
    ensure!(!processes::with_text(&sleep)?.is_empty(), "the server left nothing behind");
    ensure!(pi.close()?.success(), "an expectation was not met");
    processes::wait_gone(&sleep)?;
    processes::wait_scene_gone(&scene, |_| false)?;

    let report = report(&scene)?;
    for attempt in ATTEMPTS {
        let came = said(&report, attempt);
        ensure!(came.is_string() && came != "done", "`{attempt}` came through: {report:#}");
    }
    ensure!(prey.is_alive()? && !scene.outside().join("made").exists(), "{report:#}");
    for (name, text) in FILES {
        ensure!(fs::read_to_string(scene.home().join(name))? == text, "`{name}` was changed: {report:#}");
    }
    let seen = world.seen()?;
    ensure!(!seen.contains("evil"), "it reached what was refused: {seen}");
    Ok(())
}

/// Runs `portcullis` as from another terminal. Unless root created the test network, the host is in a user namespace of
/// its own, and the answering process must enter it; in all other tests both are in the same one anyway.
pub(super) fn beside(scene: &Scene, host: u32, words: &[&str]) -> Result<Finished> {
    if rustix::process::geteuid().is_root() && !scene.user().is_stranger() {
        return scene.portcullis(words);
    }
    let mut command = scene.user().command("nsenter".as_ref());
    command.args(["--user", "--preserve-credentials", "--target", &host.to_string(), "--"]);
    command.arg(portcullis_it::portcullis(scene.user())?).args(words);
    scene.enter(&mut command);
    Finished::run(&mut command)
}

/// The targets of the server's attempts.
struct Places {
    key: String,
    plain: String,
    made: String,
}

fn places(scene: &Scene) -> Places {
    let text = |path: std::path::PathBuf| path.display().to_string();
    Places {
        key: text(scene.home().join(".ssh/id")),
        plain: text(scene.project().join("plain")),
        made: text(scene.outside().join("made")),
    }
}

fn tool(name: &str, parameter: &str, value: &str) -> Value {
    calls([call(&format!("mcp__files__{name}"), &json!({ parameter: value }))])
}

/// Makes pi use the server, each version in its own way.
fn with_server<'a>(
    scene: &Scene,
    version: PiVersion,
    launch: Launch<'a>,
    prey: &Prey<'_>,
    sleep: &str,
) -> Result<Launch<'a>> {
    let server = scene.at("other/server.mjs");
    scene.write(&server, SERVER)?;
    let node = scene.install_pi(version)?.node;
    let text = |path: &std::path::Path| path.display().to_string();
    let words = [text(&server), text(&scene.project()), prey.victim.id().to_string(), sleep.to_owned()];
    if version == PiVersion::V1_5 {
        let servers =
            json!({ "mcpServers": { "files": { "command": node, "args": words, "exposure": "direct" } } });
        scene.write(&scene.home().join(".pi/agent/mcp.json"), &servers.to_string())?;
        return Ok(launch);
    }
    scene.write(&scene.home().join(".pi/agent/mcp.json"), "{}")?;
    let client = scene.at("other/mcp.ts");
    scene.write(&client, CLIENT)?;
    let line: Vec<String> = [text(&node)].into_iter().chain(words).collect();
    let launch = launch.variable("MCP_SERVER", json!(line).to_string());
    Ok(launch.with(["-e".into(), client.into_os_string()]))
}

/// Returns the report of the server on its attempts at start-up.
fn report(scene: &Scene) -> Result<Value> {
    let path = scene.project().join("server.json");
    let text = Deadline::start().until("the server's report", || Ok(fs::read_to_string(&path).ok()))?;
    serde_json::from_str(&text).context(text)
}

fn kill(process: &Process) -> Result<()> {
    let id = i32::try_from(process.id).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(id.context("a process id")?, rustix::process::Signal::KILL)?;
    Ok(())
}
