//! A pi that another extension starts without extensions still loads the gate.

use anyhow::{Result, ensure};
use portcullis_it::script::{bash, call, calls, expecting, say, turns};
use portcullis_it::{Launch, PiVersion, Scene, User, guest};
use serde_json::{Value, json};

use crate::contained::waiting;

on_each_pi!(by_the_program_of_pi, by_its_name, switched_off);
as_each_user!(contained);

/// A tool that passes a task to a pi without extensions.
const DELEGATE: &str = r#"
import { spawnSync } from "node:child_process";
export default function (pi) {
  pi.registerTool({
    name: "delegate", label: "delegate", description: "Hands a task on",
    parameters: { type: "object", properties: { by: { type: "string" } }, required: ["by"] },
    async execute(_id, { by }) {
      const words = by === "name" ? ["pi"] : [process.execPath, process.argv[1]];
      const [program, ...before] = words;
      const task = ["--no-session", "--no-extensions", "--mode", "json", "-p", "the task"];
      const { stdout, stderr, status } = spawnSync(program, [...before, ...task], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
      return { content: [{ type: "text", text: `ended with ${status} ${stdout} ${stderr}` }], details: {} };
    },
  });
}
"#;

/// The script of the parent and of the sub-agent; `status` is the expected exit code of the sub-agent's write outside.
fn script(scene: &Scene, by: &str, status: u8) -> Value {
    let attempt = format!("echo x > '{}/made'; echo then $?", scene.outside().display());
    turns([
        ("the task", vec![bash(&attempt), expecting(&format!("then {status}"), say("task over"))]),
        (
            "go",
            vec![
                calls([call("delegate", &json!({ "by": by }))]),
                expecting("ended with 0.*task over", say("done")),
            ],
        ),
    ])
}

fn launch<'a>(scene: &'a Scene, launch: Launch<'a>) -> Result<Launch<'a>> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": guest("filter", scene.user())? }],
    });
    scene.trust(&guest("filter", scene.user())?)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let extension = scene.at("other/delegate.ts");
    scene.write(&extension, DELEGATE)?;
    Ok(launch.with(["-e".into(), extension.into_os_string()]))
}

fn guarded(version: PiVersion, user: User, by: &str) -> Result<()> {
    let scene = Scene::new(user)?;
    let made = scene.outside().join("made");
    let confined = Launch::guarded(&scene, version, &script(&scene, by, 1))?;
    launch(&scene, confined)?.print("go")?.ended_unattended()?;
    ensure!(!made.exists(), "the sub-agent wrote outside");
    let control = Launch::plain(&scene, version, &script(&scene, by, 0))?;
    launch(&scene, control)?.print("go")?.ended_unattended()?;
    ensure!(made.exists(), "the control wrote nothing");
    Ok(())
}

/// The sub-agent is started as in pi's own example.
fn by_the_program_of_pi(version: PiVersion, user: User) -> Result<()> {
    guarded(version, user, "program")
}

fn by_its_name(version: PiVersion, user: User) -> Result<()> {
    guarded(version, user, "name")
}

/// The sub-agents of a contained pi are contained as well, and their actions lead to questions like its own.
fn contained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let extension = scene.at("other/delegate.ts");
    scene.write(&extension, DELEGATE)?;
    let inside = Launch::contained(&scene, PiVersion::V1_5, &script(&scene, "program", 1))?;
    let mut pi = inside.with(["-e".into(), extension.into_os_string()]).rpc()?;
    pi.prompt("go")?;
    // The tool is unknown, and the sub-agent's command writes outside the project.
    let tool = waiting(&scene, "")?;
    scene.answer(&tool, "o")?.ended_with(0)?;
    scene.answer(&waiting(&scene, &tool)?, "no")?.ended_with(0)?;
    pi.wait_for("agent_end")?;
    let requests = pi.requests()?;
    let failed = requests.iter().find(|request| request.get("failures") != Some(&json!([])));
    ensure!(failed.is_none() && requests.len() == 4, "{requests:#?}");
    ensure!(!scene.outside().join("made").exists(), "the sub-agent wrote outside");
    Ok(())
}

/// Without the sandbox, sub-agents are not guarded.
fn switched_off(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let open = Launch::guarded(&scene, version, &script(&scene, "program", 0))?;
    launch(&scene, open)?.with(["--no-sandbox=true"]).print("go")?.ended_unattended()?;
    ensure!(scene.outside().join("made").exists());
    Ok(())
}
