//! Generates the C bindings of the contract, for policies in C.

use std::path::Path;

use anyhow::{Context as _, Result};
use wit_bindgen_core::Files;

/// The world for languages whose tools need a complete one.
const WORLD: &str = "pure-full-policy";

/// Writes `policy.h` and `policy.c` into a directory.
pub(crate) fn write(root: &Path, folder: &str) -> Result<()> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(root.join("wit")).context("reading the contract")?;
    let world = resolve.select_world(&[package], Some(WORLD)).context("finding the world")?;
    let options = wit_bindgen_c::Opts {
        // `policy build` adds the types of the contract to the component.
        no_object_file: true,
        rename_world: Some("policy".to_owned()),
        ..wit_bindgen_c::Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).context("generating C")?;
    for (name, text) in files.iter() {
        std::fs::write(Path::new(folder).join(name), text).with_context(|| format!("writing `{name}`"))?;
    }
    Ok(())
}
