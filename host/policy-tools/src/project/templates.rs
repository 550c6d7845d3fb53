//! Files that `policy new` writes.
//!
//! The SDK and the contract are copied into each new policy, so that building it needs only this program.

use portcullis_packs::Language;

/// A file: its path in the new folder, and its text with placeholders.
pub(super) type File = (&'static str, &'static str);

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $name))
    };
}

macro_rules! tree {
    ($($name:literal),* $(,)?) => {
        &[$((concat!("portcullis/", $name), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $name)))),*]
    };
}

const COMMON: [File; 5] = [
    ("policy.toml", template!("policy.toml")),
    ("README.md", template!("README.md")),
    (".gitignore", template!("gitignore")),
    ("tests/cases.toml", template!("cases.toml")),
    ("config.schema.json", template!("config.schema.json")),
];

/// Only hosts read these cases, so they are not in the folder of the native tests.
const SPELLINGS: File = ("tests/spellings.toml", template!("spellings.toml"));

const RUST: [File; 3] = [
    ("Cargo.toml", template!("rust/Cargo.toml")),
    ("src/lib.rs", template!("rust/src/lib.rs")),
    ("portcullis/guest/sdk/Cargo.toml", template!("rust/sdk.toml")),
];

const JS: [File; 2] =
    [("package.json", template!("js/package.json")), ("policy.js", template!("js/policy.js"))];

const JS_HELPERS: [File; 4] = [
    ("portcullis/policy.js", template!("js/helpers.js")),
    ("portcullis/policy.d.ts", template!("js/helpers.d.ts")),
    ("portcullis/commands.js", template!("js/commands.js")),
    ("portcullis/table.js", template!("js/table.js")),
];

const PYTHON: [File; 2] = [
    ("requirements.txt", template!("python/requirements.txt")),
    ("policy.py", template!("python/policy.py")),
];

const PYTHON_HELPERS: [File; 3] = [
    ("portcullis_policy.py", template!("python/helpers.py")),
    ("portcullis_commands.py", template!("python/commands.py")),
    ("portcullis_table.py", template!("python/table.py")),
];

const C: [File; 1] = [("policy.c", template!("c/policy.c"))];

/// `cargo xtask gen` generates the bindings from the contract.
const C_HELPERS: [File; 10] = [
    ("portcullis/policy.h", template!("c/bindings.h")),
    ("portcullis/policy.c", template!("c/bindings.c")),
    ("portcullis/helpers.h", template!("c/helpers.h")),
    ("portcullis/helpers.c", template!("c/helpers.c")),
    ("portcullis/commands.h", template!("c/commands.h")),
    ("portcullis/commands.c", template!("c/commands.c")),
    ("portcullis/table.h", template!("c/table.h")),
    ("portcullis/libc/stdlib.h", template!("c/libc/stdlib.h")),
    ("portcullis/libc/string.h", template!("c/libc/string.h")),
    ("portcullis/libc/libc.c", template!("c/libc/libc.c")),
];

const GO: [File; 2] = [("go.mod", template!("go/go.mod")), ("policy.go", template!("go/policy.go"))];

/// `cargo xtask gen` generates the bindings from the contract.
const GO_HELPERS: [File; 14] = [
    ("portcullis/helpers.go", template!("go/helpers.go")),
    ("portcullis/commands.go", template!("go/commands.go")),
    ("portcullis/table.go", template!("go/table.go")),
    ("portcullis/wit_types/types.go", template!("go/wit_types.go")),
    ("portcullis/wit_runtime/runtime.go", template!("go/wit_runtime.go")),
    ("portcullis/wit_exports/exports.go", template!("go/bindings/exports.go")),
    ("portcullis/portcullis_policy_types/bindings.go", template!("go/bindings/types.go")),
    ("portcullis/portcullis_policy_lifecycle/bindings.go", template!("go/bindings/lifecycle.go")),
    ("portcullis/portcullis_policy_confinement/bindings.go", template!("go/bindings/confinement.go")),
    ("portcullis/export_portcullis_policy_lifecycle/exports.go", template!("go/exports/lifecycle.go")),
    ("portcullis/export_portcullis_policy_evaluator/exports.go", template!("go/exports/evaluator.go")),
    ("portcullis/export_portcullis_policy_confinement/exports.go", template!("go/exports/confinement.go")),
    (
        "portcullis/export_portcullis_policy_output_filter/exports.go",
        template!("go/exports/output_filter.go"),
    ),
    ("portcullis/export_portcullis_policy_orientation/exports.go", template!("go/exports/orientation.go")),
];

/// The contract.
const WIT: &[File] = tree!["wit/types.wit", "wit/exports.wit", "wit/imports.wit", "wit/world.wit"];

/// The sources of the SDK; a test compares them with the folder.
const SDK: &[File] = tree![
    "guest/sdk/src/bindings.rs",
    "guest/sdk/src/cases/case.rs",
    "guest/sdk/src/cases/format.rs",
    "guest/sdk/src/cases/mod.rs",
    "guest/sdk/src/cases/run.rs",
    "guest/sdk/src/command.rs",
    "guest/sdk/src/command/line.rs",
    "guest/sdk/src/command/matching.rs",
    "guest/sdk/src/command/rows.rs",
    "guest/sdk/src/command/table.rs",
    "guest/sdk/src/configuration.rs",
    "guest/sdk/src/descriptor.rs",
    "guest/sdk/src/export.rs",
    "guest/sdk/src/glob.rs",
    "guest/sdk/src/grant.rs",
    "guest/sdk/src/lib.rs",
    "guest/sdk/src/network.rs",
    "guest/sdk/src/pattern.rs",
    "guest/sdk/src/place.rs",
    "guest/sdk/src/policy.rs",
    "guest/sdk/src/reservation.rs",
    "guest/sdk/src/rules.rs",
    "guest/sdk/src/standing.rs",
    "guest/sdk/src/testing.rs",
    "guest/sdk/src/verdict.rs",
];

/// Returns all files of a new policy.
pub(super) fn files(language: Language) -> Vec<File> {
    let (own, helpers): (&[File], Vec<File>) = match language {
        Language::Rust => (&RUST, [WIT, SDK].concat()),
        Language::Js => (&JS, helpers(language)),
        Language::Python => (&PYTHON, helpers(language)),
        Language::C => (&C, helpers(language)),
        Language::Go => (&GO, helpers(language)),
        Language::None => (&[], Vec::new()),
    };
    [COMMON.as_slice(), &[SPELLINGS], own, &helpers].concat()
}

/// Returns our files that a policy in this language needs for building. Rust policies name theirs in `Cargo.toml`.
pub(super) fn helpers(language: Language) -> Vec<File> {
    let own: &[File] = match language {
        Language::Js => &JS_HELPERS,
        Language::Python => &PYTHON_HELPERS,
        Language::C => &C_HELPERS,
        Language::Go => &GO_HELPERS,
        Language::Rust | Language::None => return Vec::new(),
    };
    [own, WIT].concat()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_whole_sdk_is_given() {
        fn walk(folder: &Path, top: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, top, found);
                } else {
                    found.push(format!("portcullis/{}", path.strip_prefix(top).unwrap().display()));
                }
            }
        }
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (folder, files) in [("guest/sdk/src", SDK), ("wit", WIT)] {
            let mut found = Vec::new();
            walk(&top.join(folder), &top, &mut found);
            // The SDK is for track 0.1.
            found.retain(|name| !name.starts_with("portcullis/wit/0.2/"));
            found.sort();
            let mut given: Vec<_> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
            given.sort();
            assert_eq!(given, found);
        }
    }
}
