//! Generates the Go bindings of the contract, for policies in Go.

use std::path::Path;

use anyhow::{Context as _, Result};
use wit_bindgen_core::Files;

/// The world for languages whose tools need a complete one.
const WORLD: &str = "pure-full-policy";
/// The package of the template that the bindings are a part of.
const PACKAGE: &str = "policy/portcullis";
/// The packages that the generator expects from elsewhere, and those of the template.
const OWN: [(&str, &str); 2] = [
    ("go.bytecodealliance.org/pkg/wit/types", "policy/portcullis/wit_types"),
    ("go.bytecodealliance.org/pkg/wit/runtime", "policy/portcullis/wit_runtime"),
];

/// Writes the bindings into a directory, each file beside the others with `-` for `/` in its path.
pub(crate) fn write(root: &Path, folder: &str) -> Result<()> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(root.join("wit")).context("reading the contract")?;
    let world = resolve.select_world(&[package], Some(WORLD)).context("finding the world")?;
    let options = wit_bindgen_go::Opts {
        // `gofmt` may be missing, and then the text would be another.
        format: wit_bindgen_go::Format::False,
        pkg_name: Some(PACKAGE.to_owned()),
        ..wit_bindgen_go::Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).context("generating Go")?;
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".go")) {
        let mut text = std::str::from_utf8(text).context("Go is text")?.to_owned();
        for (theirs, own) in OWN {
            text = text.replace(theirs, own);
        }
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let path = Path::new(folder).join(name.replace('/', "-"));
        std::fs::write(&path, lines.join("\n") + "\n").with_context(|| format!("writing `{name}`"))?;
    }
    Ok(())
}
