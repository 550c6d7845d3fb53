//! Symbolic links on the path to files that decide about the agent, or that the user runs: changing such a link
//! replaces everything behind it. The control changes the same links without Portcullis.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(no_link_on_the_way_is_led_elsewhere);

/// Links in the project to hooks, a start-up file, a file that the settings deny, and the settings themselves; and a
/// link to a file that needs no protection.
const LINKS: [(&str, &str); 5] =
    [("myhooks", "tools/hooks"), ("host", "common"), ("cfg", "cfg1"), ("conf", "conf1"), ("free", "common")];

const BEFORE: &str = "set -e
git init -q . && git config core.hooksPath myhooks
mkdir -p tools/hooks common cfg1 conf1 ~/.pi/agent/sandbox
printf '#!/bin/sh\\n' > tools/hooks/pre-commit && chmod +x tools/hooks/pre-commit
echo '# mine' > common/bashrc && echo good > cfg1/prod.yaml
mv default.json conf1/default.json
ln -s tools/hooks myhooks; ln -s common host; ln -s cfg1 cfg; ln -s conf1 conf; ln -s common free
ln -s \"$PWD/host/bashrc\" ~/.bashrc
ln -s \"$PWD/conf/default.json\" ~/.pi/agent/sandbox/default.json";

/// Tries each way of changing the link; the last ones remove the name.
const LEAD_ELSEWHERE: &str = "mkdir -p evil
ln -sfn evil LINK; ln -s evil new && mv -fT new LINK; rm -f new
mv LINK gone && ln -s evil LINK
rm -f LINK && ln -s evil LINK; true";

fn no_link_on_the_way_is_led_elsewhere(user: User) -> Result<()> {
    let attack = |link: &str| LEAD_ELSEWHERE.replace("LINK", link);
    let control = prepared(user)?;
    for (link, _) in LINKS {
        shell(&control, &attack(link))?.ended_with(0)?;
        ensure!(leads(&control, link)? == Path::new("evil"), "control: `{link}`");
    }

    let scene = prepared(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (link, target) in LINKS {
        let done = host.run(&attack(link))?;
        let expected = if link == "free" { "evil" } else { target };
        ensure!(leads(&scene, link)? == Path::new(expected), "`{link}`: {done:#?}");
    }
    Ok(())
}

fn prepared(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": ["./cfg/prod.yaml"] },
    });
    scene.write(&scene.project().join("default.json"), &settings.to_string())?;
    shell(&scene, BEFORE)?.ended_with(0)?;
    Ok(scene)
}

fn leads(scene: &Scene, link: &str) -> Result<PathBuf> {
    Ok(std::fs::read_link(scene.project().join(link))?)
}

fn shell(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.user().command("/bin/sh".as_ref());
    command.args(["-c", script]);
    scene.enter(&mut command);
    Finished::run(&mut command)
}
