//! What a contained pi changes by itself is recorded, and can be taken back.

use std::fs;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, User};

use super::ends::with_pi;
use crate::undo::{tree, undo};

as_each_user!(what_a_contained_pi_changes_is_undone);

/// A program in the place of pi, as an extension would change files.
const CHANGES: &str = "[ \"$1\" = --version ] && { echo 1.5.2; exit; }
    echo changed > file; rm gone; mkdir d; mv moved d/moved; echo new > d/new; chmod 600 mode; true";

fn what_a_contained_pi_changes_is_undone(user: User) -> Result<()> {
    for is_contained in [true, false] {
        let scene = with_pi(user, CHANGES)?;
        let project = scene.project();
        for name in ["file", "gone", "moved", "mode"] {
            scene.write(&project.join(name), "first")?;
        }
        let before = tree(&project)?;
        let arguments: &[&str] =
            if is_contained { &["pi", "--contain", "-p", "go"] } else { &["pi", "-p", "go"] };
        let mut command = scene.portcullis_command(arguments)?;
        let ran = Finished::run(command.current_dir(&project))?.ended_with(0)?;
        ensure!(fs::read_to_string(project.join("file"))? == "changed\n", "it did not run: {ran:?}");
        let undone = undo(&scene, &["--all"])?;
        // Control: a pi that is not contained changes what it wants, and only its tools and commands are recorded.
        ensure!((tree(&project)? == before) == is_contained, "contained: {is_contained}: {undone:?}");
    }
    Ok(())
}
