//! Policies that depend on the branch of the project: rules and verdicts follow a switch, without a restart.

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, guest};
use serde_json::json;

as_each_user!(
    a_switch_of_the_branch_changes_rules_and_verdicts,
    a_policy_without_a_repository_has_no_branch,
    cases_give_a_branch
);

/// Makes a scene whose only policy denies pushes from `main`, and protects `RELEASE` there.
fn with_policy(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let policy = guest("on-branch", user)?;
    scene.trust(&policy)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "policies": [{ "use": policy }],
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    Ok(scene)
}

fn git(scene: &Scene, arguments: &[&str]) -> Result<Finished> {
    let mut git = scene.program("git".as_ref());
    Finished::run(git.arg("-C").arg(scene.project()).args(arguments))?.ended_with(0)
}

/// What a running session lets commands do: whether `git push` is denied, and whether `RELEASE` can be written.
fn state(serve: &mut Serve, scene: &Scene) -> Result<(bool, bool)> {
    let (pushed, _) = serve.run("git push")?;
    let (_, _) = serve.run("echo x > RELEASE")?;
    let release = scene.project().join("RELEASE");
    let is_written = release.exists();
    if is_written {
        std::fs::remove_file(release)?;
    }
    Ok((pushed.get("denied").is_some(), is_written))
}

fn a_switch_of_the_branch_changes_rules_and_verdicts(user: User) -> Result<()> {
    let scene = with_policy(user)?;
    git(&scene, &["init", "-q", "-b", "main"])?;
    let check = |script: &str, code| -> Result<Finished> {
        scene.portcullis(&["check", "exec", script])?.ended_with(code)
    };
    check("git push", 20)?;
    check("git status", 0)?;
    let mut serve = Serve::greeted(&scene, &[], Interface::Absent)?;
    ensure!(state(&mut serve, &scene)? == (true, false), "on main");
    git(&scene, &["symbolic-ref", "HEAD", "refs/heads/topic"])?;
    check("git push", 0)?;
    ensure!(state(&mut serve, &scene)? == (false, true), "on another branch");
    git(&scene, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    ensure!(state(&mut serve, &scene)? == (true, false), "on main again");
    Ok(())
}

/// The control: without a repository, the same policy has nothing to protect.
fn a_policy_without_a_repository_has_no_branch(user: User) -> Result<()> {
    let scene = with_policy(user)?;
    let mut serve = Serve::greeted(&scene, &[], Interface::Absent)?;
    ensure!(state(&mut serve, &scene)? == (false, true), "there is no repository");
    // One that appears is seen.
    git(&scene, &["init", "-q", "-b", "main"])?;
    ensure!(state(&mut serve, &scene)? == (true, false), "a new repository");
    Ok(())
}

fn cases_give_a_branch(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let policy = guest("on-branch", user)?;
    let cases = r#"
[[case]]
name = "a push from main"
given = { branch = "main" }
command = "git push"
expect = "deny"
rule = "branch.main"
[[case]]
name = "a push from another branch"
given = { branch = "topic" }
command = "git push"
expect = "allow"
[[case]]
name = "no repository"
command = "git push"
expect = "allow"
"#;
    let file = scene.project().join("cases.toml");
    scene.write(&file, cases)?;
    let test = |code| -> Result<Finished> {
        let component = policy.to_string_lossy();
        scene.portcullis(&["policy", "test", "--cases", "cases.toml", &component])?.ended_with(code)
    };
    test(0)?;
    scene.write(&file, &cases.replace("\"topic\"", "\"main\""))?;
    let wrong = test(1)?;
    ensure!(wrong.stdout.contains("a push from another branch"), "{}", wrong.stdout);
    Ok(())
}
