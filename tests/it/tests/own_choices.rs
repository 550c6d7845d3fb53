//! Settings that give what other sandboxes do where that is not dangerous: what commands see elsewhere, hosts in neither
//! list, tools by their names, ports of answers, and keys of sandbox-runtime.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, expecting, say};
use portcullis_it::{Finished, Interface, Launch, PiVersion, Scene, Serve, User, World, script};
use serde_json::{Value, json};

use super::network::PROGRAM;

as_each_user!(
    other_directories_are_closed_in_one_word,
    programs_and_the_codebase_and_that_is_it,
    every_host_but_those_of_this_machine_and_its_networks,
    every_host_behind_a_proxy,
    only_where_nobody_can_be_asked,
    no_project_opens_anything,
    an_answer_for_every_port,
    what_no_proxy_reads_is_refused,
);

on_each_pi!(a_tool_is_allowed_by_its_name);

const ASK: i32 = 10;

fn run(scene: &Scene, settings: &Value, script: &str) -> Result<Finished> {
    let file = scene.at("settings.json");
    scene.write(&file, &settings.to_string())?;
    let file = file.display().to_string();
    scene.portcullis(&["run", "--ask", "deny", "--settings", &file, "--", "bash", "-c", script])
}

fn files(elsewhere: &str) -> Value {
    json!({ "filesystem": { "allowRead": ["."], "allowWrite": ["."], "elsewhere": elsewhere } })
}

/// The control is the same command with the default.
fn other_directories_are_closed_in_one_word(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "NOTES")?;
    scene.write(&scene.project().join("own"), "OWN")?;
    let script = format!(
        "cat own; head -1 /etc/passwd; cat '{0}'; cat '/proc/self/root{0}'; ls -d /usr/bin; echo t > /tmp/t && cat /tmp/t; \
         ls /var/lib /srv /mnt /home; cd '{1}'",
        notes.display(),
        scene.outside().display(),
    );
    let open = run(&scene, &files("open"), &script)?;
    ensure!(open.stdout.matches("NOTES").count() == 2, "control: {open:#?}");
    let closed = run(&scene, &files("closed"), &script)?;
    for part in ["OWN", "root:", "/usr/bin", "t\n"] {
        ensure!(closed.stdout.contains(part), "no `{part}`: {closed:#?}");
    }
    ensure!(!closed.stdout.contains("NOTES") && !closed.stdout.contains("dpkg"), "{closed:#?}");
    // Tools ask there, as they do everywhere outside of the project.
    let file = scene.at("settings.json").display().to_string();
    let words = ["check", "--settings", &file, "read", notes.to_str().context("text")?];
    scene.portcullis(&words)?.ended_with(ASK)?;
    let shown = scene.portcullis(&["config", "show", "--settings", &file])?.ended_with(0)?;
    ensure!(shown.stdout.contains("filesystem.elsewhere") && shown.stdout.contains("closed"), "{shown:#?}");
    Ok(())
}

/// "The agent reads /nix (tools) and the codebase, writes to workspace/ and .pi/, and that's it."
fn programs_and_the_codebase_and_that_is_it(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "NOTES")?;
    for (name, text) in [("src/main", "CODE"), ("workspace/a", "W"), (".env", "SECRET"), (".pi/notes", "PI")]
    {
        scene.write(&scene.project().join(name), text)?;
    }
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [], "unlistedHosts": "allowUnattended" },
        "filesystem": {
            "denyRead": ["~/.ssh", "~/.aws", "~/.gnupg"], "allowRead": ["."], "allowWrite": ["workspace", ".pi"],
            "denyWrite": ["config.toml"], "elsewhere": "programs",
        },
        "policies": [{ "use": "workspace" }, { "use": "bosun" }],
    });
    let script = format!(
        "cat src/main; cat .env '{}' /etc/passwd; echo x > workspace/b && echo y > .pi/notes && cat workspace/b .pi/notes; \
         echo z > src/b; cat src/b; bash -c 'echo child > src/c; cat src/c'",
        scene.outside().join("notes").display()
    );
    let told = run(&scene, &settings, &script)?;
    for part in ["CODE", "x\n", "y\n"] {
        ensure!(told.stdout.contains(part), "no `{part}`: {told:#?}");
    }
    for part in ["SECRET", "NOTES", "root:", "z\n", "child\n"] {
        ensure!(!told.stdout.contains(part), "`{part}`: {told:#?}");
    }
    Ok(())
}

/// Names that lead to networks of this machine, and their addresses.
const CLOSED: [&str; 6] =
    ["private.test", "metadata.test", "loopback.test", "own.test", "10.0.0.1", "169.254.169.254"];

fn every_host_but_those_of_this_machine_and_its_networks(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let one = |host: &str| format!("echo '<{host}>'; curl -sS -m 8 http://{host}/ 2>&1; echo; ");
    let script: String = std::iter::once("evil.test").chain(CLOSED).map(one).collect();
    let reached = |output: &str, host: &str| {
        let after = output.split_once(&format!("<{host}>")).map_or("", |(_, rest)| rest);
        after.split('<').next().is_some_and(|answer| answer.contains("REACHED"))
    };
    let open =
        world.run(r#"{ "allowedDomains": [], "deniedDomains": [], "unlistedHosts": "allow" }"#, &script)?;
    ensure!(reached(&open.stdout, "evil.test"), "{open:#?}");
    for host in CLOSED {
        ensure!(!reached(&open.stdout, host), "{host}: {open:#?}");
    }
    let log = scene.portcullis(&["audit", "tail"])?.ended_with(0)?;
    ensure!(log.stdout.contains("evil.test"), "the log has the name: {log:#?}");
    let asked = world.run(r#"{ "allowedDomains": [], "deniedDomains": [] }"#, &script)?;
    ensure!(!reached(&asked.stdout, "evil.test"), "without the setting it is a question: {asked:#?}");
    let control = world.control(&script)?;
    for host in ["evil.test", "private.test", "10.0.0.1", "169.254.169.254"] {
        ensure!(reached(&control.stdout, host), "control: {host}: {control:#?}");
    }
    // What is denied stays so.
    for network in [
        r#"{ "allowedDomains": [], "deniedDomains": ["evil.test"], "unlistedHosts": "allow" }"#,
        r#"{ "allowedDomains": [], "deniedDomains": [], "strictAllowlist": true, "unlistedHosts": "allow" }"#,
    ] {
        let denied = world.run(network, &one("evil.test"))?;
        ensure!(!reached(&denied.stdout, "evil.test"), "{network}: {denied:#?}");
    }
    Ok(())
}

/// A name that only the proxy can resolve may lead anywhere. The control allows it by its name.
fn every_host_behind_a_proxy(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let hosts = ["sub.allowed.test", "behind.test", "private.test", "metadata.test"];
    let script: String =
        hosts.map(|host| format!("echo '<{host}>'; curl -sS -m 8 http://{host}/ 2>&1; echo; ")).concat();
    for (allowed, expected) in
        [("", [true, false, false, false]), (r#""behind.test""#, [true, true, false, false])]
    {
        let network = format!(
            r#"{{ "allowedDomains": [{allowed}], "deniedDomains": [], "unlistedHosts": "allow",
                  "parentProxy": {{ "http": "http://proxy.test:3128" }} }}"#
        );
        let told = world.run(&network, &script)?;
        let reached = hosts.map(|host| {
            let after = told.stdout.split_once(&format!("<{host}>")).map_or("", |(_, rest)| rest);
            after.split('<').next().is_some_and(|answer| answer.contains("REACHED"))
        });
        ensure!(reached == expected, "{allowed}: {reached:?}: {told:#?}");
        let seen = world.seen()?;
        ensure!(seen.contains("PROXY sub.allowed.test:80"), "{seen}");
        ensure!(!seen.contains("PROXY private") && !seen.contains("PROXY metadata"), "{seen}");
    }
    Ok(())
}

fn only_where_nobody_can_be_asked(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    let with = |word: &str| json!({ "network": { "unlistedHosts": word }, "filesystem": {} }).to_string();
    for (word, code) in [("ask", ASK), ("allowUnattended", ASK), ("allow", 0)] {
        scene.write(&file, &with(word))?;
        // `check` decides as in pi's terminal.
        scene.portcullis(&["check", "connect", "any.test:443"])?.ended_with(code)?;
        for private in ["10.1.2.3:80", "169.254.169.254:80", "127.0.0.1:5432", "localhost:5432"] {
            let told = scene.portcullis(&["check", "connect", private])?;
            ensure!(told.code() != 0, "{word}: {private}: {told:#?}");
        }
    }
    let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("reach every host on the internet without a question"), "{shown:#?}");
    Ok(())
}

/// An agent may have written these files.
fn no_project_opens_anything(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for (key, value) in [
        ("network", json!({ "unlistedHosts": "allow" })),
        ("filesystem", json!({ "elsewhere": "open" })),
        ("tools", json!({ "allow": ["todo"] })),
        ("ask", json!({ "ports": "every" })),
    ] {
        scene.write(&scene.project().join(".pi/portcullis.json"), &json!({ key: value }).to_string())?;
        let told = scene.portcullis(&["check", "connect", "any.test:443"])?;
        ensure!(told.code() == 1 && told.stderr.contains("portcullis.json"), "{key}: {told:#?}");
    }
    Ok(())
}

fn an_answer_for_every_port(user: User) -> Result<()> {
    for (ports, code) in [("asked", ASK), ("every", 0)] {
        let scene = Scene::new(user)?;
        let settings =
            json!({ "network": {}, "filesystem": { "allowRead": ["."] }, "ask": { "ports": ports } });
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = host.begin("curl -sS http://host.test:8080/", &json!({ "PATH": "/usr/bin:/bin" }))?;
        let question = host.question()?;
        let covers = if ports == "every" { "host.test at every port" } else { "host.test:8080" };
        ensure!(question.to_string().contains(covers), "{question:#}");
        let options = question.pointer("/params/options").and_then(Value::as_array).context("options")?;
        let is_for_all = |option: &Value| option.get("key") == Some(&json!("A"));
        let all = options.iter().position(is_for_all).context("an answer for all projects")?;
        host.answer(&question, &json!(all))?;
        host.finish(id)?;
        scene.portcullis(&["check", "connect", "host.test:8080"])?.ended_with(0)?;
        scene.portcullis(&["check", "connect", "host.test:22"])?.ended_with(code)?;
    }
    Ok(())
}

/// Keys of sandbox-runtime whose neglect would allow too much: their hosts are refused, with a warning.
fn what_no_proxy_reads_is_refused(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    let connect = |host: &str| scene.portcullis(&["check", "connect", host]);
    for (key, value, closes_all) in [
        ("mitmProxy", json!({ "socketPath": "/run/m", "domains": ["read.test"] }), false),
        ("stripResponseHeaders", json!(["set-cookie"]), true),
        ("refuseOpaqueTunnels", json!(true), true),
    ] {
        let settings = json!({ "network": { "allowedDomains": ["*.test"], key: value }, "filesystem": {} });
        let settings = settings.to_string().replace("*.test", "read.test\",\"other.test");
        scene.write(&file, &settings)?;
        connect("read.test:443")?.ended_with(20)?;
        connect("other.test:443")?.ended_with(if closes_all { 20 } else { 0 })?;
        let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?;
        let words =
            if closes_all { "commands reach no host" } else { "the hosts of `mitmProxy` are refused" };
        ensure!(shown.stdout.contains(words), "{key}: {shown:#?}");
    }
    let others = json!({
        "network": { "tlsTerminate": { "maxTunnels": 5 } }, "filesystem": { "disabled": true },
        "credentials": { "files": [{ "path": "token", "mode": "mask" }] },
    });
    scene.write(&file, &others.to_string())?;
    scene.write(&scene.project().join("token"), "TOKEN")?;
    scene.portcullis(&["config", "validate"])?.ended_with(0)?;
    scene.portcullis(&["check", "read", "token"])?.ended_with(20)?;
    scene.portcullis(&["check", "write", "/etc/passwd"])?.ended_with(ASK)?;
    Ok(())
}

/// A tool of another extension.
const EXTENSION: &str = r#"
import { writeFileSync } from "node:fs";
export default function (pi) {
  pi.registerTool({
    name: "todo", label: "todo", description: "Notes a text",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    async execute(_id, { text }) {
      writeFileSync("noted", text);
      return { content: [{ type: "text", text: `noted ${text}` }], details: {} };
    },
  });
}
"#;

fn a_tool_is_allowed_by_its_name(version: PiVersion, user: User) -> Result<()> {
    for (tools, expected) in [(json!([]), "nobody|Refused"), (json!(["todo"]), "noted milk")] {
        let scene = Scene::new(user)?;
        scene.write(&scene.at("other/todo.ts"), EXTENSION)?;
        let settings =
            json!({ "network": {}, "filesystem": { "allowRead": ["."] }, "tools": { "allow": tools } });
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
        let script =
            script([calls([call("todo", &json!({ "text": "milk" }))]), expecting(expected, say("done"))]);
        let launch = Launch::guarded(&scene, version, &script)?;
        launch.with(["-e".into(), scene.at("other/todo.ts").into_os_string()]).print("go")?;
        let is_allowed = tools != json!([]);
        ensure!(scene.project().join("noted").exists() == is_allowed, "{tools}");
        if is_allowed {
            let listed = scene.portcullis(&["grants", "list"])?.ended_with(0)?;
            ensure!(listed.stdout.contains("todo  ~/.pi/agent/sandbox/default.json"), "{listed:#?}");
            let text = fs::read_to_string(scene.home().join(".pi/agent/sandbox/default.json"))?;
            ensure!(text == format!("{settings}"), "{text}");
        }
    }
    Ok(())
}
