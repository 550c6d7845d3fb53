//! Checks the compatibility promise of a track: released items stay unchanged, and additions are new
//! interfaces, new worlds, and new functions in interfaces that the host provides.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use wit_parser::{PackageId, Resolve};

/// Released contracts, each with the folder that continues its track.
const RELEASED: [(&str, &str); 2] =
    [("tests/golden/0.1.0/wit", "wit"), ("tests/golden/0.2.0/wit", "wit/0.2")];
/// Start of the package line of a contract.
const PACKAGE: &str = "package portcullis:policy@";

pub(crate) fn check(root: &Path) -> Result<()> {
    for (released, folder) in RELEASED {
        let (old, new) = (texts(&root.join(released))?, texts(&root.join(folder))?);
        compare(&old, &new).with_context(|| format!("`{folder}` breaks what `{released}` promises"))?;
        println!("{folder} keeps what {released} promises");
    }
    Ok(())
}

/// Checks that `new` is compatible with `old`.
///
/// Every world of `old` must exist in `new`, and a policy built for one of them must run on a host of the
/// other.
fn compare(old: &[(String, String)], new: &[(String, String)]) -> Result<()> {
    let mut resolve = Resolve::default();
    // Two packages of the same name need different versions. The check ignores the versions.
    let old = push(&mut resolve, old, "0.2.998")?;
    let new = push(&mut resolve, new, "0.2.999")?;
    let worlds: Vec<_> =
        resolve.packages[old].worlds.iter().map(|(name, world)| (name.clone(), *world)).collect();
    for (name, world) in worlds {
        let next = *resolve.packages[new]
            .worlds
            .get(&name)
            .with_context(|| format!("the world `{name}` is not there any more"))?;
        wit_component::semver_check(resolve.clone(), world, next)
            .with_context(|| format!("the world `{name}` is not what it was"))?;
    }
    Ok(())
}

fn push(resolve: &mut Resolve, texts: &[(String, String)], version: &str) -> Result<PackageId> {
    let text: String = texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
    let mut lines: Vec<&str> = text.lines().collect();
    let Some(place) = lines.iter().position(|line| line.starts_with(PACKAGE)) else {
        bail!("the contract has no line that begins with `{PACKAGE}`");
    };
    lines.remove(place);
    let text = format!("{PACKAGE}{version};\n{}", lines.join("\n"));
    resolve.push_str("contract.wit", &text).context("reading the contract")
}

/// Returns the files of a contract, by name.
fn texts(folder: &Path) -> Result<Vec<(String, String)>> {
    let context = || format!("reading `{}`", folder.display());
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        // A later track has a folder of its own.
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(context)?;
        texts.push((path.display().to_string(), text));
    }
    texts.sort();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn golden(name: &str) -> Vec<(String, String)> {
        texts(&root().join("tests/golden").join(name).join("wit")).unwrap()
    }

    fn changed(from: &str, to: &str) -> Result<()> {
        let mut hits = 0;
        let new: Vec<_> = golden("0.1.0")
            .into_iter()
            .map(|(name, text)| {
                hits += text.matches(from).count();
                (name, text.replacen(from, to, 1))
            })
            .collect();
        assert!(hits > 0, "`{from}` is not in the contract");
        compare(&golden("0.1.0"), &new)
    }

    #[test]
    fn the_contract_keeps_its_promise() {
        check(root()).unwrap();
        compare(&golden("0.1.0"), &golden("0.1.1-additions")).unwrap();
    }

    #[test]
    fn the_second_track_keeps_its_promise_too() {
        let released = golden("0.2.0");
        let with = |from: &str, to: &str| -> Vec<(String, String)> {
            let replaced = |(name, text): &(String, String)| (name.clone(), text.replacen(from, to, 1));
            let changed: Vec<_> = released.iter().map(replaced).collect();
            assert_ne!(changed, released, "`{from}` is not in the contract");
            changed
        };
        assert!(compare(&released, &with("    dirty: option<bool>,", "    dirty: bool,")).is_err());
        assert!(compare(&released, &with("    rewrites,\n  }", "    rewrites,\n    added,\n  }")).is_err());
        let added = "  log: func(level: level, message: string);\n  more: func();";
        compare(&released, &with("  log: func(level: level, message: string);", added)).unwrap();
    }

    #[test]
    fn what_breaks_policies_is_refused() {
        for (from, to) in [
            // A field, a case, a flag, a parameter, a result.
            ("    interactive: bool,", "    interactive: bool,\n    added: bool,"),
            ("    abstain,\n    /// May go ahead", "    abstain,\n    added,\n    /// May go ahead"),
            ("    escalation,\n    other,\n  }", "    escalation,\n    added,\n    other,\n  }"),
            ("normalize: func(path: string, base: string)", "normalize: func(path: string)"),
            ("brief: func(context: context) -> string;", "brief: func(context: context) -> list<string>;"),
            // An export that every policy would need, and a removed world.
            (
                "  brief: func(context: context) -> string;",
                "  brief: func(context: context) -> string;\n  added: func() -> string;",
            ),
            ("world pure-rules {", "world renamed {"),
        ] {
            assert!(changed(from, to).is_err(), "`{to}` was accepted");
        }
        // Control: a new function that the host provides.
        let added = "  normalize: func(path: string, base: string) -> string;\n  added: func() -> string;";
        changed("  normalize: func(path: string, base: string) -> string;", added).unwrap();
    }
}
