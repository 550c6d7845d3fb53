//! Devices: those that every command has, and those that the settings allow.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(modes_of_devices_are_not_changed, a_rule_gives_a_device, what_gives_no_device_is_said);

/// The modes of devices are the machine's, and root could lock every other program out of them.
fn modes_of_devices_are_not_changed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let modes = || -> Result<Vec<u32>> {
        ["/dev/null", "/dev/full", "/dev/tty"]
            .iter()
            .map(|path| Ok(Path::new(path).metadata()?.mode()))
            .collect()
    };
    let before = modes()?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let attack = "chmod 667 /dev/full; chmod 667 /dev/tty; chmod 667 /proc/self/fd/0; chmod 667 /dev/null";
    let (_, output) = host.run(attack)?;
    ensure!(output.matches("changing permissions").count() == 4, "{output}");
    ensure!(modes()? == before, "{output}");
    // They work all the same.
    let (_, output) =
        host.run("cat /dev/null; echo x > /dev/null && head -c 4 /dev/zero | wc -c; echo x > /dev/full")?;
    ensure!(output.contains('4') && output.contains("No space left"), "{output}");
    if scene.user() == User::Caller && rustix::process::geteuid().is_root() {
        let full = Path::new("/dev/full");
        let usual = full.metadata()?.permissions();
        std::process::Command::new("chmod").args(["667", "/dev/full"]).status()?;
        let changed = full.metadata()?.mode();
        std::fs::set_permissions(full, std::fs::Permissions::from_mode(usual.mode() & 0o7777))?;
        ensure!(changed & 0o777 == 0o667, "the control: {changed:o}");
    }
    Ok(())
}

/// The devices of this machine that settings can give.
fn givable() -> Option<&'static str> {
    ["/dev/fuse", "/dev/kvm", "/dev/nvidiactl"].into_iter().find(|path| Path::new(path).exists())
}

fn a_rule_gives_a_device(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let device = givable().context("this test needs /dev/fuse, /dev/kvm or /dev/nvidiactl")?;
    let seen = |scene: &Scene| -> Result<String> {
        let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
        Ok(host.run(&format!("stat -c %F {device} /dev/loop-control; chmod 777 {device}; rm -f {device}"))?.1)
    };
    let mode = Path::new(device).metadata()?.mode();
    let output = seen(&scene)?;
    ensure!(!output.contains("special"), "{output}");
    let settings = json!({ "filesystem": { "allowWrite": [".", device, "/dev/loop-control"] } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let output = seen(&scene)?;
    ensure!(output.matches("character special file").count() == 1, "{output}");
    ensure!(Path::new(device).metadata()?.mode() == mode, "{output}");
    if scene.user() == User::Caller && rustix::process::geteuid().is_root() {
        let (_, output) =
            Serve::greeted(&scene, &[], Interface::Absent)?.run(&format!("exec 3<>{device} && echo open"))?;
        ensure!(output.contains("open"), "{output}");
    }
    Ok(())
}

fn what_gives_no_device_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({ "filesystem": { "allowWrite": [".", "/dev/loop-control", "/dev/nvidia-none", "/dev/null"] } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let checked = scene.portcullis(&["run", "--", "true"])?;
    let text = format!("{}{}", checked.stdout, checked.stderr);
    ensure!(text.contains("`/dev/nvidia-none` opens nothing: this machine has no such device"), "{text}");
    ensure!(text.contains("`/dev/loop-control` opens nothing: commands can get graphics cards"), "{text}");
    ensure!(!text.contains("/dev/null"), "{text}");
    Ok(())
}
