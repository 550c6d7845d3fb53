//! Very many connections: more than the gate holds are refused in words, and the others work.

use anyhow::{Result, ensure};
use portcullis_it::{Scene, User, World};

use super::{before, folders, run};
use crate::network::PROGRAM;

as_each_user!(connections_beyond_a_number_are_refused);

const CROWD: &str = include_str!("crowd.py");
/// How many connections of HTTP/1.1 the gate serves at the same time.
const SERVED: usize = 256;
/// How many more the program wants.
const MORE: usize = 6;

fn connections_beyond_a_number_are_refused(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("crowd.py"), CROWD)?;
    let script = format!("{}python3 crowd.py allowed.test 9443 {}", before(&folders()?), SERVED + MORE);
    let finished = run(&world, &scene, &script)?;
    ensure!(finished.stdout.contains(&format!("HELD {SERVED}\n")), "{finished:#?}");
    ensure!(finished.stdout.contains("FIRST HTTP/1.1 401 LAST HTTP/1.1 401"), "{finished:#?}");
    ensure!(finished.stdout.contains("AFTERWARDS HTTP/1.1 401"), "{finished:#?}");
    ensure!(finished.stderr.contains("too many connections to such hosts are open"), "{finished:#?}");
    Ok(())
}
