//! Checks of the pi extension: its types against both pi versions, and its own tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::{Pi, Tools};
use crate::project;
use crate::run::show;

const PACKAGE: &str = "@earendil-works/pi-coding-agent";

/// Checks the extension's types against the declarations of this pi.
///
/// The extension is installed beside pi, not pi beside the extension, so its own configuration cannot contain
/// the path of the declarations.
pub(crate) fn check_types(tools: &Tools, pi: &Pi) -> Result<()> {
    let tsc = tools.tsc.as_ref().context("set-up left no TypeScript")?;
    let modules =
        tsc.ancestors().find(|folder| folder.ends_with("node_modules")).context("finding node_modules")?;
    let package =
        pi.cli.ancestors().find(|folder| folder.ends_with(PACKAGE)).context("finding pi's package")?;
    let sources = project::root().join("pi");
    let configuration = serde_json::json!({
        "extends": sources.join("tsconfig.json"),
        "compilerOptions": {
            "typeRoots": [modules.join("@types")],
            "paths": { PACKAGE: [package.join("dist/index.d.ts")] },
        },
        "include": [sources.join("src"), sources.join("test")],
    });
    let directory = project::target_directory()?;
    fs::create_dir_all(&directory).context("creating the target directory")?;
    let file = directory.join("tsconfig.pi.json");
    fs::write(&file, configuration.to_string()).with_context(|| format!("writing `{}`", file.display()))?;
    show(Command::new(&pi.node).arg(tsc).arg("--project").arg(&file))
}

/// Returns the command that runs the extension's own tests, with the newer Node, which reads TypeScript.
pub(crate) fn tests(node: &Path) -> Result<Command> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let first = node.parent().map(Path::to_path_buf);
    let path: Vec<PathBuf> = first.into_iter().chain(std::env::split_paths(&rest)).collect();
    let mut npm = Command::new("npm");
    npm.arg("test").current_dir(project::root().join("pi"));
    npm.env("PATH", std::env::join_paths(path).context("putting Node first in PATH")?);
    Ok(npm)
}
