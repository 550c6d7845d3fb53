//! Policies that decide on all changes of a branch together.

use anyhow::{Result, ensure};
use portcullis_it::{Scene, User};

use crate::branch_review::with_whole_change;
use crate::branches::{branch, run};

as_each_user!(a_policy_denies_a_commit, a_policy_asks_about_a_commit, a_policy_that_is_silent_allows_it);

/// A branch with these files, in a scene with the policy `whole-change`.
fn scene(user: User, names: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    with_whole_change(&scene, user)?;
    run(&scene, "one", &format!("touch {names}"))?.ended_with(0)?;
    Ok(scene)
}

fn a_policy_denies_a_commit(user: User) -> Result<()> {
    let scene = scene(user, "a b")?;
    std::fs::write(scene.project().join("code.rs"), "")?;
    run(&scene, "one", "echo x > code.rs; rm -f a; echo x > forbidden")?.ended_with(0)?;
    let shown = branch(&scene, &["show", "one"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("refused by a policy: forbidden files"), "{shown:?}");
    let denied = branch(&scene, &["commit", "one", "--all", "--yes", "--protected"])?;
    ensure!(denied.stderr.contains("a policy denies this change: forbidden files"), "{denied:?}");
    ensure!(!scene.project().join("b").exists() && !scene.project().join("forbidden").exists());
    // Control: without that file it is allowed.
    branch(&scene, &["commit", "one", "b", "--yes"])?.ended_with(0)?;
    ensure!(scene.project().join("b").exists());
    Ok(())
}

fn a_policy_asks_about_a_commit(user: User) -> Result<()> {
    let scene = scene(user, "a b c d")?;
    let asked = branch(&scene, &["commit", "one", "--all", "--yes"])?;
    ensure!(asked.stderr.contains("a policy asks about this change: more than 3 names"), "{asked:?}");
    ensure!(!scene.project().join("a").exists());
    branch(&scene, &["commit", "one", "--all", "--yes", "--protected"])?.ended_with(0)?;
    ensure!(scene.project().join("a").exists());
    Ok(())
}

fn a_policy_that_is_silent_allows_it(user: User) -> Result<()> {
    let scene = scene(user, "a b")?;
    branch(&scene, &["commit", "one", "--all", "--yes"])?.ended_with(0)?;
    ensure!(scene.project().join("a").exists());
    Ok(())
}
