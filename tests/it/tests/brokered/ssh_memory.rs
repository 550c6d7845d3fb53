//! The memory of every process of a command, searched for the user's key for ssh.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User, World};

use super::searched_processes::{SearchedProcess, search};
use super::ssh::{FENCE, OwnSsh, PREFIX, run_with, settings};
use super::{before, folders};
use crate::network::PROGRAM;

as_each_user!(nothing_of_the_key_for_ssh_is_in_the_memory_of_a_command);

/// The program outside keeps the key in its memory, so that the search can find it there.
const FIRST: &str = "KEY=$(sed -n 3p \"$OWN/../world/client_key\")\n\
                     /usr/bin/ssh -F \"$OWN/config\" \"$@\"; status=$?; : \"$KEY\"; exit $status\n";

fn nothing_of_the_key_for_ssh_is_in_the_memory_of_a_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?)
        + PREFIX
        + "git ls-remote $S/git/repo.git && touch there\n\
           git ls-remote $S/git/hang.git & while [ ! -e stop ]; do sleep 0.1; done; kill %1; wait\n";
    let ssh = OwnSsh { first: FIRST, ..OwnSsh::default() };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_with(&world, &scene, (&settings(FENCE, false), ssh), &script));
        let found = while_it_runs(&scene);
        scene.write(&scene.project().join("stop"), "")?;
        let finished = running.join().ok().context("the run panicked")??;
        let found = found.with_context(|| format!("{finished:#?}"))?;
        let (outside, inside): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_outside);
        ensure!(outside.iter().any(|one| one.found > 0), "the control: {outside:?}");
        ensure!(inside.len() >= 3 && inside.iter().all(|one| one.found == 0), "{inside:?}");
        Ok(())
    })
}

fn while_it_runs(scene: &Scene) -> Result<Vec<SearchedProcess>> {
    let there = scene.project().join("there");
    Deadline::start().until("the first answer", || Ok(there.exists().then_some(())))?;
    let commands = scene.at("world").join("commands");
    Deadline::start().until("the second request", || {
        Ok(std::fs::read_to_string(&commands)?.contains("hang").then_some(()))
    })?;
    let key = std::fs::read_to_string(scene.at("world").join("client_key"))?;
    search(scene, &[key.lines().nth(2).context("the third line of the key")?.as_bytes()])
}
