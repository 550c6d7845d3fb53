//! Reads by allow-list: `denyRead: ["/"]`, and the paths in `allowRead`.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};

as_each_user!(
    commands_run_and_see_what_is_allowed,
    links_out_of_it_lead_nowhere,
    a_place_in_a_hidden_directory_is_shown_by_itself,
);

const PROFILE: &str =
    r#"{ "filesystem": { "denyRead": ["/"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] } }"#;

fn run(scene: &Scene, settings: &str, script: &str) -> Result<Finished> {
    let file = scene.at("allow-list.json");
    scene.write(&file, settings)?;
    let file = file.display().to_string();
    scene.portcullis(&["run", "--settings", &file, "--", "bash", "-c", script])
}

fn commands_run_and_see_what_is_allowed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "NOTES")?;
    let outside = scene.outside().join("notes");
    let script = format!(
        "echo made > made && cat made && ls /usr/bin/env && echo x > /dev/null && echo t > /tmp/t && cat /tmp/t; \
         cat '{}' /etc/passwd /etc/hostname; ls -A /etc /srv /root /home",
        outside.display()
    );
    let finished = run(&scene, PROFILE, &script)?;
    for seen in ["made\n", "/usr/bin/env\n", "t\n"] {
        ensure!(finished.stdout.contains(seen), "{seen}: {finished:#?}");
    }
    ensure!(!finished.stdout.contains("NOTES") && !finished.stdout.contains("root:x:"), "{finished:#?}");
    ensure!(finished.stdout.contains("/etc:\n\n/home:\n\n"), "{finished:#?}");
    Ok(())
}

/// With a control: without the sandbox each of these links leads to the file.
fn links_out_of_it_lead_nowhere(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.outside().join("notes"), "NOTES")?;
    let notes = scene.outside().join("notes");
    symlink(&notes, scene.project().join("before"))?;
    symlink(scene.outside(), scene.project().join("around"))?;
    let script = format!(
        "ln -s '{0}' during; ln -s / top; ln '{0}' hard; mkdir -p d; \
         cat before around/notes during top'{0}' hard d/../around/notes /proc/self/root'{0}' /proc/$$/root'{0}'; \
         exec 3</; cat /proc/self/fd/3'{0}'; cd /; cat .'{0}'",
        notes.display()
    );
    let finished = run(&scene, PROFILE, &script)?;
    ensure!(!finished.stdout.contains("NOTES"), "{finished:#?}");
    for made in ["during", "top"] {
        fs::remove_file(scene.project().join(made))?;
    }
    let mut control = scene.program("bash".as_ref());
    let control = Finished::run(control.args(["-c", &script]).current_dir(scene.project()))?;
    ensure!(control.stdout.matches("NOTES").count() >= 9, "control: {control:#?}");
    Ok(())
}

fn a_place_in_a_hidden_directory_is_shown_by_itself(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for (name, text) in [("shown/notes", "SHOWN"), ("shown/secret", "SECRET"), ("beside", "BESIDE")] {
        fs::create_dir_all(scene.outside().join("shown"))?;
        scene.write(&scene.outside().join(name), text)?;
    }
    let outside = scene.outside().display().to_string();
    let settings = format!(
        r#"{{ "filesystem": {{ "denyRead": ["/", "{outside}/shown/secret"],
             "allowRead": [".", "{outside}/shown"], "allowWrite": ["."], "denyWrite": [] }} }}"#
    );
    let script = format!("cd '{outside}'; cat shown/notes shown/secret beside; ls");
    let finished = run(&scene, &settings, &script)?;
    ensure!(finished.stdout == "SHOWNshown\n", "{finished:#?}");
    ensure!(!finished.stdout.contains("SECRET") && !finished.stdout.contains("BESIDE"), "{finished:#?}");
    Ok(())
}
