//! A command closes what the next session reads at its start, so that the session does not know what to protect.

use std::fs;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User};

use crate::undo::run;

as_each_user!(what_cannot_be_read_at_the_start_is_protected_as_well);

/// A repository whose settings name hooks and more settings in the project, and links of the user at names that tools
/// read.
const MAKE: &str = "git init -q . && git config core.hooksPath githooks && git config include.path ../extra && \
    mkdir githooks sub env && printf '#!/bin/sh\\n' > githooks/pre-commit && chmod +x githooks/pre-commit && \
    printf '[alias]\\n\\tx = status\\n' > extra && echo true > env/rc && ln -s ../env/rc sub/.envrc";

const OPEN: &str = "chmod 755 .git sub; chmod 644 .git/config";

const CHANGE: &str = "printf '[core]\\n\\tfsmonitor = \"touch by-git; false\"\\n' >> extra; \
    echo 'touch by-hook' >> githooks/pre-commit; echo 'touch by-shell' >> env/rc; true";

/// What the user does afterwards.
const USE: &str = "git status > /dev/null 2>&1; git -c user.name=n -c user.email=e commit -q --allow-empty -m m; \
    . sub/.envrc; true";

fn outside(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(["-c", script]))?.ended_with(0)
}

fn what_cannot_be_read_at_the_start_is_protected_as_well(user: User) -> Result<()> {
    let made = |scene: &Scene| -> Vec<&str> {
        let names = ["by-git", "by-hook", "by-shell"].into_iter();
        names.filter(|name| scene.project().join(name).exists()).collect()
    };
    for close in ["true", "chmod 000 .git/config", "chmod 000 .git", "chmod 000 sub"] {
        let scene = Scene::new(user)?;
        outside(&scene, MAKE)?;
        run(&scene, close)?;
        let changed = run(&scene, &format!("{OPEN}; {CHANGE}"))?;
        outside(&scene, OPEN)?;
        outside(&scene, USE)?;
        ensure!(made(&scene).is_empty(), "{close}: the user has run {:?}: {changed:#?}", made(&scene));
    }
    let scene = Scene::new(user)?;
    outside(&scene, MAKE)?;
    outside(&scene, CHANGE)?;
    outside(&scene, USE)?;
    let all = fs::read_dir(scene.project())?.count();
    ensure!(made(&scene).len() == 3, "control: {:?} of {all} names", made(&scene));
    Ok(())
}
