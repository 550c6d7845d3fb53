//! `portcullis pi --contain`: pi itself runs in a sandbox, with other extensions and the processes that they start.
//! The host runs outside, and asks its questions there.

mod edits;
mod ends;
mod record;
mod servers;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::processes::{self, Process};
use portcullis_it::script::{bash, expecting, read, say, turns, write};
use portcullis_it::{Deadline, Finished, Launch, PiVersion, Rpc, Scene, User, script};
use serde_json::{Value, json};

use crate::machine::NO_NAMESPACES;

on_each_pi!(an_extension_gets_nowhere_and_work_goes_on, questions_are_asked_outside);
as_each_user!(
    nobody_inside_speaks_for_the_user,
    a_question_to_a_second_terminal_ends_with_its_time,
    what_cannot_be_contained_is_not_started,
);

/// A hostile extension. It attempts forbidden actions, by itself and through a process that it starts (as it would
/// start an MCP server), and writes a report of the results.
const ROGUE: &str = include_str!("contained/rogue.ts");
/// A hostile extension that speaks to the host in the place of ours.
const FORGER: &str = include_str!("contained/forger.ts");

/// The targets of the hostile extension.
struct Prey<'a> {
    scene: &'a Scene,
    victim: Child,
    server: TcpListener,
}

/// Settings that switch the sandbox off.
const OFF: &str = r#"{ "enabled": false, "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] } }"#;

/// The files that the extension attacks, with their contents, which must not change.
const FILES: [(&str, &str); 5] = [
    (".bashrc", "# mine"),
    (".profile", "# mine"),
    (".ssh/id", "hunter2"),
    (".local/state/portcullis/audit/log", "said"),
    (".pi/agent/extensions/mine/index.ts", "export default () => {};"),
];

impl<'a> Prey<'a> {
    fn new(scene: &'a Scene) -> Result<Self> {
        for (name, text) in FILES {
            scene.write(&scene.home().join(name), text)?;
        }
        let mut sleep = scene.user().command("sleep".as_ref());
        let victim = sleep.arg("600").stdout(Stdio::null()).spawn().context("starting `sleep`")?;
        let server = TcpListener::bind("127.0.0.1:0")?;
        server.set_nonblocking(true)?;
        Ok(Self { scene, victim, server })
    }

    fn attacked(&self, launch: Launch<'a>) -> Result<Launch<'a>> {
        let modules = self.in_packages_of_the_user()?;
        let launch = launch.variable("ROGUE_PROGRAM", modules.join("evil.js").display().to_string());
        let rogue = self.scene.at("other/rogue.ts");
        self.scene.write(&rogue, ROGUE)?;
        let launch = launch.variable("ROGUE_OUTSIDE", self.scene.outside().display().to_string());
        let launch = launch.variable("ROGUE_PID", self.victim.id().to_string());
        let launch = launch.variable("ROGUE_PORT", self.server.local_addr()?.port().to_string());
        Ok(launch.with(["-e".into(), rogue.into_os_string()]))
    }

    /// Moves the program `pi` into a directory of packages that the user can change, as package managers install it.
    /// Returns the directory.
    fn in_packages_of_the_user(&self) -> Result<PathBuf> {
        let modules = self.scene.at("lib/node_modules");
        let (named, program) = (self.scene.bin().join("pi"), modules.join("pi/cli"));
        self.scene.write(&program, "")?;
        fs::rename(&named, &program)?;
        symlink(&program, &named)?;
        Ok(modules)
    }

    /// Returns the report of the extension on each attempt.
    fn report(&self) -> Result<Value> {
        let text =
            fs::read_to_string(self.scene.project().join("report.json")).context("the rogue's report")?;
        Ok(serde_json::from_str(&text)?)
    }

    fn is_alive(&mut self) -> Result<bool> {
        Ok(self.victim.try_wait()?.is_none())
    }

    fn was_called(&self) -> bool {
        self.server.accept().is_ok()
    }
}

/// Returns what a report says of one attempt.
fn said<'a>(report: &'a Value, what: &str) -> &'a Value {
    report.get(what).unwrap_or(&Value::Null)
}

impl Drop for Prey<'_> {
    fn drop(&mut self) {
        // The process may be dead already: the control lets the extension kill it.
        let _dead = self.victim.kill();
        let _reaped = self.victim.wait();
    }
}

const ATTEMPTS: [&str; 16] = [
    "startup",
    "outside",
    "extension",
    "settings",
    "program",
    "key",
    "log",
    "kill",
    "child",
    "connect",
    "link",
    "moved",
    "hard",
    "pipe",
    "lock",
    "locked",
];

fn an_extension_gets_nowhere_and_work_goes_on(version: PiVersion, user: User) -> Result<()> {
    // The control: without Portcullis every attempt succeeds.
    let scene = Scene::new(user)?;
    let mut prey = Prey::new(&scene)?;
    let launch = Launch::plain(&scene, version, &script([say("done")]))?;
    let finished = prey.attacked(launch)?.print("go")?.ended_unattended()?;
    let report = prey.report()?;
    for attempt in ATTEMPTS {
        ensure!(
            said(&report, attempt) == "done",
            "the control: `{attempt}` does not work: {report:#} {finished:#?}"
        );
    }
    ensure!(
        said(&report, "seen") == "hunter2" && !prey.is_alive()? && prey.was_called(),
        "the control: {report:#}"
    );

    let scene = Scene::new(user)?;
    let mut prey = Prey::new(&scene)?;
    let script = script([
        bash("echo sum-$((40+2)); cat report.json; cat ~/.ssh/id; ls /tmp"),
        expecting("sum-42", write("a/b.txt", "alpha\n")),
        expecting("[Ww]rote", read("a/b.txt")),
        // pi keeps the whole of a long output in a file, in the private `/tmp` of its sandbox.
        expecting("alpha", bash("seq 1 30000")),
        expecting("pi-bash-", bash("basename -s .log /tmp/pi-bash-* | cut -d- -f3 | tr -d '\\n'")),
        expecting("^[0-9a-f]{16}$", read("/tmp/pi-bash-{{result}}.log")),
        expecting("^1\n2\n", say("done")),
    ]);
    let launch = Launch::contained(&scene, version, &script)?;
    let finished = prey.attacked(launch)?.print("go")?.ended_unattended()?;
    let report = prey.report()?;
    for attempt in ATTEMPTS {
        ensure!(said(&report, attempt) != "done", "`{attempt}` came through: {report:#}");
        ensure!(said(&report, attempt).is_string(), "`{attempt}` was not tried: {report:#}");
    }
    // What the extension makes for itself are files and directories; a lock is an empty directory.
    ensure!(said(&report, "own") == "own" && said(&report, "locked_by") == "itself", "{report:#}");
    ensure!(said(&report, "seen") != "hunter2" && prey.is_alive()? && !prey.was_called(), "{report:#}");
    for (name, text) in FILES {
        ensure!(fs::read_to_string(scene.home().join(name))? == text, "`{name}` was changed: {report:#}");
    }
    ensure!(!scene.outside().join("made").exists() && finished.stdout.contains("done"), "{finished:#?}");
    ensure!(!finished.tool_result(0)?.contains("hunter2"), "{finished:#?}");
    let left = fs::read_dir(scene.home().join(".local/state/portcullis/sessions"))?.count();
    ensure!(left == 0, "{left} directories of sessions are left");
    let logged = scene.portcullis(&["audit", "tail", "--json", "-n", "1000"])?.stdout;
    let asked = |line: &str| line.contains("node_modules/evil.js") && line.contains("nobody");
    ensure!(!logged.lines().any(asked), "a change of pi's program was a question: {logged}");
    ensure!(logged.contains("host:contained"), "the log does not say that pi was contained: {logged}");
    Ok(())
}

fn questions_are_asked_outside(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "hunter1")?;
    let path = notes.display().to_string();
    let script = turns([
        ("allowed", vec![read(&path), expecting("hunter1", say("first over"))]),
        ("refused", vec![bash(&format!("echo x > '{path}-2'")), say("second over")]),
    ]);
    let prey = Prey::new(&scene)?;
    let screen = prey.attacked(Launch::contained(&scene, version, &script)?)?.screen()?;
    // pi handles keys once its prompt is drawn.
    let mark = |text: &str| text.lines().any(|line| line.trim_end() == ">");
    // An action of pi itself, or of an extension in it, leads to a question as well.
    screen.wait_for("outside of pi")?;
    let asked = screen.wait("the mark", mark)?;
    ensure!(asked.contains("pi itself wants to") && asked.contains("made"), "{asked}");
    screen.press("Enter")?;
    // So does a connection to a service of this machine.
    screen.wait_for("wants to connect to 127.0.0.1:")?;
    screen.wait("the mark", mark)?;
    screen.press("Enter")?;
    screen.wait_for("pi contained")?;
    ensure!(!scene.outside().join("made").exists());

    screen.enter("to be allowed")?;
    screen.wait_for("outside of pi")?;
    // This screen shows nothing of pi.
    let asked = screen.wait("the mark", mark)?;
    ensure!(asked.contains("notes") && !asked.contains("pi contained"), "{asked}");
    ensure!(asked.contains("[o-"), "{asked}");
    // Where the question does not fit on the screen, no choice allows, and a single letter is not accepted as an
    // answer.
    screen.resize(110, 8)?;
    let small = screen.wait_for("enlarge the window")?;
    ensure!(small.contains("notes") && !small.contains("[o-"), "{small}");
    screen.resize(110, 40)?;
    let large = screen.wait("the answers", |text| text.contains("[o-") && mark(text))?;
    screen.enter("o")?;
    screen.wait_for("not an answer")?;
    let code = large.lines().find_map(|line| line.trim().strip_prefix('[')?.split_once("] Once"));
    screen.enter(code.context("what to type")?.0)?;
    screen.wait_for("first over")?;
    screen.wait_for("pi contained")?;

    screen.enter("to be refused")?;
    screen.wait_for("outside of pi")?;
    screen.wait("the mark", mark)?;
    screen.press("Enter")?;
    screen.wait_for("second over")?;
    ensure!(!scene.outside().join("notes-2").exists());

    screen.enter("/sandbox")?;
    let shown = screen.wait_for("pi itself is contained")?;
    ensure!(!shown.contains("Disable sandbox"), "{shown}");
    screen.press("q")?;
    screen.wait_gone("pi itself is contained")?;
    ensure!(screen.quit()? == 0, "{}", screen.text()?);
    Ok(())
}

/// Returns the id of the first question that waits, other than `known`, as `portcullis asks` outside the sandbox
/// lists it.
pub(crate) fn waiting(scene: &Scene, known: &str) -> Result<String> {
    Ok(asked(|words| scene.portcullis(words), known)?.0)
}

/// Returns the id and the content of that question; `portcullis` runs the program.
fn asked(portcullis: impl Fn(&[&str]) -> Result<Finished>, known: &str) -> Result<(String, Value)> {
    Deadline::start().until("a question", || {
        let told = portcullis(&["asks", "list", "--json"])?;
        let told: Value = serde_json::from_str(&told.stdout).unwrap_or_default();
        let all = told.get("questions").and_then(Value::as_array).into_iter().flatten();
        let mut new = all.filter_map(|question| Some((question.get("id")?.as_str()?, question)));
        Ok(new.find(|(id, _)| *id != known).map(|(id, question)| (id.to_owned(), question.clone())))
    })
}

/// Starts pi with the forging extension, which attacks a file outside the project.
fn with_forger<'a>(scene: &'a Scene, launch: Launch<'a>) -> Result<Launch<'a>> {
    scene.write(&scene.outside().join("notes"), "hunter1")?;
    let forger = scene.at("other/forger.ts");
    scene.write(&forger, FORGER)?;
    let launch = launch.variable("FORGER_OUTSIDE", scene.outside().display().to_string());
    Ok(launch.with(["-e".into(), forger.into_os_string()]))
}

/// Returns the report of the forging extension, once it has finished.
fn forged(scene: &Scene) -> Result<Value> {
    let report = scene.project().join("forged.json");
    let text = Deadline::start().until("the forger's report", || Ok(fs::read_to_string(&report).ok()))?;
    Ok(serde_json::from_str(&text)?)
}

fn nobody_inside_speaks_for_the_user(user: User) -> Result<()> {
    // Where pi is not contained, a process that starts a host answers in the place of the user.
    let scene = Scene::new(user)?;
    let launch = Launch::guarded(&scene, PiVersion::V1_5, &script([say("done")]))?;
    let pi = with_forger(&scene, launch)?.rpc()?;
    let report = forged(&scene)?;
    drop(pi);
    ensure!(said(&report, "first") == "opened" && said(&report, "without") == "disabled", "{report:#}");

    fs::remove_file(scene.project().join("forged.json"))?;
    let launch = Launch::contained(&scene, PiVersion::V1_5, &script([say("done")]))?;
    let mut pi: Rpc = with_forger(&scene, launch)?.rpc()?;
    // The extension answers its own first question with yes, which has no effect; the user outside answers no.
    let first = waiting(&scene, "")?;
    scene.answer(&first, "no")?.ended_with(0)?;
    let second = waiting(&scene, &first)?;
    scene.answer(&second, "o")?.ended_with(0)?;
    let report = forged(&scene)?;
    for (what, is_held) in [
        ("asked", *said(&report, "asked") == json!(0)),
        ("elsewhere", said(&report, "elsewhere") == "closed"),
        ("without", said(&report, "without") == "closed"),
        ("first", said(&report, "first") == "refused"),
        ("second", said(&report, "second") == "opened"),
        ("menu", *said(&report, "menu") == json!([])),
        ("escalate", said(&report, "escalate") == "refused"),
    ] {
        ensure!(is_held, "`{what}` is not as it should be: {report:#}");
    }
    pi.prompt("go")?;
    pi.wait_for("agent_end")?;
    // All processes that the host holds end with it.
    let host = processes::container_of(&scene)?;
    let is_model = |process: &Process| process.command_line.contains("model.mjs");
    let all = processes::of_scene(&scene)?;
    let inside = |process: &&Process| process.id != host.id && !is_model(process);
    ensure!(all.iter().any(|process| inside(&process)), "nothing is seen of pi: {all:?}");
    let id = i32::try_from(host.id).ok().and_then(rustix::process::Pid::from_raw).context("a process id")?;
    rustix::process::kill_process(id, rustix::process::Signal::KILL)?;
    processes::wait_scene_gone(&scene, is_model)
}

fn a_question_to_a_second_terminal_ends_with_its_time(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let launch = Launch::contained(&scene, PiVersion::V1_5, &script([say("done")]))?;
    let file = scene.at("sandbox.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    settings.as_object_mut().context("an object")?.insert("ask".to_owned(), json!({ "timeoutMs": 2000 }));
    scene.write(&file, &settings.to_string())?;
    let pi: Rpc = with_forger(&scene, launch)?.rpc()?;
    // Neither of its questions is answered, and both end.
    let first = waiting(&scene, "")?;
    let errors = || fs::read_to_string(scene.at("stderr.txt")).unwrap_or_default();
    let report = forged(&scene).with_context(|| format!("pi says: {}", errors()))?;
    for what in ["first", "second"] {
        ensure!(said(&report, what) == "refused", "`{what}` is not as it should be: {report:#}");
    }
    scene.portcullis(&["asks", "answer", &first, "o"])?.ended_with(1)?;
    drop(pi);
    Ok(())
}

fn what_cannot_be_contained_is_not_started(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.install_pi(PiVersion::V1_5)?;
    for (arguments, why) in [
        (["pi", "--contain", "install", "npm:x"], "without `--contain`"),
        (["pi", "--contain", "-p", "--no-sandbox"], "exclude each other"),
        // Also in a position where pi itself would ignore the option.
        (["pi", "-p", "--no-sandbox", "--contain"], "exclude each other"),
        (["pi", "--contain", "-p", "--no-sandbox=1"], "exclude each other"),
        (["pi", "--contain", "-p", "--no-sandbox=yes"], "exclude each other"),
    ] {
        let refused = scene.portcullis(&arguments)?.ended_with(1)?;
        ensure!(refused.stderr.contains(why), "{refused:#?}");
    }
    // Where no sandbox is possible, pi is not started without one.
    let host = portcullis_it::portcullis(user)?;
    let mut without = user.command("unshare".as_ref());
    without.args(NO_NAMESPACES).arg(host).args(["pi", "--contain", "-p", "go"]);
    scene.enter(&mut without);
    let refused = Finished::run(&mut without)?.ended_with(1)?;
    ensure!(refused.stderr.contains("pi cannot be contained here, and is not started"), "{refused:#?}");
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), OFF)?;
    let refused = scene.portcullis(&["pi", "--contain", "-p", "go"])?.ended_with(1)?;
    ensure!(refused.stderr.contains("switched off"), "{refused:#?}");
    Ok(())
}
