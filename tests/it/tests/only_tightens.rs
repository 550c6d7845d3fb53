//! Rules that tighten never make a file visible to commands: rules of a project, in both layouts, and sockets of other
//! users.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::json;
use tempfile::TempDir;

use crate::machine::NO_NAMESPACES;

as_each_user!(
    a_denial_of_a_project_shows_nothing_that_is_hidden,
    a_project_that_narrows_does_not_reach_the_machines_temporary_directory,
    random_denials_only_take_away,
    sockets_of_others_do_not_keep_commands_from_running,
);

/// The tier of confinement of the commands.
#[derive(Debug, Clone, Copy)]
enum Tier {
    Full,
    Landlock,
}

const TIERS: [Tier; 2] = [Tier::Full, Tier::Landlock];
/// The id of a user who is neither root nor the ordinary user of the tests.
const SOMEBODY_ELSE: u32 = 1001;

/// Writes the user's own settings.
fn settle(scene: &Scene, tier: Tier, allow_read: &[&Path], allow_write: &[&Path]) -> Result<()> {
    let tier = match tier {
        Tier::Full => "full",
        Tier::Landlock => "landlock",
    };
    let project = scene.project();
    let with_project = |more: &[&Path]| -> Vec<PathBuf> {
        std::iter::once(project.clone()).chain(more.iter().map(|path| path.to_path_buf())).collect()
    };
    let settings = json!({
        "requiredTier": tier,
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["~"], "allowRead": with_project(allow_read), "allowWrite": with_project(allow_write),
            "denyWrite": [],
        },
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

fn run(scene: &Scene, tier: Tier, script: &str) -> Result<Finished> {
    let host = portcullis_it::portcullis(scene.user())?;
    let mut command = match tier {
        Tier::Full => scene.user().command(&host),
        Tier::Landlock => {
            let mut command = scene.user().command("unshare".as_ref());
            command.args(NO_NAMESPACES).arg(host);
            command
        }
    };
    scene.enter(&mut command);
    command.args(["run", "--ask", "deny", "--", "sh", "-c", script]);
    Finished::run(&mut command)
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
            format!("ls -A /run; cat '{place}/marker'; mkdir -p '{place}'; echo x > '{place}/new'; true");
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
    let scene = Scene::new(user)?;
    let shared = shared(&scene)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
    let place = shared.path().display();
    let script = format!("cat '{place}/marker'; mkdir -p '{place}' && echo x > '{place}/new'; echo y > here");
    let allowed = |more: &[&Path]| {
        let entries: Vec<&Path> = more.iter().copied().chain([shared.path(), ".".as_ref()]).collect();
        json!({ "filesystem": { "allowWrite": entries } }).to_string()
    };
    let own = scene.project().join(".pi/sandbox.json");
    scene.write(&own, &allowed(&[]))?;
    let hostile = run(&scene, Tier::Full, &script)?;
    ensure!(!shared.path().join("new").exists(), "{hostile:#?}");
    ensure!(!hostile.stdout.contains("of the machine"), "{hostile:#?}");
    ensure!(scene.project().join("here").exists(), "{hostile:#?}");

    // The control: the user's settings name it as well.
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), &allowed(&["/tmp".as_ref()]))?;
    let control = run(&scene, Tier::Full, &script)?.ended_with(0)?;
    ensure!(shared.path().join("new").exists(), "{control:#?}");
    Ok(())
}

/// Returns what commands read and write of some directories of the machine, each with a marker file in it.
fn reached(scene: &Scene, tier: Tier, places: &[PathBuf]) -> Result<BTreeSet<(&'static str, PathBuf)>> {
    let tries = places.iter().map(|place| {
        let place = place.display();
        format!(
            "[ \"$(cat '{place}/marker')\" = 'of the machine' ] && echo 'read {place}'\n\
             {{ mkdir -p '{place}'; echo x > '{place}/new'; }}\n"
        )
    });
    let script = format!(
        "exec 2>/dev/null\n[ -n \"$(ls -A /run)\" ] && echo read /run\n{}true",
        tries.collect::<String>()
    );
    let said = run(scene, tier, &script)?;
    let lines = said.stdout.lines().filter_map(|line| line.strip_prefix("read "));
    let mut reached: BTreeSet<_> = lines.map(|path| ("read", PathBuf::from(path))).collect();
    for place in places.iter().filter(|place| place.join("new").exists()) {
        fs::remove_file(place.join("new"))?;
        reached.insert(("write", place.clone()));
    }
    Ok(reached)
}

fn random_denials_only_take_away(user: User) -> Result<()> {
    let mut random = 20_261_122_u64;
    let mut next = |end: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap_or_default() % end
    };
    let mut lost = 0;
    for tier in TIERS {
        let scene = Scene::new(user)?;
        let shared = shared(&scene)?;
        let (project, home, outside) = (scene.project(), scene.home(), scene.outside());
        let places = [
            project.join("a"),
            project.join("a/b"),
            outside.join("o"),
            home.join("open"),
            home.join("open/deep"),
            home.join("closed"),
            shared.path().to_owned(),
            shared.path().join("open"),
            shared.path().join("open/deep"),
        ];
        for place in &places {
            scene.write(&place.join("marker"), "of the machine\n")?;
        }
        settle(&scene, tier, &[&home.join("open")], &[&shared.path().join("open"), &outside.join("o")])?;
        let before = reached(&scene, tier, &places)?;
        ensure!(before.len() >= 10, "{tier:?}: {before:?}");
        let named: Vec<PathBuf> = places
            .iter()
            .cloned()
            .chain(["/run", "/run/lock", "/tmp", "/dev/shm", "/sys/kernel/debug"].map(PathBuf::from))
            .chain([home.clone(), outside.clone(), shared.path().join("none"), home.join("open/none")])
            .collect();
        for number in 0..RULE_SETS {
            let mut some = || -> Vec<&PathBuf> {
                let count = 1 + next(4);
                (0..count).filter_map(|_| named.get(next(named.len()))).collect()
            };
            let denials = json!({ "filesystem": { "denyRead": some(), "denyWrite": some() } });
            scene.write(&project.join(".pi/portcullis.json"), &denials.to_string())?;
            let after = reached(&scene, tier, &places)?;
            let added: Vec<_> = after.difference(&before).collect();
            ensure!(added.is_empty(), "{tier:?} {number}: {denials} adds {added:?}");
            lost += usize::from(after.len() < before.len());
        }
    }
    ensure!(lost > RULE_SETS, "{lost} rule sets took something away");
    Ok(())
}

/// The number of rule sets for each tier.
const RULE_SETS: usize = 15;

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
    // The control: the other user, and root outside the sandbox, see the directories.
    for directory in &directories {
        let seen = fs::read_dir(directory)?.count();
        ensure!(seen >= 2, "{}", directory.display());
    }
    drop(sockets);
    Ok(())
}
