//! The fence around pushes, with git over HTTP/2.

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::super::pushes::{AT_ONCE, Fence, MAKE_LONG, PRELUDE, judge, tried_by};
use super::{STREAMS, header, settings, stored};
use crate::network::PROGRAM;

as_each_user!(the_same_references_move_over_the_second_version);

fn with_password() -> Value {
    let mut settings = settings();
    let entries = settings["credentials"]["brokered"].as_array_mut();
    for entry in entries.into_iter().flatten() {
        if entry["name"] == "streams-git" {
            entry["variables"] = json!(["FORGE_PASSWORD"]);
        } else if entry["name"] == "forge-key" {
            entry["host"] = json!("allowed.test:9456");
        }
    }
    settings
}

fn the_same_references_move_over_the_second_version(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.at("world").join("streams.js"), STREAMS)?;
    let mut making = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut making);
    Finished::run(making.args(["-c", MAKE_LONG]))?.ended_with(0)?;
    let mut fenced = with_password();
    fenced["network"]["pushes"] = json!([{
        "host": "allowed.test:9456", "repositories": ["git/pushed", "git/long"], "maxKib": 256,
        "refs": ["refs/heads/agent/*", "refs/tags/agent-*", "refs/notes/commits"],
    }]);
    let prelude = format!("B=https://allowed.test:9456\n{PRELUDE}");
    let fence = Fence { prelude, fenced, free: with_password() };
    // git with curl 7.88 sometimes hangs when it sends pieces over HTTP/2, also straight to a server: curl asks for more
    // after the last one, and git waits for it.
    let mut pushes = tried_by(user);
    pushes.retain(|(name, ..)| *name != "in chunks");
    // Two more processes carry each push.
    for pushes in pushes.chunks(AT_ONCE / 2) {
        judge(&scene, &world, pushes, &fence)?;
    }
    let requests = stored(&scene)?;
    let is_push =
        |request: &&Value| header(request, ":path").is_some_and(|path| path.ends_with("/git-receive-pack"));
    let pushes = requests.iter().filter(is_push).count();
    ensure!(pushes > 10 && requests.iter().all(|request| request["version"] == "2.0"), "{requests:#?}");
    Ok(())
}
