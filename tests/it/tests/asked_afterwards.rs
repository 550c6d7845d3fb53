//! A machine without Landlock, and so without a broker: paths that a command could not write are asked about after it
//! has ended, and the command is run again if the user approves.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, Terminal, User};
use serde_json::{Value, json};

as_each_user!(
    a_write_is_asked_about_and_the_command_run_again,
    a_no_stays_a_no,
    an_answer_for_the_session_holds_for_the_next_command,
    a_file_is_opened_without_its_neighbours,
    made_up_lines_open_nothing,
    there_is_an_end_to_questions,
    nobody_is_asked_where_nobody_is,
    on_a_terminal_it_is_the_same,
    beside_another_listener_it_is_the_same,
);

const SETTINGS: &str = r#"{ "requiredTier": "namespaces", "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["~"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": ["KEPT"] } }"#;

/// Disables Landlock for the program that it executes: its calls fail with ENOSYS, as on an older kernel.
const FILTER: &str = r"
import ctypes, os, struct, sys
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
code = [(LOAD, 0, 0, 0)]
for number in (444, 445, 446):
    code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, 0x00050026)]
code += [(RETURN, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in code))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('program', ctypes.c_void_p)]
kernel = ctypes.CDLL(None, use_errno=True)
own = Filter(len(code), ctypes.addressof(program))
if kernel.prctl(38, 1, 0, 0, 0) or kernel.prctl(22, 2, ctypes.byref(own), 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
";

/// Occupies the only seccomp listener that the kernel allows, without receiving any calls, before it executes another
/// program. The process that holds it ends with its parent.
const LISTENER: &str = r"
import ctypes, os, signal, struct, sys, time
program = ctypes.create_string_buffer(struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('program', ctypes.c_void_p)]
kernel = ctypes.CDLL(None, use_errno=True)
own = Filter(1, ctypes.addressof(program))
if kernel.prctl(38, 1, 0, 0, 0) or kernel.syscall(317, 1, 8, ctypes.byref(own)) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
if os.fork() == 0:
    kernel.prctl(1, signal.SIGKILL, 0, 0, 0)
    os.closerange(0, 3)
    time.sleep(1000)
os.execvp(sys.argv[1], sys.argv[1:])
";

/// The number of the option that allows one run.
const ONCE: u64 = 0;
/// The number of the narrowest option for the session.
const SESSION: u64 = 1;

fn scene(user: User) -> Result<Scene> {
    scene_under(user, FILTER)
}

fn scene_under(user: User, filter: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let kept = scene.outside().join("kept");
    scene.write(&kept.join("file"), "kept\n")?;
    let settings = SETTINGS.replace("KEPT", &kept.display().to_string());
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings)?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "secret")?;
    scene.write(&scene.at("filter.py"), filter)?;
    Ok(scene)
}

fn host(scene: &Scene, interface: Interface) -> Result<Serve> {
    let filter = scene.at("filter.py");
    let mut host = Serve::start_through(scene, "python3", &[filter.to_str().context("a path is text")?])?;
    let hello = host.hello(interface);
    let said = host.succeed("hello", &hello)?;
    let warned = said.pointer("/status/warnings").map(ToString::to_string).unwrap_or_default();
    ensure!(warned.contains("only of the tier `namespaces`"), "{said}");
    Ok(host)
}

fn begin(host: &mut Serve, script: &str) -> Result<u64> {
    host.begin(script, &json!({ "PATH": "/usr/bin:/bin", "LC_ALL": "C" }))
}

fn text<'a>(question: &'a Value, name: &str) -> &'a str {
    question.pointer(&format!("/params/{name}")).and_then(Value::as_str).unwrap_or_default()
}

/// Waits for a question and checks its subject.
fn question(host: &mut Serve, subject: &str) -> Result<Value> {
    let question = host.question()?;
    ensure!(text(&question, "subject") == subject, "{subject}: {question}");
    Ok(question)
}

fn a_write_is_asked_about_and_the_command_run_again(user: User) -> Result<()> {
    let scene = scene(user)?;
    let outside = scene.outside().display().to_string();
    let mut host = host(&scene, Interface::Present)?;
    let script = format!("echo run >> runs; echo x > {outside}/new && echo done");
    let id = begin(&mut host, &script)?;
    let place = question(&mut host, &outside)?;
    ensure!(text(&place, "reason").contains(&format!("could not write `{outside}/new`")), "{place}");
    ensure!(place.to_string().contains("creating and writing files below"), "{place}");
    ensure!(!scene.outside().join("new").exists() && lines(&scene, "runs")? == 1);
    host.answer(&place, &json!(ONCE))?;
    let again = question(&mut host, &script)?;
    let options = again.pointer("/params/options").and_then(Value::as_array).map(Vec::len);
    ensure!(text(&again, "title") == "Run this command again?" && options == Some(1), "{again}");
    ensure!(lines(&scene, "runs")? == 1, "it is not run before the answer");
    host.answer(&again, &json!(ONCE))?;
    let (ended, output) = host.finish(id)?;
    ensure!(ended.get("exitCode") == Some(&json!(0)) && output.ends_with("done\n"), "{ended} {output}");
    ensure!(ended.to_string().contains("it was run again from its beginning"), "{ended}");
    ensure!(fs::read_to_string(scene.outside().join("new"))? == "x\n" && lines(&scene, "runs")? == 2);
    for rule in ["host.run-again", "base.outside"] {
        ensure!(log(&scene)?.contains(rule), "{rule}: {}", log(&scene)?);
    }
    // The approval was for this command alone.
    let id = begin(&mut host, &format!("echo y > {outside}/new"))?;
    let place = question(&mut host, &format!("{outside}/new"))?;
    host.answer(&place, &json!("refuse"))?;
    ensure!(host.finish(id)?.0.get("exitCode") == Some(&json!(1)));
    ensure!(fs::read_to_string(scene.outside().join("new"))? == "x\n");
    Ok(())
}

fn a_no_stays_a_no(user: User) -> Result<()> {
    let scene = scene(user)?;
    let outside = scene.outside().display().to_string();
    let mut host = host(&scene, Interface::Present)?;
    let script = format!("echo run >> runs; touch {outside}/one {outside}/two");
    let id = begin(&mut host, &script)?;
    let place = question(&mut host, &outside)?;
    host.answer(&place, &json!("refuse"))?;
    let (ended, _) = host.finish(id)?;
    ensure!(ended.to_string().contains("you said no") && lines(&scene, "runs")? == 1, "{ended}");
    let id = begin(&mut host, &script)?;
    let place = question(&mut host, &outside)?;
    host.answer(&place, &json!(ONCE))?;
    let again = question(&mut host, &script)?;
    host.answer(&again, &json!("refuse"))?;
    let (ended, _) = host.finish(id)?;
    ensure!(ended.to_string().contains("was not run again") && lines(&scene, "runs")? == 2, "{ended}");
    ensure!(!scene.outside().join("one").exists());
    Ok(())
}

fn an_answer_for_the_session_holds_for_the_next_command(user: User) -> Result<()> {
    let scene = scene(user)?;
    let outside = scene.outside().display().to_string();
    let mut host = host(&scene, Interface::Present)?;
    let script = format!("mkdir {outside}/made");
    let id = begin(&mut host, &script)?;
    let place = question(&mut host, &outside)?;
    host.answer(&place, &json!(SESSION))?;
    let again = question(&mut host, &script)?;
    host.answer(&again, &json!("refuse"))?;
    host.finish(id)?;
    ensure!(!scene.outside().join("made").exists());
    let (ended, output) = host.run(&format!("{script}; echo z > {outside}/kept/new"))?;
    ensure!(scene.outside().join("made").exists(), "{ended} {output}");
    // Denied paths stay denied, and are reported.
    ensure!(!scene.outside().join("kept/new").exists() && ended.to_string().contains("kept/new"), "{ended}");
    Ok(())
}

/// Names depend on the directory around them, too.
fn a_file_is_opened_without_its_neighbours(user: User) -> Result<()> {
    let scene = scene(user)?;
    let outside = scene.outside().display().to_string();
    let (one, two) = (scene.outside().join("one"), scene.outside().join("two"));
    for file in [&one, &two] {
        scene.write(file, "before\n")?;
    }
    let mut host = host(&scene, Interface::Present)?;
    let script = format!("echo after > {outside}/one && echo after > {outside}/two");
    let id = begin(&mut host, &script)?;
    for file in ["one", "two"] {
        let place = question(&mut host, &format!("{outside}/{file}"))?;
        host.answer(&place, &json!(if file == "one" { json!(ONCE) } else { json!("refuse") }))?;
        if file == "one" {
            let again = question(&mut host, &script)?;
            host.answer(&again, &json!(ONCE))?;
        }
    }
    ensure!(host.finish(id)?.0.get("exitCode") == Some(&json!(1)));
    ensure!(fs::read_to_string(&one)? == "after\n" && fs::read_to_string(&two)? == "before\n");
    let script = format!("rm {outside}/one");
    let id = begin(&mut host, &script)?;
    for subject in [&outside, &script] {
        let asked = question(&mut host, subject)?;
        host.answer(&asked, &json!(ONCE))?;
    }
    ensure!(host.finish(id)?.0.get("exitCode") == Some(&json!(0)) && !one.exists());
    Ok(())
}

/// The agent controls the output of its commands.
fn made_up_lines_open_nothing(user: User) -> Result<()> {
    let scene = scene(user)?;
    let [home, outside, project] =
        [scene.home(), scene.outside(), scene.project()].map(|path| path.display().to_string());
    symlink(scene.outside(), scene.project().join("link"))?;
    let mut host = host(&scene, Interface::Present)?;
    let paths = [
        format!("{home}/.ssh/id_rsa"),
        format!("{home}/.ssh/new"),
        format!("{home}/new"),
        home,
        "/".to_owned(),
        "/new".to_owned(),
        "/var/tmp/new".to_owned(),
        "/proc/sys/kernel/x".to_owned(),
        "/sys/kernel/x".to_owned(),
        "/dev/null".to_owned(),
        format!("{project}/new"),
        "new".to_owned(),
        "/tmp/new".to_owned(),
        format!("{outside}/kept/file"),
        format!("{outside}/kept/new"),
        format!("link/kept/{}", "../".repeat(40)),
        format!("{outside}/\\033[2Jx"),
        format!("{outside}/a\\rb"),
        format!("{outside}/\\377"),
    ];
    let lines = paths.iter().map(|path| format!("printf \"touch: '{path}': Read-only file system\\n\"\n"));
    let script = lines.collect::<String>() + "exit 1";
    let (ended, output) = host.run(&script)?;
    let said = output.lines().filter(|line| line.contains("Read-only file system")).count();
    ensure!(said == paths.len(), "{ended} {output}");
    let notes = ended.get("notes").map(ToString::to_string).unwrap_or_default();
    ensure!(notes.contains("kept/file") && !notes.contains("id_rsa"), "{ended}");
    // A command that succeeded leads to no question.
    host.run(&script.replace("exit 1", &format!("echo \"'{outside}/x': Read-only file system\"; exit 0")))?;
    // The question shows the real path, not the name of the link.
    let id = begin(&mut host, "echo \"'link/new': Read-only file system\"; exit 1")?;
    let place = question(&mut host, &outside)?;
    host.answer(&place, &json!("refuse"))?;
    host.finish(id)?;
    Ok(())
}

fn there_is_an_end_to_questions(user: User) -> Result<()> {
    let scene = scene(user)?;
    for number in 0..9 {
        scene.write(&scene.outside().join(format!("{number}/file")), "")?;
    }
    let mut host = host(&scene, Interface::Present)?;
    let outside = scene.outside().display().to_string();
    let id = begin(&mut host, &format!("touch {outside}/{{0..8}}/new"))?;
    for number in 0..5 {
        let place = question(&mut host, &format!("{outside}/{number}"))?;
        host.answer(&place, &json!("refuse"))?;
    }
    ensure!(host.finish(id)?.0.get("exitCode") == Some(&json!(1)));
    Ok(())
}

fn nobody_is_asked_where_nobody_is(user: User) -> Result<()> {
    let scene = scene(user)?;
    let mut host = host(&scene, Interface::Absent)?;
    let (ended, _) = host.run(&format!("touch {}/new", scene.outside().display()))?;
    ensure!(ended.get("exitCode") == Some(&json!(1)) && !scene.outside().join("new").exists(), "{ended}");
    Ok(())
}

fn on_a_terminal_it_is_the_same(user: User) -> Result<()> {
    let scene = scene(user)?;
    let outside = scene.outside().display().to_string();
    let script = format!("[ -t 2 ] && echo run >> runs; echo x > {outside}/new && echo did");
    scene.write(&scene.project().join("script"), &script)?;
    let filter = scene.at("filter.py");
    let through = ["python3", filter.to_str().context("a path is text")?];
    let command = ["run", "--ask", "prompt", "--", "/bin/bash", "script"];
    let mut terminal = Terminal::start_through(&scene, &through, &command)?;
    for label in ["] If the command runs again", "] Run it again"] {
        terminal.wait_for(label)?;
        let key = terminal.shown().lines().find_map(|line| line.trim().strip_prefix('[')?.split_once(label));
        let key = key.context("a key")?.0.to_owned();
        terminal.press(&format!("{key}\r"))?;
    }
    let (code, shown) = terminal.end()?;
    ensure!(code == 0 && shown.contains("did") && shown.contains("Read-only file system"), "{code}: {shown}");
    ensure!(fs::read_to_string(scene.outside().join("new"))? == "x\n" && lines(&scene, "runs")? == 2);

    // An approval on the command line does not permit running the command twice.
    fs::remove_file(scene.outside().join("new"))?;
    let command = ["run", "--ask", "allow", "--", "/bin/bash", "script"];
    let (code, shown) = Terminal::start_through(&scene, &through, &command)?.end()?;
    ensure!(code == 1 && lines(&scene, "runs")? == 3, "{code}: {shown}");
    Ok(())
}

/// There Landlock covers the files as well, and refuses like the mounts do.
fn beside_another_listener_it_is_the_same(user: User) -> Result<()> {
    let scene = scene_under(user, LISTENER)?;
    let outside = scene.outside().display().to_string();
    let mut host = host(&scene, Interface::Present)?;
    let script = format!("mkdir {outside}/made && touch {outside}/made/file");
    let id = begin(&mut host, &script)?;
    for subject in [&outside, &script] {
        let asked = question(&mut host, subject)?;
        host.answer(&asked, &json!(ONCE))?;
    }
    let (ended, output) = host.finish(id)?;
    ensure!(scene.outside().join("made/file").exists(), "{ended} {output}");
    let (ended, _) = host.run(&format!("touch {outside}/kept/new"))?;
    ensure!(!scene.outside().join("kept/new").exists() && ended.to_string().contains("kept/new"), "{ended}");
    Ok(())
}

fn lines(scene: &Scene, name: &str) -> Result<usize> {
    Ok(fs::read_to_string(scene.project().join(name))?.lines().count())
}

/// Returns the text of all logs of the scene.
fn log(scene: &Scene) -> Result<String> {
    let shown = scene.portcullis(&["audit", "tail", "--json"])?;
    Ok(shown.ended_with(0)?.stdout)
}
