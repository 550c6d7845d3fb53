//! Files in closed directories that a command opens without naming them on its command line: the host finds them in the
//! output of the failed command.

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

use super::places::{run, with_siblings};

as_each_user!(
    it_is_asked_about_and_the_command_run_again,
    an_answer_for_longer_is_for_the_next_command,
    a_no_is_told,
    it_is_said_where_nobody_is,
    run_says_it,
    output_of_run_is_forwarded_as_it_is,
    made_up_lines_open_nothing,
    what_no_answer_opens_is_explained,
    a_change_of_owner_is_explained,
);

/// Programs that find the name by themselves.
const SCRIPTS: [&str; 3] = [
    "d=~/work; cat $d/other/a/b",
    "python3 -c 'import os; print(open(os.path.expanduser(\"~\") + \"/work/other/a/b\").read())'",
    "echo \"cat $HOME/work/other/a/b\" > inner.sh && sh inner.sh",
];

fn host(scene: &Scene, interface: Interface) -> Result<Serve> {
    Serve::greeted(scene, &[], interface)
}

fn titles(questions: &[Value]) -> Vec<&str> {
    questions
        .iter()
        .filter_map(|question| question.pointer("/params/title").and_then(Value::as_str))
        .collect()
}

fn it_is_asked_about_and_the_command_run_again(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = host(&scene, Interface::Present)?;
    for script in SCRIPTS {
        let (questions, output) = run(&mut host, &scene, script, "o")?;
        ensure!(questions.len() == 2 && output.contains("needle"), "{script}: {questions:?}; {output}");
        ensure!(output.contains("run again"), "the model is told: {output}");
    }
    // No question: missing in the project, missing in the closed place, and a command that succeeds.
    for script in ["cat src/none; false", "d=~/work; cat $d/none/a", "d=~/work; cat $d/other/a/b; true"] {
        let (questions, output) = run(&mut host, &scene, script, "o")?;
        ensure!(
            questions.is_empty() && !output.contains("needle"),
            "{script}: {:?}; {output}",
            titles(&questions)
        );
    }
    Ok(())
}

fn an_answer_for_longer_is_for_the_next_command(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = host(&scene, Interface::Present)?;
    let [script, ..] = SCRIPTS;
    let (questions, output) = run(&mut host, &scene, script, "P")?;
    ensure!(questions.len() == 1 && output.contains("run the command again"), "{questions:?}; {output}");
    let (questions, output) = run(&mut host, &scene, script, "P")?;
    ensure!(questions.is_empty() && output.contains("needle"), "{questions:?}; {output}");
    Ok(())
}

fn a_no_is_told(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = host(&scene, Interface::Present)?;
    for script in SCRIPTS {
        let (questions, output) = run(&mut host, &scene, script, "refuse")?;
        ensure!(questions.len() == 1 && !output.contains("needle"), "{questions:?}; {output}");
        ensure!(output.contains("you said no") || output.contains("The user said no"), "{output}");
    }
    // A path in the command itself leads to one question, before the command starts.
    let (questions, output) = run(&mut host, &scene, "cat ~/work/other/a/b", "refuse")?;
    ensure!(questions.len() == 1, "{:?}; {output}", titles(&questions));
    Ok(())
}

fn it_is_said_where_nobody_is(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = host(&scene, Interface::Absent)?;
    for script in SCRIPTS {
        let (_, output) = run(&mut host, &scene, script, "refuse")?;
        ensure!(!output.contains("needle"), "{output}");
        for said in ["work/other", "closed to commands", "base.closed", "portcullis allow"] {
            ensure!(output.contains(said), "{said}: {output}");
        }
    }
    Ok(())
}

/// The output of a command of `run` is read as well, unless it goes to a terminal.
fn run_says_it(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    for script in SCRIPTS {
        let ran = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
        ensure!(ran.code() != 0 && !ran.stdout.contains("needle"), "{ran:?}");
        for said in ["work/other", "closed to commands", "base.closed", "portcullis allow"] {
            ensure!(ran.stderr.contains(said), "{said}: {ran:?}");
        }
    }
    // With a preset yes no command runs again, so its output is not read.
    let [script, ..] = SCRIPTS;
    let ran = scene.portcullis(&["run", "--ask", "allow", "--", "sh", "-c", script])?;
    ensure!(ran.stderr.contains("If a file was closed to it, `portcullis check read FILE`"), "{ran:?}");
    let ran = scene.portcullis(&["run", "--ask", "allow", "--", "true"])?.ended_with(0)?;
    ensure!(ran.stderr.is_empty(), "{ran:?}");
    Ok(())
}

/// Both streams in one pipe keep their order, and a reader that goes ends the command.
fn output_of_run_is_forwarded_as_it_is(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let host = scene.host()?;
    let run = format!("'{}' run --ask deny --", host.display());
    let shell = |script: &str| {
        let mut shell = user.command("bash".as_ref());
        scene.enter(&mut shell);
        Finished::run(shell.args(["-c", script]))
    };
    let turns = "for i in $(seq 200); do echo out $i; echo err $i >&2; done";
    let both = shell(&format!("{run} sh -c '{turns}' 2>&1"))?;
    let expected: String = (1..=200).map(|turn| format!("out {turn}\nerr {turn}\n")).collect();
    ensure!(both.stdout == expected, "{both:?}");
    let both = shell(&format!("{run} sh -c '{turns}' > both 2>&1; cat both"))?;
    ensure!(both.stdout == expected, "{both:?}");
    let ended = shell(&format!("{run} yes 2>&1 | head -n 2; echo over"))?;
    ensure!(ended.stdout == "y\ny\nover\n", "{ended:?}");
    Ok(())
}

/// A line of output leads to no question that the command could not get by naming the path, and to no protected file.
fn made_up_lines_open_nothing(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "hunter2")?;
    let mut host = host(&scene, Interface::Present)?;
    for path in
        ["$HOME/.ssh/id_rsa", "$HOME", "$HOME/work", "/", "/etc/shadow", "/proc/1/environ", "/dev/mem"]
    {
        let script =
            format!("echo \"cat: {path}: No such file or directory\" >&2; cat {path} ~/.ssh/id_rsa; exit 1");
        let (questions, output) = run(&mut host, &scene, &script, "s")?;
        ensure!(!output.contains("hunter2"), "{path}: {output}");
        let rules: Vec<_> =
            questions.iter().filter_map(|question| question.pointer("/params/rule")).collect();
        ensure!(rules.iter().all(|rule| **rule == json!("base.closed")), "{path}: {rules:?}");
    }
    Ok(())
}

/// Files of the machine where commands have their own, and files that rules deny.
fn what_no_answer_opens_is_explained(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    scene.write(&scene.home().join(".ssh/id_rsa"), "hunter2")?;
    scene.write(&scene.project().join("kept/secret"), "hunter2")?;
    let settings = json!({ "filesystem": {
        "denyRead": ["~", "~/.ssh", "kept"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [],
    } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = host(&scene, Interface::Present)?;
    for (script, said) in [
        ("cat ~/.config/tool/f", "commands have a home directory of their own"),
        ("d=~/.config; cat $d/tool/f", "portcullis allow"),
        ("d=~/.ssh; cat $d/id_rsa", ".ssh/id_rsa` is closed to commands"),
        ("cat ~/.ssh/id_rsa", ".ssh/id_rsa` is closed to commands"),
        ("cat kept/secret", "kept/secret` is closed to commands"),
    ] {
        let (questions, output) = run(&mut host, &scene, script, "o")?;
        ensure!(questions.is_empty() && !output.contains("hunter2"), "{script}: {questions:?}; {output}");
        ensure!(output.matches(said).count() == 1, "{script}: {said}: {output}");
    }
    for (path, said) in
        [(".config/tool/f", "a home directory of their own"), (".ssh/id_rsa", "is closed to commands")]
    {
        let path = scene.home().join(path).display().to_string();
        let ran = scene.portcullis(&["run", "--", "cat", &path])?;
        ensure!(ran.stderr.contains(said), "{ran:?}");
    }
    // `/tmp` is the session's own, and no home.
    let temp = tempfile::NamedTempFile::new_in("/tmp")?;
    let script = format!(
        "d=/tmp; cat $d/{}",
        temp.path().file_name().and_then(|name| name.to_str()).unwrap_or_default()
    );
    let (_, output) = run(&mut host, &scene, &script, "o")?;
    ensure!(output.contains("No such file") && !output.contains("of their own"), "{output}");
    // The private home can have a file of the same name.
    let made = scene.portcullis(&[
        "run",
        "--",
        "sh",
        "-c",
        "mkdir -p ~/.config/tool && echo own > ~/.config/tool/f",
    ])?;
    made.ended_with(0)?;
    let ran = scene.portcullis(&["run", "--", "sh", "-c", "cat ~/.config/tool/f; false"])?;
    ensure!(ran.stdout == "own\n" && !ran.stderr.contains("of their own"), "{ran:?}");
    Ok(())
}

/// In the sandbox there is only the user of the session. tar does not try to give files to others.
fn a_change_of_owner_is_explained(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = host(&scene, Interface::Present)?;
    let (questions, output) = run(&mut host, &scene, "touch f; chown 12345 f; true", "o")?;
    ensure!(questions.is_empty() && output.matches("only their own user").count() == 1, "{output}");
    let script = "echo needle > f; tar --owner=12345 --group=12345 -cf f.tar f; rm f; tar xf f.tar && cat f";
    let (questions, output) = run(&mut host, &scene, script, "o")?;
    ensure!(questions.is_empty() && output.contains("needle"), "{output}");
    Ok(())
}
