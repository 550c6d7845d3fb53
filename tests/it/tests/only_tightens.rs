//! Rules that tighten never make a file visible to commands: rules of a project, in both layouts, and sockets of other
//! users.

mod random;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::machine::{NO_LANDLOCK, NO_NAMESPACES};

as_each_user!(
    a_denial_of_a_project_shows_nothing_that_is_hidden,
    a_project_that_narrows_does_not_reach_the_machines_temporary_directory,
    sockets_of_others_do_not_keep_commands_from_running,
);

/// The tier of confinement that the machine supports and the user's settings require.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tier {
    Full,
    Namespaces,
    Landlock,
}

const TIERS: [Tier; 3] = [Tier::Full, Tier::Namespaces, Tier::Landlock];
/// The id of a user who is neither root nor the ordinary user of the tests.
const SOMEBODY_ELSE: u32 = 1001;

impl Tier {
    /// Returns the value of `requiredTier`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
        }
    }

    /// Returns a command for `portcullis` on a machine that supports no more than this tier.
    pub(crate) fn portcullis(self, scene: &Scene) -> Result<Command> {
        let host = portcullis_it::portcullis(scene.user())?;
        let (program, words) = match self {
            Self::Full => ("/usr/bin/env", &[] as &[&str]),
            Self::Namespaces => ("python3", NO_LANDLOCK),
            Self::Landlock => ("unshare", NO_NAMESPACES),
        };
        let mut command = scene.user().command(program.as_ref());
        command.args(words).arg(host);
        scene.enter(&mut command);
        Ok(command)
    }
}

/// Lists what a command sees of the machine's `/run`. The sandbox has the directory for sockets of its own in it.
const LIST_RUN: &str = r#"find /run -mindepth 1 ! -path /run/user ! -path "/run/user/$(id -u)""#;

/// Returns settings of the user.
fn rules(scene: &Scene, tier: Tier, allow_read: &[&Path], allow_write: &[&Path]) -> Value {
    let project = scene.project();
    let with_project = |more: &[&Path]| -> Vec<PathBuf> {
        std::iter::once(project.clone()).chain(more.iter().map(|path| path.to_path_buf())).collect()
    };
    json!({
        "requiredTier": tier.name(),
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["~"], "allowRead": with_project(allow_read), "allowWrite": with_project(allow_write),
            "denyWrite": [],
        },
    })
}

/// Writes the user's own settings.
fn settle(scene: &Scene, tier: Tier, allow_read: &[&Path], allow_write: &[&Path]) -> Result<()> {
    let rules = rules(scene, tier, allow_read, allow_write).to_string();
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &rules)
}

pub(crate) fn run(scene: &Scene, tier: Tier, script: &str) -> Result<Finished> {
    let mut command = tier.portcullis(scene)?;
    Finished::run(command.args(["run", "--ask", "deny", "--", "sh", "-c", script]))
}

/// A directory of the machine below `/tmp` that the user of the scene may write.
fn shared(scene: &Scene) -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in("/tmp")?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    scene.user().own(directory.path())?;
    scene.write(&directory.path().join("marker"), "of the machine\n")?;
    Ok(directory)
}

fn a_denial_of_a_project_shows_nothing_that_is_hidden(user: User) -> Result<()> {
    for tier in TIERS {
        let scene = Scene::new(user)?;
        let shared = shared(&scene)?;
        let place = shared.path().display();
        let script =
            format!("{LIST_RUN}; cat '{place}/marker'; mkdir -p '{place}'; echo x > '{place}/new'; true");
        let denials =
            json!({ "filesystem": { "denyWrite": ["/run", "/run/lock", shared.path(), "/dev/shm"] } });
        settle(&scene, tier, &[], &[])?;
        scene.write(&scene.project().join(".pi/portcullis.json"), &denials.to_string())?;
        let hostile = run(&scene, tier, &script)?.ended_with(0)?;
        ensure!(hostile.stdout.is_empty(), "{tier:?}: {hostile:#?}");
        ensure!(!shared.path().join("new").exists(), "{tier:?}: {hostile:#?}");

        // The control: the user allows the same paths and they are visible and writable, so the script can detect both.
        fs::remove_file(scene.project().join(".pi/portcullis.json"))?;
        settle(&scene, tier, &["/run".as_ref()], &[shared.path()])?;
        let control = run(&scene, tier, &script)?.ended_with(0)?;
        ensure!(control.stdout.contains("lock"), "{tier:?}: {control:#?}");
        ensure!(control.stdout.contains("of the machine"), "{tier:?}: {control:#?}");
        ensure!(shared.path().join("new").exists(), "{tier:?}: {control:#?}");
    }
    Ok(())
}

fn a_project_that_narrows_does_not_reach_the_machines_temporary_directory(user: User) -> Result<()> {
    for tier in TIERS {
        let scene = Scene::new(user)?;
        let shared = shared(&scene)?;
        scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
        let place = shared.path().display();
        let script =
            format!("cat '{place}/marker'; mkdir -p '{place}' && echo x > '{place}/new'; echo y > here");
        // The built-in `.env` of `denyWrite` is a pattern, which the tier `namespaces` does not hold commands to.
        let users = |lists: &Value| json!({ "requiredTier": tier.name(), "filesystem": lists }).to_string();
        let users_file = scene.home().join(".pi/agent/extensions/sandbox.json");
        scene.write(&users_file, &users(&json!({ "denyWrite": [] })))?;
        let own = json!({ "filesystem": { "allowWrite": [shared.path(), Path::new(".")] } });
        scene.write(&scene.project().join(".pi/sandbox.json"), &own.to_string())?;
        let hostile = run(&scene, tier, &script)?;
        ensure!(!shared.path().join("new").exists(), "{tier:?}: {hostile:#?}");
        ensure!(!hostile.stdout.contains("of the machine"), "{tier:?}: {hostile:#?}");
        ensure!(scene.project().join("here").exists(), "{tier:?}: {hostile:#?}");

        // The control: the user's settings name it as well.
        let allowed =
            json!({ "denyWrite": [], "allowWrite": [Path::new("/tmp"), shared.path(), Path::new(".")] });
        scene.write(&users_file, &users(&allowed))?;
        let control = run(&scene, tier, &script)?.ended_with(0)?;
        ensure!(shared.path().join("new").exists(), "{tier:?}: {control:#?}");
    }
    Ok(())
}

/// Sockets of another user in directories that only that user can search, in every place where the host looks for
/// sockets.
fn sockets_of_others_do_not_keep_commands_from_running(user: User) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        ensure!(std::env::var_os("CI").is_none(), "only root makes directories of other users");
        return Ok(());
    }
    let scene = Scene::new(user)?;
    let mut sockets = Vec::new();
    let mut directories = Vec::new();
    for around in
        [scene.outside(), scene.project(), scene.outside().join("deep/er"), scene.home().join("shown")]
    {
        let directory = around.join("agent");
        scene.write(&directory.join("sub/.keep"), "")?;
        for name in ["S.agent", "sub/S.agent"] {
            let path = directory.join(name);
            sockets.push(UnixListener::bind(&path)?);
            fs::set_permissions(&path, Permissions::from_mode(0o777))?;
            chown(&path, Some(SOMEBODY_ELSE), Some(SOMEBODY_ELSE))?;
        }
        for inner in [directory.join("sub"), directory.clone()] {
            fs::set_permissions(&inner, Permissions::from_mode(0o700))?;
            chown(&inner, Some(SOMEBODY_ELSE), Some(SOMEBODY_ELSE))?;
        }
        directories.push(directory);
    }
    let list = |tier, more: &str| -> Result<Finished> {
        let looks = directories.iter().map(|at| format!("ls -A '{}' && echo seen\n", at.display()));
        run(&scene, tier, &format!("exec 2>/dev/null\n{}{more}echo done", looks.collect::<String>()))
    };
    for tier in TIERS {
        settle(&scene, tier, &[&scene.home().join("shown")], &[])?;
        let inside = list(tier, "echo x > made\n")?.ended_with(0)?;
        ensure!(
            inside.stdout.ends_with("done\n") && !inside.stdout.contains("S.agent"),
            "{tier:?}: {inside:#?}"
        );
        ensure!(scene.project().join("made").exists(), "{tier:?}: {inside:#?}");
        fs::remove_file(scene.project().join("made"))?;
        // A denial below such a directory is no reason to refuse commands either.
        let denials = json!({ "filesystem": { "denyRead": [scene.outside().join("agent/sub/x")], "denyWrite": [scene.home().join("shown/agent/sub")] } });
        scene.write(&scene.project().join(".pi/portcullis.json"), &denials.to_string())?;
        list(tier, "")?.ended_with(0)?;
        fs::remove_file(scene.project().join(".pi/portcullis.json"))?;
    }
    // A session, and a contained pi: both run as the user of the scene.
    settle(&scene, Tier::Full, &[&scene.home().join("shown")], &[])?;
    let whose = if scene.user().is_stranger() { "1000\n" } else { "0\n" };
    let looks: String =
        directories.iter().map(|at| format!("ls -A '{}' 2>/dev/null\n", at.display())).collect();
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let (ended, output) = host.run(&format!("{looks}id -u"))?;
    ensure!(ended.get("exitCode") == Some(&json!(0)) && output == whose, "{output} {ended}");
    host.close()?;
    let pi = scene.bin().join("pi");
    scene.write(&pi, &format!("#!/bin/sh\n{looks}id -u\n"))?;
    fs::set_permissions(&pi, Permissions::from_mode(0o755))?;
    let contained = scene.portcullis(&["pi", "--contain", "-p", "go"])?.ended_with(0)?;
    ensure!(contained.stdout == whose, "{contained:#?}");
    // The control: the other user, and root outside the sandbox, see the directories.
    for directory in &directories {
        let seen = fs::read_dir(directory)?.count();
        ensure!(seen >= 2, "{}", directory.display());
    }
    drop(sockets);
    Ok(())
}
