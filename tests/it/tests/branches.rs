//! Branches: commands work in an overlay of the project, which changes by a commit only.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, portcullis};
use serde_json::{Value, json};

use crate::undo::{difference, tree, tree_without_times};

as_each_user!(
    the_project_stays_and_a_commit_makes_it_what_the_branch_was,
    nothing_is_asked_in_a_branch_and_the_review_names_what_is_protected,
    a_conflict_is_shown_and_stays,
    several_branches_do_not_see_each_other,
    a_branch_is_used_by_one,
    a_branch_without_an_overlay_is_refused,
    a_project_that_moved_is_said,
    what_the_settings_make_writable_is_in_the_branch,
);

/// Runs a script in a branch.
pub(crate) fn run(scene: &Scene, branch: &str, script: &str) -> Result<Finished> {
    let flag = format!("--branch={branch}");
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", &flag, "--", "sh", "-c", script])?;
    Finished::run(command.current_dir(scene.project()))
}

/// Runs `portcullis branch`.
pub(crate) fn branch(scene: &Scene, arguments: &[&str]) -> Result<Finished> {
    let arguments = [&["branch"], arguments].concat();
    Finished::run(scene.portcullis_command(&arguments)?.current_dir(scene.project()))
}

/// Returns the changes that a review shows, by path.
pub(crate) fn review(scene: &Scene, name: &str) -> Result<BTreeMap<String, Value>> {
    let told: Value = serde_json::from_str(&branch(scene, &["show", name, "--json"])?.ended_with(0)?.stdout)?;
    let changes = told.get("changes").and_then(Value::as_array).context("changes")?;
    let by_path = |change: &Value| Some((change.get("path")?.as_str()?.to_owned(), change.clone()));
    Ok(changes.iter().filter_map(by_path).collect())
}

/// Every kind of change.
const CHANGES: &str = "echo more >> a; rm b; rm -r d; mkdir d; echo only > d/new; mkdir -p n/deep; \
    echo x > n/deep/x; ln n/deep/x n/same; ln -sfn elsewhere link; chmod 700 kept; mv moved renamed; \
    rm file; mkdir file; echo in > file/inside; rm -r directory; echo now > directory; truncate -s 1M n/sparse";

fn prepared(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    for name in ["a", "b", "d/x", "d/e/y", "kept", "moved", "file", "directory/z"] {
        scene.write(&scene.project().join(name), &format!("{name}\n"))?;
    }
    symlink("a", scene.project().join("link"))?;
    scene.user().own(&scene.project().join("link"))?;
    Ok(scene)
}

fn the_project_stays_and_a_commit_makes_it_what_the_branch_was(user: User) -> Result<()> {
    // What the same commands make of a project without a branch.
    let control = prepared(user)?;
    let mut command = control.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", CHANGES])?;
    Finished::run(command.current_dir(control.project()))?.ended_with(0)?;
    let wanted = tree_without_times(&control.project())?;
    let scene = prepared(user)?;
    let before = tree(&scene.project())?;
    let ran = run(&scene, "one", CHANGES)?.ended_with(0)?;
    ensure!(ran.stderr.contains("portcullis branch show one"), "{ran:?}");
    ensure!(tree(&scene.project())? == before, "the project has changed");
    // The next command sees what the first one did.
    let ran = run(&scene, "one", "cat a d/new; test -e b || echo gone")?.ended_with(0)?;
    ensure!(ran.stdout == "a\nmore\nonly\ngone\n", "{ran:?}");
    let changes = review(&scene, "one")?;
    ensure!(
        changes.get("d/x").and_then(|change| change.get("what")) == Some(&json!("removed")),
        "{changes:?}"
    );
    let shown = branch(&scene, &["show", "one", "--diff"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("+more"), "{shown:?}");
    let planned = branch(&scene, &["commit", "one", "--all", "--dry-run"])?.ended_with(0)?;
    ensure!(planned.stdout.contains("n/deep") && tree(&scene.project())? == before, "{planned:?}");
    let some = branch(&scene, &["commit", "one", "n/deep/x", "b", "--yes"])?.ended_with(0)?;
    ensure!(some.stdout.contains("4 names"), "{some:?}");
    let now = tree(&scene.project())?;
    let differs = difference(&before, &now);
    let expected: Vec<PathBuf> = ["b", "n", "n/deep", "n/deep/x"].map(PathBuf::from).into();
    ensure!(differs == expected, "{differs:?}");
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    ensure!(all.stdout.contains("the branch is removed"), "{all:?}");
    let now = tree_without_times(&scene.project())?;
    // The two names of one file were committed one after the other.
    let differs: Vec<PathBuf> =
        difference(&wanted, &now).into_iter().filter(|name| !name.ends_with("n/same")).collect();
    ensure!(differs.is_empty(), "{differs:?}: {wanted:?} and {now:?}");
    for _ in 0..2 {
        let undone = Finished::run(
            scene.portcullis_command(&["undo", "--all", "--yes"])?.current_dir(scene.project()),
        )?;
        undone.ended_with(0)?;
        let list = scene
            .portcullis_command(&["changes", "--list", "--json"])?
            .current_dir(scene.project())
            .output()?;
        let list: Value = serde_json::from_slice(&list.stdout)?;
        let newest = list.pointer("/sessions/1/session").and_then(Value::as_str).context("two commits")?;
        let mut other = scene.portcullis_command(&["undo", "--all", "--yes", "--session", newest])?;
        Finished::run(other.current_dir(scene.project()))?;
    }
    ensure!(tree(&scene.project())? == before, "{:?}", difference(&tree(&scene.project())?, &before));
    Ok(())
}

fn nothing_is_asked_in_a_branch_and_the_review_names_what_is_protected(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let ask = "echo x > .envrc; echo envrc $?; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; \
               echo ci $?; git config core.fsmonitor ./evil; echo config $?";
    let mut git = scene.program("git".as_ref());
    Finished::run(git.args(["init", "-q"]).arg(scene.project()))?.ended_with(0)?;
    // Control: without a branch these are questions, which nobody answers.
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", ask])?;
    let ran = Finished::run(command.current_dir(scene.project()))?;
    ensure!(!ran.stdout.contains("envrc 0") && !scene.project().join(".envrc").exists(), "control: {ran:?}");
    let ran = run(
        &scene,
        "one",
        &format!(
            "{ask}; echo token=ghp_abcdefghijklmnopqrstuvwxyz0123456789 > notes; echo x > .git/hooks/post-commit"
        ),
    )?;
    for done in ["envrc 0", "ci 0", "config 0"] {
        ensure!(ran.stdout.contains(done), "{done}: {ran:?}");
    }
    ensure!(ran.stderr.contains("host.git-hooks"), "what is denied stays denied: {ran:?}");
    let changes = review(&scene, "one")?;
    let decided = |path: &str| changes.get(path).and_then(|change| change.get("decision")).cloned();
    for path in [".envrc", ".github/workflows/ci.yml", ".git/config"] {
        ensure!(decided(path) == Some(json!("protected")), "{path}: {changes:?}");
    }
    ensure!(decided("notes") == Some(json!("allowed")), "{changes:?}");
    let secrets = changes.get("notes").and_then(|change| change.get("secrets")).cloned();
    ensure!(secrets == Some(json!(1)), "{changes:?}");
    ensure!(!changes.contains_key(".git/hooks/post-commit"), "{changes:?}");
    // They are left, unless they are named.
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    ensure!(all.stdout.contains("protected") && scene.project().join("notes").exists(), "{all:?}");
    ensure!(!scene.project().join(".envrc").exists(), "{all:?}");
    branch(&scene, &["commit", "one", ".envrc", "--yes"])?.ended_with(0)?;
    ensure!(scene.project().join(".envrc").exists(), "it was named");
    let config = fs::read_to_string(scene.project().join(".git/config"))?;
    ensure!(!config.contains("evil"), "{config}");
    branch(&scene, &["commit", "one", "--all", "--protected", "--yes"])?.ended_with(0)?;
    let config = fs::read_to_string(scene.project().join(".git/config"))?;
    ensure!(config.contains("evil"), "control: {config}");
    Ok(())
}

fn a_conflict_is_shown_and_stays(user: User) -> Result<()> {
    let scene = prepared(user)?;
    run(&scene, "one", "echo agent > a; echo agent > b; rm moved; rm -r d directory; echo agent > kept")?
        .ended_with(0)?;
    let project = scene.project();
    for (name, text) in [("a", "mine"), ("moved", "mine"), ("d/mine", "mine")] {
        scene.write(&project.join(name), text)?;
    }
    fs::remove_file(project.join("kept"))?;
    let changes = review(&scene, "one")?;
    let is_conflict =
        |path: &str| changes.get(path).and_then(|change| change.get("conflict")) == Some(&json!(true));
    for path in ["a", "moved", "d/mine"] {
        ensure!(is_conflict(path), "{path}: {changes:?}");
    }
    ensure!(!is_conflict("b"), "control: {changes:?}");
    let before = tree(&project)?;
    let all = branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(1)?;
    let now = tree(&project)?;
    // Names of `d`, and beside it, have changed: it may be another directory.
    for name in ["a", "moved", "d", "d/mine", "d/x"] {
        let name = PathBuf::from(name);
        ensure!(before.get(&name) == now.get(&name), "{}: {all:?}", name.display());
    }
    ensure!(
        fs::read_to_string(project.join("b"))? == "agent\n" && !project.join("directory").exists(),
        "control: {all:?}"
    );
    let over = branch(&scene, &["commit", "one", "a", "--overwrite", "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(project.join("a"))? == "agent\n", "{over:?}");
    let mut undo = scene.portcullis_command(&["undo", "--yes"])?;
    Finished::run(undo.current_dir(&project))?.ended_with(0)?;
    ensure!(fs::read_to_string(project.join("a"))? == "mine", "the user's version is lost");
    Ok(())
}

fn several_branches_do_not_see_each_other(user: User) -> Result<()> {
    let scene = prepared(user)?;
    run(&scene, "one", "echo one > a; echo one > of-one")?.ended_with(0)?;
    let ran = run(&scene, "two", "cat a; ls of-one; echo two > a")?.ended_with(0)?;
    ensure!(ran.stdout == "a\n", "{ran:?}");
    let named = branch(&scene, &["show"])?;
    ensure!(named.code() == 1 && named.stderr.contains("one, two"), "{named:?}");
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    // What the first one committed is a change of the project for the second.
    let all = branch(&scene, &["commit", "two", "--all", "--yes"])?.ended_with(1)?;
    ensure!(
        all.stdout.contains("conflict") && fs::read_to_string(scene.project().join("a"))? == "one\n",
        "{all:?}"
    );
    let listed = branch(&scene, &["list"])?.ended_with(0)?;
    ensure!(listed.stdout.contains("two") && !listed.stdout.contains("one"), "{listed:?}");
    branch(&scene, &["drop", "two", "--yes"])?.ended_with(0)?;
    let listed = branch(&scene, &["list"])?.ended_with(0)?;
    ensure!(listed.stdout.starts_with("no branches"), "{listed:?}");
    let left = scene.home().join(".local/state/portcullis/branches");
    ensure!(fs::read_dir(&left)?.count() == 0, "something is left in `{}`", left.display());
    // One in which nothing was changed is not kept.
    let ran = run(&scene, "", "cat a")?.ended_with(0)?;
    ensure!(ran.stderr.contains("is removed") && fs::read_dir(&left)?.count() == 0, "{ran:?}");
    Ok(())
}

fn a_branch_is_used_by_one(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let script = "echo x > a; echo ready; read line";
    let mut command =
        scene.portcullis_command(&["run", "--ask", "deny", "--branch=one", "--", "sh", "-c", script])?;
    let mut running = command
        .current_dir(scene.project())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()?;
    let mut first = [0; 6];
    std::io::Read::read_exact(running.stdout.as_mut().context("output")?, &mut first)?;
    for arguments in [
        &["commit", "one", "--all", "--yes"][..],
        &["drop", "one", "--yes"],
        &["commit", "one", "a", "--yes"],
    ] {
        let told = branch(&scene, arguments)?.ended_with(1)?;
        ensure!(told.stderr.contains("is in use"), "{told:?}");
    }
    let second = run(&scene, "one", "true")?.ended_with(125)?;
    ensure!(second.stderr.contains("is in use"), "{second:?}");
    let shown = branch(&scene, &["show", "one"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("a command runs in it"), "{shown:?}");
    drop(running.stdin.take());
    running.wait()?;
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    Ok(())
}

/// The state directory on a file system that cannot hold the changes of an overlay, because it is one itself.
const ON_AN_OVERLAY: &str = r#"
    layers="$HOME/layers" && mkdir -p "$layers" "$HOME/.local/state" && mount -t tmpfs none "$layers" &&
    mkdir "$layers/lower" "$layers/upper" "$layers/work" &&
    mount -t overlay -o "userxattr,lowerdir=$layers/lower,upperdir=$layers/upper,workdir=$layers/work" none \
        "$HOME/.local/state" || exit 99
    "$PORTCULLIS" run --ask deny --branch=one -- sh -c "echo ran; echo x > a"
"#;

/// A machine that denies user namespaces, and settings that accept Landlock instead.
const WITHOUT_NAMESPACES: &str = r#"
    echo 0 > /proc/sys/user/max_user_namespaces || exit 99
    "$PORTCULLIS" run --ask deny --branch=one -- sh -c "echo ran; echo x > a"
"#;

/// Another file system in the project.
const WITH_A_MOUNT: &str = r#"
    mount -t tmpfs none d || exit 99
    "$PORTCULLIS" run --ask deny --branch=one -- sh -c "echo ran; echo x > a"
"#;

fn a_branch_without_an_overlay_is_refused(user: User) -> Result<()> {
    let settings = r#"{ "requiredTier": "landlock", "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": [], "allowWrite": ["."], "denyWrite": [] } }"#;
    for (script, said) in [
        (ON_AN_OVERLAY, "mounting the branch"),
        (WITHOUT_NAMESPACES, "making namespaces"),
        (WITH_A_MOUNT, "another file system is mounted in it"),
    ] {
        let scene = prepared(user)?;
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), settings)?;
        let before = tree(&scene.project())?;
        let mut command = scene.user().command("unshare".as_ref());
        command.args(["--mount", "--user", "--map-current-user", "--keep-caps", "--", "bash", "-c", script]);
        scene.enter(&mut command);
        command.env("PORTCULLIS", portcullis(user)?).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        let ran = Finished::run(&mut command)?;
        ensure!(ran.code() != 99, "the machine cannot be prepared: {ran:#?}");
        ensure!(ran.code() == 125 && ran.stderr.contains(said), "{said}: {ran:#?}");
        ensure!(ran.stdout.is_empty() && tree(&scene.project())? == before, "the command ran: {ran:#?}");
    }
    Ok(())
}

fn a_project_that_moved_is_said(user: User) -> Result<()> {
    let scene = prepared(user)?;
    run(&scene, "one", "echo x > a")?.ended_with(0)?;
    let (project, away) = (scene.project(), scene.at("away"));
    let path = project.to_str().context("a path")?.to_owned();
    fs::rename(&project, &away)?;
    let from_home = |arguments: &[&str]| -> Result<Finished> {
        let arguments = [&["branch"], arguments, &["--project", &path]].concat();
        Finished::run(scene.portcullis_command(&arguments)?.current_dir(scene.home()))
    };
    for verb in [&["show", "one"][..], &["commit", "one", "--all", "--yes"]] {
        let told = from_home(verb)?.ended_with(1)?;
        ensure!(told.stderr.contains("is not there"), "{told:?}");
    }
    let everywhere = Finished::run(
        scene.portcullis_command(&["branch", "list", "--everywhere"])?.current_dir(scene.home()),
    )?;
    ensure!(everywhere.stdout.contains(&path), "{everywhere:?}");
    fs::create_dir(&project)?;
    scene.user().own(&project)?;
    for told in [from_home(&["commit", "one", "--all", "--yes"])?, run(&scene, "one", "true")?] {
        ensure!(told.stderr.contains("is another directory"), "{told:?}");
    }
    ensure!(fs::read_dir(&project)?.count() == 0, "something was committed to another directory");
    fs::remove_dir(&project)?;
    fs::rename(&away, &project)?;
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    ensure!(fs::read_to_string(project.join("a"))? == "x\n", "control");
    Ok(())
}

/// A rule that makes a part of the project writable, or closes it, mounts that part by itself.
fn what_the_settings_make_writable_is_in_the_branch(user: User) -> Result<()> {
    let scene = prepared(user)?;
    let settings = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["d/x"], "allowRead": [], "allowWrite": [".", "kept", "directory"],
        "denyWrite": ["b"] } }"#;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), settings)?;
    let before = tree(&scene.project())?;
    let ran = run(
        &scene,
        "one",
        "cat d/x; echo x > kept; echo x > directory/z; echo x > b; mv directory away; echo $?",
    )?;
    ensure!(!ran.stdout.contains("d/x"), "{ran:?}");
    ensure!(
        tree(&scene.project())? == before,
        "{:?}: {ran:?}",
        difference(&tree(&scene.project())?, &before)
    );
    let changes = review(&scene, "one")?;
    ensure!(changes.contains_key("kept") && !changes.contains_key("b"), "{changes:?}: {ran:?}");
    Ok(())
}
