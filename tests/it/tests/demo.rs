//! The demonstration in the README.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, PiVersion, Tools, User, portcullis};

#[test]
fn it_shows_what_it_should() -> Result<()> {
    let tools = Tools::find()?;
    for version in [PiVersion::V0_74, PiVersion::V1_5] {
        let pi = tools.pi(version, User::Caller)?;
        let mut node = Command::new(&pi.node);
        node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../pi/demo.mjs")).arg(&pi.cli);
        let shown = Finished::run(node.env("PORTCULLIS_BIN", portcullis(User::Caller)?))?;
        for became in ["allowed", "asked", "denied", "confined"] {
            ensure!(shown.stdout.contains(&format!("\n{became}  ")), "{became}: {shown:#?}");
        }
        shown.ended_with(0)?;
    }
    Ok(())
}
