//! Tools that pi or another extension executes: those of extensions and MCP servers, codemode, PowerShell. Policies see
//! their names, providers and input, can rewrite the input where the manifest declares it, and see their results.

use std::fs;

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, expecting_no, read, say};
use portcullis_it::{Finished, Launch, PiVersion, Scene, User, guest, script};
use serde_json::{Value, json};

on_each_pi!(
    tools_of_other_extensions,
    rewriting_has_to_be_declared,
    output_is_redacted_and_withheld,
    a_crash_on_the_way_of_the_output_withholds,
    unknown_tools_are_a_question,
);

as_each_user!(mcp_servers, codemode, tool_search, powershell);

/// A tool that returns its arguments and writes a file.
const EXTENSION: &str = r#"
import { writeFileSync } from "node:fs";
export default function (pi) {
  pi.registerTool({
    name: "repeat", label: "repeat", description: "Repeats a text",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    async execute(_id, { text }) {
      writeFileSync("called-with", text);
      return { content: [{ type: "text", text: `it was called with ${text}` }], details: {} };
    },
  });
}
"#;

/// An MCP server that reads any file with the rights of the user.
const SERVER: &str = r#"
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const tool = { name: "peek", description: "Reads a file", inputSchema: { type: "object", properties: { path: { type: "string" } } } };
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } } });
  } else if (method === "tools/list") send({ id, result: { tools: [tool] } });
  else if (method === "tools/call") send({ id, result: { content: [{ type: "text", text: readFileSync(params.arguments.path, "utf8") }] } });
  else if (id !== undefined) send({ id, result: {} });
});
"#;

fn repeat(text: &str) -> Value {
    calls([call("repeat", &json!({ "text": text }))])
}

/// Runs a script under the policy `filter`, whose manifest declares whether it rewrites.
fn filtered(scene: &Scene, version: PiVersion, rewrites: bool, steps: Vec<Value>) -> Result<Finished> {
    let policy = scene.at("policies/filter.wasm");
    scene.write(&policy, "")?;
    fs::copy(guest("filter", scene.user())?, &policy)?;
    let manifest = format!(
        "[policy]\nid = \"test:filter\"\nversion = \"1.0.0\"\ntitle = \"Filter\"\n\
         [contract]\nversion = \"0.1\"\n[capabilities]\nrewrites = {rewrites}\n"
    );
    scene.write(&scene.at("policies/policy.toml"), &manifest)?;
    scene.trust(&policy)?;
    under(scene, version, &json!([{ "use": policy }]), steps)
}

/// Runs a script with another extension beside ours, under `policies`.
fn under(scene: &Scene, version: PiVersion, policies: &Value, steps: Vec<Value>) -> Result<Finished> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] },
        "policies": policies,
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let extension = scene.at("other/repeat.ts");
    scene.write(&extension, EXTENSION)?;
    let script = script(steps);
    let launch = Launch::guarded(scene, version, &script)?;
    launch.with(["-e".into(), extension.into_os_string()]).print("go")?.ended_unattended()
}

fn called_with(scene: &Scene) -> String {
    fs::read_to_string(scene.project().join("called-with")).unwrap_or_default()
}

fn tools_of_other_extensions(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let steps = vec![
        repeat("hello"),
        expecting("called with hello", repeat("forbid-me")),
        expecting("filter\\.forbidden", repeat("please rewrite-me")),
        // Input that a policy has rewritten is judged like any other.
        expecting("called with please rewritten", repeat("please rewrite-badly")),
        expecting("filter\\.forbidden", say("done")),
    ];
    filtered(&scene, version, true, steps)?;
    ensure!(called_with(&scene) == "please rewritten", "{}", called_with(&scene));
    Ok(())
}

fn rewriting_has_to_be_declared(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let steps = vec![repeat("rewrite-me"), expecting("rewrite-input", say("done"))];
    filtered(&scene, version, false, steps)?;
    ensure!(called_with(&scene).is_empty(), "it ran: {}", called_with(&scene));
    Ok(())
}

fn output_is_redacted_and_withheld(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("secret.txt"), "the password is hunter2\n")?;
    scene.write(&scene.project().join("hidden.txt"), "do withhold-me please\n")?;
    let steps = vec![
        repeat("hunter2"),
        expecting_no("hunter2", expecting("called with \\*\\*\\*", read("secret.txt"))),
        expecting_no("hunter2", expecting("password is \\*\\*\\*", bash("cat secret.txt; exit 3"))),
        expecting_no("hunter2", expecting("password is \\*\\*\\*", read("hidden.txt"))),
        expecting_no("withhold-me", expecting("withholds this output", bash("cat hidden.txt"))),
        expecting_no(
            "withhold-me",
            expecting("filter\\.withheld", calls([call("repeat", &json!({ "text": "on" }))])),
        ),
        expecting("called with on", say("done")),
    ];
    let finished = filtered(&scene, version, true, steps)?;
    let seen = serde_json::to_string(&finished.requests)?;
    ensure!(!seen.contains("password is hunter2") && !seen.contains("do withhold-me"), "{finished:#?}");
    Ok(())
}

fn a_crash_on_the_way_of_the_output_withholds(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("a.txt"), "alpha\n")?;
    // Without a fault, the policy allows.
    scene.trust(&guest("hostile", user)?)?;
    for fault in ["trap", "loop"] {
        let policies =
            json!([{ "use": guest("hostile", user)?, "config": { "fault": fault, "in": "inspect" } }]);
        let steps = vec![
            read("a.txt"),
            expecting_no("alpha", expecting("withholds", repeat("hello"))),
            expecting_no("called with", expecting("host\\.policy-failed", say("done"))),
        ];
        under(&scene, version, &policies, steps)?;
    }
    Ok(())
}

fn unknown_tools_are_a_question(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let steps = vec![repeat("hello"), expecting("nobody could be asked", say("done"))];
    under(&scene, version, &json!([{ "use": "workspace" }]), steps)?;
    ensure!(called_with(&scene).is_empty(), "it ran: {}", called_with(&scene));
    Ok(())
}

/// The call of a server's tool is judged like any other. The actions of the server by itself are not; that they succeed
/// is the control.
fn mcp_servers(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "the password is hunter2\n")?;
    let server = scene.at("server.mjs");
    scene.write(&server, SERVER)?;
    let node = scene.install_pi(PiVersion::V1_5)?.node;
    let servers =
        json!({ "mcpServers": { "files": { "command": node, "args": [server], "exposure": "direct" } } });
    scene.write(&scene.home().join(".pi/agent/mcp.json"), &servers.to_string())?;
    let peek = |path: &str| calls([call("mcp__files__peek", &json!({ "path": path }))]);
    let notes = scene.outside().join("notes").display().to_string();
    let steps = vec![
        peek(&notes),
        expecting_no("hunter2", expecting("password is \\*\\*\\*", peek(&format!("{notes}/forbid-me")))),
        expecting("filter\\.forbidden", say("done")),
    ];
    filtered(&scene, PiVersion::V1_5, true, steps)?;
    let log = audit(&scene)?;
    ensure!(log.contains("\"mcp:files\"") && log.contains("mcp__files__peek"), "{log}");

    let steps = vec![peek(&notes), expecting_no("hunter2", expecting("nobody could be asked", say("done")))];
    under(&scene, PiVersion::V1_5, &json!([{ "use": "workspace" }]), steps)?;
    let control = script([peek(&notes), expecting("hunter2", say("done"))]);
    Launch::plain(&scene, PiVersion::V1_5, &control)?.print("go")?.ended_unattended()?;
    Ok(())
}

/// Tools that the model sees only after it has searched for them; a `bash` of another extension among them is not taken
/// for pi's.
fn tool_search(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let extension = scene.at("other/deferred.ts");
    scene.write(
        &extension,
        &EXTENSION.replace("name: \"repeat\",", "name: \"repeat\", exposure: \"deferred\","),
    )?;
    let search = || calls([call("tool_search", &json!({ "query": "repeats a text" }))]);
    let steps = script([
        search(),
        expecting("repeat", repeat("hello")),
        expecting("called with hello", repeat("forbid-me")),
        expecting_no("called with", expecting("filter\\.forbidden", say("done"))),
    ]);
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": guest("filter", user)? }],
    });
    scene.trust(&guest("filter", user)?)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let launch = Launch::guarded(&scene, PiVersion::V1_5, &steps)?.with(["--tools", "+tool_search"]);
    launch.with(["-e".into(), extension.into_os_string()]).print("go")?.ended_unattended()?;
    ensure!(called_with(&scene) == "hello", "{}", called_with(&scene));
    let log = audit(&scene)?;
    ensure!(log.contains("\"tool_search\""), "the search itself was not judged: {log}");
    Ok(())
}

/// Calls that a script of the model makes are judged like the model's own.
fn codemode(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("notes");
    scene.write(&outside, "hunter1")?;
    scene.write(&scene.project().join("inside"), "alpha")?;
    let code = format!(
        "const one = await tools.bash({{ command: 'echo sum-$((40+2)); echo x > \"{}/made\"' }}); text(JSON.stringify(one)); \
         text(await tools.read({{ path: 'inside' }})); \
         try {{ text(await tools.read({{ path: '{}' }})); }} catch (error) {{ text('ERR ' + error.message); }}",
        scene.outside().display(),
        outside.display(),
    );
    let nested = || calls([call("codemode", &json!({ "code": code }))]);
    let guarded = script([nested(), expecting_no("hunter1", expecting("sum-42.*alpha.*ERR", say("done")))]);
    let tools = ["--tools", "bash,read,codemode"];
    let launch = |launch: Launch<'_>| launch.with(tools).print("go")?.ended_unattended();
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": guest("filter", user)? }],
    });
    scene.trust(&guest("filter", user)?)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let finished = launch(Launch::guarded(&scene, PiVersion::V1_5, &guarded)?)?;
    ensure!(!scene.outside().join("made").exists(), "{finished:#?}");
    let control = script([nested(), expecting("sum-42.*alpha.*hunter1", say("done"))]);
    launch(Launch::plain(&scene, PiVersion::V1_5, &control)?)?;
    ensure!(scene.outside().join("made").exists(), "the control wrote nothing");
    Ok(())
}

fn powershell(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = script([
        calls([call("powershell", &json!({ "command": "echo hello" }))]),
        expecting("use the tool `bash`|not found|[Uu]nknown tool", say("done")),
    ]);
    let launch = Launch::guarded(&scene, PiVersion::V1_5, &script)?;
    launch.with(["--tools", "bash,powershell"]).print("go")?.ended_unattended()?;
    // The host's answer on these tools, whatever this version of pi offers.
    let mut host = portcullis_it::Serve::greeted(&scene, &[], portcullis_it::Interface::Present)?;
    let call =
        json!({ "callId": "p", "tool": "powershell", "provider": "builtin", "input": { "command": "x" } });
    let refused = host.succeed("decide", &call)?;
    ensure!(refused.get("rule") == Some(&json!("host.powershell")), "{refused}");
    Ok(())
}

/// Returns all lines of the log.
fn audit(scene: &Scene) -> Result<String> {
    let mut text = String::new();
    for log in scene.logs()? {
        text.push_str(&fs::read_to_string(log)?);
    }
    Ok(text)
}
