//! Another extension that replaces pi's tools with its own. pi refuses to start when two extensions register the same
//! tool while they are loaded; with ours it starts, and the host decides the calls of the other extension's tools,
//! and confines commands.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, expecting_no, read, say, write};
use portcullis_it::{Launch, PiVersion, Scene, User, script};
use serde_json::{Value, json};

on_each_pi!(
    bash_and_read,
    write_and_edit,
    searches,
    registered_late,
    calls_that_read_otherwise,
    asked_and_aborted,
    one_that_throws,
);

/// The tools of another extension: pi's own, with a mark on their results and an extra parameter for bash.
const OTHER: &str = r#"
import * as pi from "@earendil-works/pi-coding-agent";
const MAKERS = {
  bash: pi.createBashToolDefinition, read: pi.createReadToolDefinition, write: pi.createWriteToolDefinition,
  edit: pi.createEditToolDefinition, ls: pi.createLsToolDefinition, find: pi.createFindToolDefinition,
  grep: pi.createGrepToolDefinition,
};
function put(api, names) {
  for (const name of names) {
    const own = MAKERS[name](process.cwd());
    const parameters = name === "bash"
      ? { type: "object", properties: { command: { type: "string" }, timeout: { type: "number" }, host: { type: "string" } }, required: ["command"] }
      : own.parameters;
    api.registerTool({ ...own, parameters, async execute(id, params, signal, onUpdate, context) {
      const result = await MAKERS[name](context.cwd).execute(id, params, signal, onUpdate, context);
      return { ...result, content: [{ type: "text", text: "by-the-other-one " }, ...result.content] };
    } });
  }
}
export default function (api) {
  if (LATE) api.on("session_start", () => put(api, NAMES));
  else put(api, NAMES);
}
"#;

const ALL_TOOLS: [&str; 2] = ["--tools", "read,bash,edit,write,grep,find,ls"];

/// A launch with the other extension, which replaces the tools `names`.
fn beside<'a>(scene: &'a Scene, launch: Launch<'a>, names: &[&str], when: &str) -> Result<Launch<'a>> {
    let extension = scene.at(&format!("other/{when}.ts"));
    let text = format!("const NAMES = {}; const LATE = {};{OTHER}", json!(names), when == "late");
    scene.write(&extension, &text)?;
    Ok(launch.with(["-e".into(), extension.into_os_string()]))
}

fn attempts(scene: &Scene) -> String {
    format!(
        "echo x > inside; echo sum-$((40+2)); echo x > '{}/made'; echo then $?",
        scene.outside().display()
    )
}

fn bash_and_read(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    scene.write(&scene.project().join("plain"), "alpha")?;
    symlink(&notes, scene.project().join("link"))?;
    let steps = [
        bash(&attempts(&scene)),
        expecting("by-the-other-one.*sum-42.*then 1", bash("exit 7")),
        expecting(
            "exited with code 7",
            bash("echo $PPID; cat /proc/1/environ | tr '\\0' '\\n'; echo $OPENAI_API_KEY"),
        ),
        expecting_no("hunter2", read("plain")),
        expecting("by-the-other-one.*alpha", read(&notes.display().to_string())),
        expecting_no("hunter1|by-the-other-one", read("link")),
        expecting_no("hunter1|by-the-other-one", write("made", "x")),
        // The other extension has not replaced this tool.
        expecting_no("by-the-other-one", expecting("[Ww]rote", say("done"))),
    ];
    let names = ["bash", "read"];
    let launch = Launch::guarded(&scene, version, &script(steps))?.variable("OPENAI_API_KEY", "hunter2");
    let finished = beside(&scene, launch, &names, "early")?.print("go")?.ended_unattended()?;
    ensure!(
        !scene.outside().join("made").exists() && scene.project().join("inside").exists(),
        "{finished:#?}"
    );
    ensure!(finished.stderr.contains("early.ts replaces pi's bash, read"), "{finished:#?}");
    portcullis_it::processes::wait_scene_gone(&scene, |_| false)?;

    let control = script([
        bash(&attempts(&scene)),
        expecting("by-the-other-one.*then 0", read("link")),
        expecting("hunter1", say("done")),
    ]);
    let launch = Launch::plain(&scene, version, &control)?;
    beside(&scene, launch, &names, "early")?.print("go")?.ended_unattended()?;
    ensure!(scene.outside().join("made").exists(), "the control wrote nothing");
    Ok(())
}

fn write_and_edit(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let outside = scene.outside().join("notes");
    scene.write(&outside, "alpha")?;
    scene.write(&scene.project().join("plain"), "alpha")?;
    symlink(&outside, scene.project().join("link"))?;
    symlink(scene.outside().join("made"), scene.project().join("dangling"))?;
    let edit = |path: &str| {
        let edit = json!({ "path": path, "edits": [{ "oldText": "alpha", "newText": "beta" }] });
        calls([call("edit", &edit)])
    };
    let refused = |step| expecting("Refused by the sandbox", expecting_no("by-the-other-one", step));
    let hook = scene.project().join(".git/hooks/pre-commit").display().to_string();
    let steps = [
        edit("plain"),
        expecting("by-the-other-one", edit("link")),
        refused(write("new/file", "x")),
        expecting("by-the-other-one", write("dangling", "x")),
        refused(write(&hook, "x")),
        refused(write(".git/config", "[core]\n\tfsmonitor = evil\n")),
        refused(edit(".git/config")),
        expecting_no("by-the-other-one", say("done")),
    ];
    scene.write(&scene.project().join(".git/HEAD"), "ref: refs/heads/main\n")?;
    let launch = Launch::guarded(&scene, version, &script(steps))?;
    beside(&scene, launch, &["write", "edit"], "early")?.print("go")?.ended_unattended()?;
    ensure!(fs::read_to_string(scene.project().join("plain"))? == "beta");
    ensure!(fs::read_to_string(&outside)? == "alpha" && !scene.outside().join("made").exists());
    ensure!(fs::read_to_string(scene.project().join("new/file"))? == "x");
    ensure!(!fs::exists(&hook)? && !scene.project().join(".git/config").exists());
    Ok(())
}

/// The search tool of another extension does not filter its results, so a search that would have to leave files out is
/// refused.
fn searches(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("open/a.txt"), "alpha")?;
    scene.write(&scene.project().join("closed/b.txt"), "alpha")?;
    let search = |tool: &str, input: Value| calls([call(tool, &input)]);
    let refused = |step| expecting("unfiltered-search", expecting_no("b\\.txt", step));
    let steps = [
        search("grep", json!({ "pattern": "alpha", "path": "open" })),
        expecting("a\\.txt", search("find", json!({ "pattern": "*.txt", "path": "open" }))),
        expecting("a\\.txt", search("ls", json!({ "path": "open" }))),
        expecting("by-the-other-one.*a\\.txt", search("grep", json!({ "pattern": "alpha" }))),
        refused(search("find", json!({ "pattern": "*.txt", "path": "" }))),
        refused(search("ls", json!({ "path": "closed" }))),
        expecting_no("b\\.txt", search("ls", json!({ "path": scene.outside().display().to_string() }))),
        expecting("Refused by the sandbox", say("done")),
    ];
    let closed = scene.project().join("closed");
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home", closed], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let launch = Launch::guarded(&scene, version, &script(steps))?.with(ALL_TOOLS);
    beside(&scene, launch, &["ls", "find", "grep"], "early")?.print("go")?.ended_unattended()?;
    Ok(())
}

/// An extension that registers its tools when the session starts, after ours or before.
fn registered_late(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let steps = || script([bash(&attempts(&scene)), expecting("sum-42.*then 1", say("done"))]);
    let launch = Launch::guarded(&scene, version, &steps())?;
    beside(&scene, launch, &["bash"], "late")?.print("go")?.ended_unattended()?;
    // An installed extension is loaded after those of the command line.
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    let launch = Launch::plain(&scene, version, &steps())?;
    beside(&scene, launch, &["bash"], "late")?.print("go")?.ended_unattended()?;
    let launch = Launch::plain(&scene, version, &steps())?;
    beside(&scene, launch, &["bash"], "early")?.print("go")?.ended_unattended()?;
    ensure!(!scene.outside().join("made").exists());
    Ok(())
}

/// A parameter that pi's tool does not have may mean anything, so the call counts as that of an unknown tool.
fn calls_that_read_otherwise(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let remote = json!({ "command": "echo sum-$((40+2)) > made", "host": "build.example" });
    let steps = [calls([call("bash", &remote)]), expecting("nobody could be asked", say("done"))];
    let launch = Launch::guarded(&scene, version, &script(steps))?;
    beside(&scene, launch, &["bash"], "early")?.print("go")?.ended_unattended()?;
    ensure!(!scene.project().join("made").exists());
    Ok(())
}

/// A question about a command that the other extension's tool started, and the end of that command when the call is
/// aborted.
fn asked_and_aborted(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let sleep = portcullis_it::processes::long_sleep();
    let written = format!("echo x > '{}/made'; echo then $?; {sleep}", scene.outside().display());
    let script =
        script([read(&notes.display().to_string()), expecting("hunter1", bash(&written)), say("never said")]);
    let launch = Launch::guarded(&scene, version, &script)?;
    let mut pi = beside(&scene, launch, &["bash", "read"], "early")?.rpc()?;
    pi.prompt("go")?;
    for _ in 0..2 {
        let question = pi.question()?;
        let options = question.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
        let yes = options.iter().filter_map(Value::as_str).find(|option| option.starts_with("1."));
        let yes = yes.map(str::to_owned);
        ensure!(yes.is_some(), "{question}");
        pi.answer(&question, &yes.unwrap_or_default())?;
    }
    portcullis_it::processes::wait_running(&sleep)?;
    pi.send(&json!({ "id": "stop", "type": "abort" }))?;
    let end = pi.wait("the end of bash", |message| {
        message.get("type") == Some(&json!("tool_execution_end"))
            && message.get("toolName") == Some(&json!("bash"))
    })?;
    ensure!(end.to_string().contains("aborted"), "{end}");
    portcullis_it::processes::wait_gone(&sleep)?;
    ensure!(scene.outside().join("made").exists());
    ensure!(pi.close()?.success());
    Ok(())
}

/// pi 0.74 executes a command of the user by itself if an extension throws in its handler, as the control shows; pi 1.x
/// does not.
fn one_that_throws(version: PiVersion, user: User) -> Result<()> {
    const THROWS: &str =
        "export default (pi) => pi.on('user_bash', () => { throw new Error('it is broken'); });";
    let scene = Scene::new(user)?;
    let extension = scene.at("other/throws.ts");
    scene.write(&extension, THROWS)?;
    // A named pipe outside the project is refused without a question.
    let made = scene.outside().join("made");
    let run = |launch: Launch<'_>| -> Result<()> {
        let mut pi = launch.with(["-e".into(), extension.clone().into_os_string()]).rpc()?;
        pi.send(&json!({ "id": "own", "type": "bash", "command": format!("mkfifo '{}'", made.display()) }))?;
        pi.wait("response", |message| message.get("id") == Some(&json!("own")))?;
        ensure!(pi.close()?.success());
        Ok(())
    };
    let hello = script([say("hello")]);
    run(Launch::guarded(&scene, version, &hello)?)?;
    ensure!(!made.exists(), "loaded first, ours was not asked");
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    run(Launch::plain(&scene, version, &hello)?)?;
    ensure!(!made.exists(), "loaded last, ours was not asked");
    scene.portcullis(&["pi-extension", "remove"])?.ended_with(0)?;
    run(Launch::plain(&scene, version, &hello)?)?;
    ensure!(made.exists() == (version == PiVersion::V0_74), "the control");
    Ok(())
}
