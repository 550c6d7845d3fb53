//! The contract tasks of `cargo xtask gen` and `cargo xtask wit-check`.

mod c_bindings;
mod go_bindings;
mod wit_check;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (task, root) = (arguments.next(), arguments.next());
    let root = root.context("name a task and the top of the tree")?;
    match task.as_deref() {
        Some("c-bindings") => {
            c_bindings::write(Path::new(&root), &arguments.next().context("name a folder")?)
        }
        Some("go-bindings") => {
            go_bindings::write(Path::new(&root), &arguments.next().context("name a folder")?)
        }
        Some("wit-check") => wit_check::check(Path::new(&root)),
        _ => bail!("there are `c-bindings ROOT FOLDER`, `go-bindings ROOT FOLDER` and `wit-check ROOT`"),
    }
}
