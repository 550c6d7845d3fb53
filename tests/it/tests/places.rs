//! Questions of commands are about directories that a person recognises; one answer covers everything that the command
//! does there, and a kept answer matches again.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    one_command_asks_once_for_a_place,
    a_no_is_for_the_place,
    a_place_is_never_a_home_or_the_system,
    protected_names_in_a_place_keep_their_questions,
    a_place_that_becomes_a_link_opens_nothing,
    a_file_that_was_allowed_can_be_replaced,
    a_closed_place_that_a_command_names_is_a_question,
    a_remote_of_git_in_a_closed_place_is_a_question,
    a_new_directory_in_a_closed_place_is_a_question,
    a_clone_of_what_commands_read_has_no_further_question,
    a_closed_place_stays_closed_where_nobody_is,
    harmless_files_of_git_are_written_in_place,
    byte_code_beside_sources_is_refused_without_a_question,
);

/// What a command does outside of the project, in one place, with a check that it has done it.
struct Deed {
    script: &'static str,
    /// The place that the question names, below the outside directory.
    place: &'static str,
    check: &'static str,
}

const DEEDS: &[Deed] = &[
    Deed {
        script: "git push -q $OUT/origin.git main",
        place: "origin.git",
        check: "git -C $OUT/origin.git log -1 main",
    },
    Deed { script: "cp -r src $OUT/copy", place: "copy", check: "diff -r src $OUT/copy" },
    Deed { script: "rm -r $OUT/tree", place: "tree", check: "test ! -e $OUT/tree" },
    Deed {
        script: "mkdir -p $OUT/made/x/y && echo 1 > $OUT/made/x/y/f && ln -s f $OUT/made/x/y/l && \
            ln $OUT/made/x/y/f $OUT/made/x/g && mv $OUT/made/x/g $OUT/made/x/h && rm $OUT/made/x/y/l",
        place: "made",
        check: "test -f $OUT/made/x/h && test ! -e $OUT/made/x/y/l",
    },
    Deed { script: "sed -i s/one/two/ $OUT/notes/f", place: "notes", check: "grep two $OUT/notes/f" },
    Deed {
        script: "cd $OUT/crate/src && echo x > lib.rs && mkdir -p ../target/debug && touch ../Cargo.lock",
        place: "crate",
        check: "test -d $OUT/crate/target/debug",
    },
];

/// A repository as the project, and places outside.
fn prepared(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    for file in ["tree/a/b/c", "tree/a/d", "tree/e/f"] {
        scene.write(&scene.outside().join(file), "x")?;
    }
    scene.write(&scene.outside().join("notes/f"), "one\n")?;
    scene.write(&scene.outside().join("crate/Cargo.toml"), "")?;
    scene.write(&scene.outside().join("crate/src/lib.rs"), "")?;
    scene.write(&scene.project().join("src/a/b/c"), "x")?;
    scene.write(&scene.project().join("src/d"), "x")?;
    let script = "git init -q -b main && git add -A && git commit -q -m one && \
        git init -q --bare $OUT/origin.git && git push -q $OUT/origin.git main && \
        git commit -q --allow-empty -m two && git gc -q";
    outside(&scene, script)?.ended_with(0)?;
    Ok(scene)
}

/// Runs a script of the user, without the sandbox.
fn outside(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut command);
    for (name, value) in environment(scene) {
        command.env(name, value);
    }
    Finished::run(command.args(["-c", script]))
}

fn environment(scene: &Scene) -> Vec<(&'static str, String)> {
    let text = |text: &str| text.to_owned();
    vec![
        ("PATH", text("/usr/bin:/bin")),
        ("HOME", scene.home().display().to_string()),
        ("OUT", scene.outside().display().to_string()),
        ("GIT_AUTHOR_NAME", text("A")),
        ("GIT_AUTHOR_EMAIL", text("a@b.test")),
        ("GIT_COMMITTER_NAME", text("A")),
        ("GIT_COMMITTER_EMAIL", text("a@b.test")),
    ]
}

/// Runs a script in the sandbox, gives each question the answer with this key, and returns the questions and the output.
pub(crate) fn run(host: &mut Serve, scene: &Scene, script: &str, key: &str) -> Result<(Vec<Value>, String)> {
    let variables = environment(scene).into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
    let id = host.begin(script, &Value::Object(variables.collect()))?;
    let mut questions = Vec::new();
    loop {
        let message = host.wait("question or reply", |message| {
            message.get("method").and_then(Value::as_str) == Some("ask")
                || message.get("method").is_none() && message.get("id").and_then(Value::as_u64) == Some(id)
        })?;
        if message.get("method").is_none() {
            host.put_back(message);
            let (result, output) = host.finish(id)?;
            return Ok((questions, format!("{result}: {output}")));
        }
        // A question about content offers this command only.
        let answer = if key == "refuse" {
            json!("refuse")
        } else {
            choice(&message, key).or_else(|_| choice(&message, "o"))?
        };
        host.answer(&message, &answer)?;
        questions.push(message);
    }
}

/// Returns the index of the narrowest option with this key.
fn choice(question: &Value, key: &str) -> Result<Value> {
    let options = question.pointer("/params/options").and_then(Value::as_array);
    let is_it = |option: &Value| option.get("key") == Some(&json!(key));
    let place = options.and_then(|options| options.iter().position(is_it));
    Ok(json!(place.with_context(|| format!("no {key}: {question}"))?))
}

fn subject(question: &Value) -> &str {
    question.pointer("/params/subject").and_then(Value::as_str).unwrap_or_default()
}

/// The control is the same command without the sandbox.
fn one_command_asks_once_for_a_place(user: User) -> Result<()> {
    let control = prepared(user)?;
    for Deed { script, check, .. } in DEEDS {
        outside(&control, script)?.ended_with(0)?;
        outside(&control, check)?.ended_with(0)?;
    }
    for key in ["o", "P"] {
        let scene = prepared(user)?;
        for Deed { script, place, check } in DEEDS {
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let (questions, output) = run(&mut host, &scene, script, key)?;
            let place = scene.outside().join(place);
            let texts: Vec<&str> = questions.iter().map(subject).collect();
            ensure!(texts == [place.to_str().context("text")?], "{script} with {key}: {texts:?}; {output}");
            let mut offered = questions.iter().filter_map(|question| question.pointer("/params/options"));
            ensure!(offered.all(|options| !options.to_string().contains("tmp_objdir")), "{questions:?}");
            let checked = outside(&scene, check)?;
            ensure!(checked.code() == 0, "{script} with {key}: {checked:?}; {output}");
            ensure!(host.close()?.success());
        }
        if key == "P" {
            // What was answered for the project is not asked about again.
            let other = prepared(user)?;
            fs::rename(scene.outside(), scene.at("used"))?;
            fs::rename(other.outside(), scene.outside())?;
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            for Deed { script, check, .. } in DEEDS.iter().filter(|deed| !makes_its_place(deed)) {
                let (questions, output) = run(&mut host, &scene, script, "refuse")?;
                ensure!(questions.is_empty(), "{script}: {questions:?}; {output}");
                let checked = outside(&scene, check)?;
                ensure!(checked.code() == 0, "{script}: {checked:?}; {output}");
            }
        }
    }
    Ok(())
}

/// A place that is not there when a session begins has no mount: it is asked about as if it were new.
fn makes_its_place(deed: &Deed) -> bool {
    ["copy", "made"].contains(&deed.place)
}

/// A refused command asks no more about the place, and changes nothing in it.
fn a_no_is_for_the_place(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for (script, asked) in [
        ("rm -rf $OUT/tree", 1),
        ("git push -q $OUT/origin.git main", 1),
        ("rm -rf $OUT/tree; echo x > $OUT/notes/f; echo x > $OUT/notes/g", 2),
    ] {
        let (questions, output) = run(&mut host, &scene, script, "refuse")?;
        ensure!(questions.len() == asked, "{script}: {questions:?}; {output}");
        ensure!(output.contains("you said no"), "{output}");
    }
    ensure!(scene.outside().join("tree/a/b/c").exists());
    ensure!(fs::read_to_string(scene.outside().join("notes/f"))? == "one\n");
    Ok(())
}

/// Arguments and markers of the agent's choice do not make a question about a home, or about what is around one.
fn a_place_is_never_a_home_or_the_system(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let top = scene.at("");
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let wide = format!(
        "sh -c 'echo x > $OUT/notes/new' / /var /var/tmp {} {}",
        top.display(),
        scene.home().display()
    );
    let (questions, output) = run(&mut host, &scene, &wide, "refuse")?;
    let texts: Vec<&str> = questions.iter().map(subject).collect();
    ensure!(texts == [scene.outside().join("notes").to_str().context("text")?], "{texts:?}; {output}");
    // A file beside the homes: the question is about the file.
    let beside = format!("echo x > {}", scene.at("file").display());
    let (questions, output) = run(&mut host, &scene, &beside, "refuse")?;
    let texts: Vec<&str> = questions.iter().map(subject).collect();
    ensure!(texts == [scene.at("file").to_str().context("text")?], "{texts:?}; {output}");
    // A repository that a command makes of a directory is asked about as the directory that it is, and its yes reaches
    // nothing beside it.
    let planted = "mkdir $OUT/.git && echo x > $OUT/notes/f";
    let (questions, output) = run(&mut host, &scene, planted, "refuse")?;
    let texts: Vec<&str> = questions.iter().map(subject).collect();
    ensure!(texts == [scene.outside().to_str().context("text")?], "{texts:?}; {output}");
    Ok(())
}

/// A yes for a repository is none for its hooks and its settings, nor for start-up files in it.
fn protected_names_in_a_place_keep_their_questions(user: User) -> Result<()> {
    let scene = prepared(user)?;
    outside(&scene, "git init -q $OUT/repo && touch $OUT/repo/a")?.ended_with(0)?;
    let attack = "echo x > $OUT/repo/a; echo '#!/bin/sh' > $OUT/repo/.git/hooks/pre-commit; \
        echo '[core] fsmonitor = ./evil' >> $OUT/repo/.git/config; echo x > $OUT/repo/.envrc; true";
    let names = [".git/hooks/pre-commit", ".envrc"];
    for key in ["o", "s", "P"] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let (questions, output) = run(&mut host, &scene, "echo x > $OUT/repo/a", key)?;
        ensure!(questions.len() == 1, "{key}: {questions:?}; {output}");
        let (questions, output) = run(&mut host, &scene, attack, "refuse")?;
        for name in names {
            ensure!(
                !scene.outside().join("repo").join(name).exists(),
                "{key} {name}: {questions:?}; {output}"
            );
        }
        let config = fs::read_to_string(scene.outside().join("repo/.git/config"))?;
        ensure!(!config.contains("fsmonitor"), "{key}: {questions:?}; {output}");
        ensure!(host.close()?.success());
    }
    outside(&scene, attack)?.ended_with(0)?;
    for name in names {
        ensure!(scene.outside().join("repo").join(name).exists(), "the control: {name}");
    }
    Ok(())
}

/// A place is replaced by a link while the question waits, and after it was answered for the project.
fn a_place_that_becomes_a_link_opens_nothing(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let (notes, private) = (scene.outside().join("notes"), scene.home().join("private"));
    scene.write(&private.join("f"), "before")?;
    let swap = || -> Result<()> {
        fs::rename(&notes, scene.outside().join("kept"))?;
        Ok(symlink(&private, &notes)?)
    };
    let unswap = || -> Result<()> {
        fs::remove_file(&notes)?;
        Ok(fs::rename(scene.outside().join("kept"), &notes)?)
    };
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for key in ["o", "P"] {
        let id = host
            .begin("echo evil > $OUT/notes/f", &json!({ "PATH": "/usr/bin:/bin", "OUT": scene.outside() }))?;
        let question = host.question()?;
        swap()?;
        host.answer(&question, &choice(&question, key)?)?;
        host.finish(id)?;
        ensure!(fs::read_to_string(private.join("f"))? == "before", "{key}");
        fs::write(notes.join("f"), "control")?;
        ensure!(fs::read_to_string(private.join("f"))? == "control", "by name it would have been");
        fs::write(private.join("f"), "before")?;
        unswap()?;
    }
    swap()?;
    let mut next = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (_, output) = run(&mut next, &scene, "echo evil > $OUT/notes/f; rm -f $OUT/notes/f; true", "refuse")?;
    ensure!(fs::read_to_string(private.join("f"))? == "before", "{output}");
    Ok(())
}

/// `sed -i` and editors replace an allowed file with a new one. A link in its place is not covered by the answer.
fn a_file_that_was_allowed_can_be_replaced(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let (file, secret) = (scene.outside().join("notes/f"), scene.home().join("secret"));
    scene.write(&secret, "one\n")?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": [".", file], "denyWrite": [] },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (questions, output) =
        run(&mut host, &scene, "echo one > $OUT/notes/f && cat $OUT/notes/f", "refuse")?;
    ensure!(questions.is_empty() && output.ends_with("one\n"), "{questions:?}; {output}");
    let script = "sed -i s/one/two/ $OUT/notes/f && cat $OUT/notes/f && echo three >> $OUT/notes/f";
    let (questions, output) = run(&mut host, &scene, script, "o")?;
    let texts: Vec<&str> = questions.iter().map(subject).collect();
    ensure!(texts == [scene.outside().join("notes").to_str().context("text")?], "{texts:?}; {output}");
    ensure!(fs::read_to_string(&file)? == "two\nthree\n", "{output}");
    for attack in [
        format!("ln -s {} $OUT/notes/l && mv $OUT/notes/l $OUT/notes/f", secret.display()),
        format!("rm -f $OUT/notes/f && ln -s {} $OUT/notes/f", secret.display()),
    ] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let id = host.begin(&attack, &json!({ "PATH": "/usr/bin:/bin", "OUT": scene.outside() }))?;
        let mut is_asked_for_the_link = false;
        while !is_asked_for_the_link {
            let question = host.question()?;
            is_asked_for_the_link = question.pointer("/params/rule") == Some(&json!("host.symbolic-links"));
            let answer = if is_asked_for_the_link { json!("refuse") } else { choice(&question, "o")? };
            host.answer(&question, &answer)?;
        }
        host.finish(id)?;
        ensure!(!file.is_symlink(), "{attack}");
        outside(&scene, &format!("rm -f $OUT/notes/l; {attack}"))?.ended_with(0)?;
        ensure!(file.is_symlink(), "the control: {attack}");
        fs::remove_file(&file)?;
        scene.write(&file, "one\n")?;
    }
    Ok(())
}

/// A project with siblings in a closed home.
pub(crate) fn with_siblings(user: User) -> Result<Scene> {
    let scene = prepared(user)?;
    let work = scene.home().join("work");
    scene.write(&work.join("other/a/b"), "needle\n")?;
    scene.write(&work.join("gone/a/b"), "x")?;
    scene.write(&scene.home().join(".config/tool/f"), "needle\n")?;
    scene.write(&scene.home().join("notes.txt"), "needle\n")?;
    outside(
        &scene,
        "git clone -q . ~/work/lib && git clone -q --bare . ~/work/origin.git && \
        git commit -q --allow-empty -m three",
    )?
    .ended_with(0)?;
    Ok(scene)
}

/// What a command does with a closed place, how often it is asked, and a check.
const CLOSED: &[(&str, &str, &str)] = &[
    ("git clone -q ~/work/lib got", "work/lib", "test -f got/src/d"),
    ("cp -r ../home/work/other .", "work/other", "grep needle other/a/b"),
    ("grep -r needle ../home/work/other", "work/other", "true"),
    ("cat ~/notes.txt > copy", "notes.txt", "grep needle copy"),
    ("git push -q ../home/work/origin.git main", "work/origin.git", "git -C ~/work/origin.git log -3 main"),
    ("rm -r ~/work/gone/a/b", "work/gone/a", "test ! -e ~/work/gone/a/b"),
];

/// The control is the same command without the sandbox.
fn a_closed_place_that_a_command_names_is_a_question(user: User) -> Result<()> {
    let control = with_siblings(user)?;
    for (script, _, check) in CLOSED {
        outside(&control, script)?.ended_with(0)?;
        outside(&control, check)?.ended_with(0)?;
    }
    for key in ["o", "P"] {
        let scene = with_siblings(user)?;
        let mut known: Vec<&str> = Vec::new();
        for (script, place, check) in CLOSED {
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let (questions, output) = run(&mut host, &scene, script, key)?;
            // A clone of a directory has its own question, about the address in its settings.
            let is_of_git =
                |question: &&Value| question.pointer("/params/rule") == Some(&json!("host.git-config"));
            let texts: Vec<&str> = questions.iter().filter(|asked| !is_of_git(asked)).map(subject).collect();
            let path = scene.home().join(place);
            let expected = if key == "P" && known.contains(place) {
                vec![]
            } else {
                vec![path.to_str().context("text")?]
            };
            ensure!(texts == expected, "{script} with {key}: {texts:?}; {output}");
            // No answer says more than what it opens.
            let around = path.parent().context("a directory")?.display();
            let wide = [format!("in {around}\""), format!("below {around}\"")];
            let mut labels = questions.iter().filter_map(|question| question.pointer("/params/options/0"));
            ensure!(
                labels.all(|label| !wide.iter().any(|wide| label.to_string().contains(wide))),
                "{questions:?}"
            );
            let checked = outside(&scene, check)?;
            ensure!(checked.code() == 0, "{script} with {key}: {checked:?}; {output}");
            known.push(place);
            // A yes is for this command alone.
            if key == "o" {
                let (questions, output) = run(&mut host, &scene, script, "refuse")?;
                ensure!(questions.len() <= 1 && output.contains("exitCode"), "{script}: {questions:?}");
            }
            ensure!(host.close()?.success());
        }
    }
    Ok(())
}

/// Git takes the path of a remote from the project's own settings. A remote that the command does not name is not asked
/// about. The control is a command that git takes no remote for, and one whose question is answered with no.
fn a_remote_of_git_in_a_closed_place_is_a_question(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let add = "git remote add near ../home/work/origin.git && git remote add other ~/work/lib";
    outside(&scene, add)?.ended_with(0)?;
    let place = scene.home().join("work/origin.git").display().to_string();
    for (script, expected) in [
        ("git fetch -q near", vec![place.as_str()]),
        ("git push -q near main:new", vec![place.as_str()]),
        ("git log -1 --oneline", vec![]),
    ] {
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let (questions, output) = run(&mut host, &scene, script, "refuse")?;
        let is_done = output.contains("\"exitCode\":0");
        ensure!(is_done == expected.is_empty(), "refused, {script}: {output}");
        let asked: Vec<&str> = questions.iter().map(subject).collect();
        ensure!(asked == expected, "{script}: {questions:?}");
        let (questions, output) = run(&mut host, &scene, script, "o")?;
        ensure!(questions.len() == expected.len(), "{script}: {questions:?}");
        ensure!(output.contains("\"exitCode\":0"), "{script}: {output}");
    }
    outside(&scene, "git -C ~/work/origin.git log -1 new")?.ended_with(0)?;
    Ok(())
}

/// Commands that make a directory beside the project. The host makes it after a yes, and takes an empty one away again.
fn a_new_directory_in_a_closed_place_is_a_question(user: User) -> Result<()> {
    const NEW: &[(&str, &str, &str)] = &[
        ("git worktree add -q ~/work/fix -B fix && touch ~/work/fix/f", "work/fix", "test -f ~/work/fix/f"),
        ("git clone -q . ~/work/copy", "work/copy", "git -C ~/work/copy log -1"),
        ("git init -q ~/work/fresh && touch ~/work/fresh/f", "work/fresh", "test -f ~/work/fresh/f"),
        ("mkdir -p ~/work/plain && touch ~/work/plain/f", "work/plain", "test -f ~/work/plain/f"),
    ];
    let control = with_siblings(user)?;
    for (script, _, check) in NEW {
        outside(&control, script)?.ended_with(0)?;
        outside(&control, check)?.ended_with(0)?;
    }
    for key in ["o", "P"] {
        let scene = with_siblings(user)?;
        for (script, place, check) in NEW {
            let path = scene.home().join(place);
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let (questions, output) = run(&mut host, &scene, script, "refuse")?;
            let asked: Vec<&str> = questions.iter().map(subject).collect();
            ensure!(asked == [path.to_str().context("text")?], "{script}: {questions:?}; {output}");
            ensure!(!path.exists(), "refused, {script}: {output}");
            let (questions, output) = run(&mut host, &scene, script, key)?;
            ensure!(questions.len() == 1, "{script}: {questions:?}; {output}");
            let checked = outside(&scene, check)?;
            ensure!(checked.code() == 0, "{script} with {key}: {checked:?}; {output}");
            ensure!(host.close()?.success());
        }
        // It stays where it is not empty, and an answer for the project is one for the next session.
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        let script = "mkdir -p ~/work/plain && touch ~/work/plain/g";
        fs::remove_dir_all(scene.home().join("work/plain"))?;
        let (questions, output) = run(&mut host, &scene, script, "o")?;
        ensure!(questions.len() == usize::from(key == "o"), "{key}: {questions:?}; {output}");
        ensure!(scene.home().join("work/plain/g").is_file(), "{key}: {output}");
        let (_, output) = run(&mut host, &scene, "mkdir -p ~/work/empty", key)?;
        ensure!(!scene.home().join("work/empty").exists(), "{key}: {output}");
    }
    Ok(())
}

/// The address of what was cloned stands in the settings of the clone. The control is an address that commands do not
/// read: the user's git would fetch from there for them.
fn a_clone_of_what_commands_read_has_no_further_question(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (questions, output) = run(&mut host, &scene, "git clone -q ~/work/lib got", "P")?;
    ensure!(questions.len() == 1, "{questions:?}; {output}");
    outside(&scene, "git -C got fetch -q")?.ended_with(0)?;
    // Git writes `/path/of/project/../home/work/lib`.
    let (questions, output) = run(&mut host, &scene, "git clone -q ../home/work/lib again", "P")?;
    ensure!(questions.is_empty(), "{questions:?}; {output}");
    let attack = "printf '[remote \"x\"]\n\turl = %s\n' ../home/work/origin.git >> got/.git/config";
    let (questions, output) = run(&mut host, &scene, attack, "refuse")?;
    let rules: Vec<_> = questions.iter().filter_map(|question| question.pointer("/params/rule")).collect();
    ensure!(rules.contains(&&json!("host.git-config")), "{questions:?}; {output}");
    let config = fs::read_to_string(scene.project().join("got/.git/config"))?;
    ensure!(!config.contains("origin.git"), "{config}");
    outside(&scene, attack)?.ended_with(0)?;
    let config = fs::read_to_string(scene.project().join("got/.git/config"))?;
    ensure!(config.contains("origin.git"), "the control: {config}");
    Ok(())
}

/// Without an interface, a directory that a command names stays closed, and the model learns which one, the rule, and
/// how to ask. Paths that a command does not name, and the state of tools, are no question.
fn a_closed_place_stays_closed_where_nobody_is(user: User) -> Result<()> {
    let scene = with_siblings(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (_, output) = run(&mut host, &scene, "cat ~/work/other/a/b", "refuse")?;
    ensure!(!output.contains("needle"), "{output}");
    for said in ["work/other", "closed to commands", "base.closed", "read tool"] {
        ensure!(output.contains(said), "{said}: {output}");
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    for script in ["cat ~/.config/tool/f", "ls ~/", "cat ~/work/missing"] {
        let (questions, output) = run(&mut host, &scene, script, "refuse")?;
        ensure!(questions.is_empty() && !output.contains("needle"), "{script}: {questions:?}; {output}");
    }
    // A link in the project names what it leads to, and no protected file is opened by a yes to the place around it.
    scene.write(&scene.home().join(".ssh/id_rsa"), "hunter2")?;
    symlink(scene.home().join("work/other"), scene.project().join("near"))?;
    for script in ["cat near/a/b ~/.ssh/id_rsa", "cat ~/work/../.ssh/id_rsa"] {
        let (_, output) = run(&mut host, &scene, script, "o")?;
        ensure!(!output.contains("hunter2"), "{script}: {output}");
    }
    Ok(())
}

/// In a directory that a command has made, git's files are judged when they are written: harmless ones are no question,
/// and harmful ones are not put in place, which is said. In a directory that was there they are asked about.
fn harmless_files_of_git_are_written_in_place(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let patch = "git checkout -q -b side && echo y > src/d && git commit -q -a -m side && \
        git format-patch -q -1 --stdout > p.mbox && git checkout -q main";
    outside(&scene, patch)?.ended_with(0)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let config = "[core]\\n\\tbare = false\\n";
    let new = |text: &str| {
        format!(
            "rm -rf new; mkdir -p new/.git/objects new/.git/refs; echo 'ref: refs/heads/main' > new/.git/HEAD; \
             printf '{text}' > new/.git/config; sleep 0.1; cat new/.git/config"
        )
    };
    for script in [
        new(config),
        "git -c user.name=A -c user.email=a@b.test am -q p.mbox && git log -1 --format=%s".to_owned(),
    ] {
        let (questions, output) = run(&mut host, &scene, &script, "refuse")?;
        ensure!(
            questions.is_empty() && output.contains("\"exitCode\":0"),
            "{script}: {questions:?}; {output}"
        );
    }
    let harmful = new("[core]\\n\\tfsmonitor = ./evil\\n");
    let (questions, output) = run(&mut host, &scene, &harmful, "refuse")?;
    ensure!(questions.is_empty() && output.contains("host.git-config"), "{questions:?}; {output}");
    ensure!(!scene.project().join("new/.git/config").exists(), "{output}");
    let there = "printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/config";
    let (questions, output) = run(&mut host, &scene, there, "refuse")?;
    ensure!(questions.len() == 1, "{questions:?}; {output}");
    outside(&scene, &harmful)?.ended_with(0)?;
    ensure!(scene.project().join("new/.git/config").exists(), "the control");
    Ok(())
}

/// Python works without its byte code, so a yes or a no would change nothing. The control is another name beside it.
fn byte_code_beside_sources_is_refused_without_a_question(user: User) -> Result<()> {
    let scene = prepared(user)?;
    scene.write(&scene.outside().join("notes/lib.py"), "print('imported')\n")?;
    let cache = scene.outside().join("notes/__pycache__");
    let script = "PYTHONPATH=$OUT/notes python3 -c 'import lib'";
    outside(&scene, script)?.ended_with(0)?;
    ensure!(cache.exists(), "the control writes byte code");
    fs::remove_dir_all(&cache)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let (questions, output) = run(&mut host, &scene, script, "o")?;
    ensure!(questions.is_empty() && output.contains("imported"), "{questions:?}; {output}");
    ensure!(!output.contains("[sandbox]") && !cache.exists(), "{output}");
    let (questions, output) = run(&mut host, &scene, "mkdir $OUT/notes/pycache", "o")?;
    ensure!(questions.len() == 1, "{questions:?}; {output}");
    ensure!(host.close()?.success());
    let log = scene.portcullis(&["audit", "tail", "--denied"])?;
    ensure!(log.stdout.contains("__pycache__"), "{log:?}");
    Ok(())
}
