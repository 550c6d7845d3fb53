//! The paths that pi itself needs.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::toolchains;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_session::AgentPlaces;

use crate::contain::start::Start;

/// Files of pi that it locks with a directory of the same name plus `.lock`.
const LOCKED: [&str; 5] = ["auth.json", "mcp-auth.json", "models-store.json", "settings.json", "trust.json"];
/// Files with credentials and endpoints that pi writes.
const CREDENTIALS: [&str; 4] = ["auth.json", "mcp-auth.json", "mcp-oauth", "models-store.json"];
/// Those that pi creates at its start, in order to lock them; creating them in the sandbox would ask.
const EMPTY_AT_FIRST: [&str; 2] = ["auth.json", "models-store.json"];
/// Directory of the sessions.
const SESSIONS: &str = "sessions";
/// Other files with data of other projects.
const LOGS: [&str; 3] = ["crashes.json", "mcp.log", "pi-debug.log"];

/// Returns the paths for a pi that starts in `project`. `others` are also readable.
pub(super) fn of_pi(
    around: &ProcessEnv,
    project: &Path,
    start: &Start,
    others: [&Path; 2],
) -> anyhow::Result<AgentPlaces> {
    let own_sessions = around.agent_directory.join(SESSIONS).join(name_of_sessions(project));
    // pi would create them too, but in the sandbox only existing paths are mounted.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&own_sessions)
        .with_context(|| format!("making `{}`, where pi keeps its sessions", own_sessions.display()))?;
    let directory = around.agent_directory.canonicalize().context("finding pi's directory")?;
    for name in EMPTY_AT_FIRST {
        make_empty(&directory.join(name)).with_context(|| format!("making pi's `{name}`"))?;
    }
    let at = |name: &str| directory.join(name);
    let asked: Vec<PathBuf> = CREDENTIALS.map(at).to_vec();
    let hidden: Vec<PathBuf> =
        [SESSIONS].iter().chain(&LOGS).map(|name| at(name)).filter(|path| path.exists()).collect();
    let locks: Vec<PathBuf> = LOCKED.iter().map(|name| at(&format!("{name}.lock"))).collect();
    let written = vec![own_sessions.canonicalize()?];
    let named = [&asked, &hidden, &written, &locks];
    let is_named = |path: &PathBuf| named.iter().any(|places| places.contains(path));
    let entries = fs::read_dir(&directory).context("listing pi's directory")?;
    let entries = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let fixed = entries.filter(|path| !is_named(path) && !path.is_symlink()).collect();
    let [program, socket] = others;
    let mut programs = vec![with_modules(program), socket.to_owned(), around.executable.clone()];
    programs.extend(start.extension.canonicalize());
    programs.extend(named_extensions(start, project));
    let reach = UntrustedPaths::of_project(project, &around.homes());
    let homes = around.homes();
    programs.extend(homes.iter().flat_map(|home| toolchains::roots(&around.path, home, &reach)));
    programs.extend(links_out(&directory));
    let installed = with_modules(program).canonicalize().into_iter().collect();
    let programs = programs.into_iter().filter_map(|path| path.canonicalize().ok());
    // A link or argument that leads to a home directory does not open it.
    let programs = programs.filter(|path| !homes.iter().any(|home| home.starts_with(path))).collect();
    Ok(AgentPlaces { directory, programs, installed, fixed, hidden, written, locks, asked })
}

/// Creates one of pi's files as pi does.
fn make_empty(file: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut made) => made.write_all(b"{}"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns pi's name for a project's session directory.
fn name_of_sessions(project: &Path) -> String {
    let text = project.to_string_lossy();
    let text = text.strip_prefix('/').unwrap_or(&text);
    format!("--{}--", text.replace(['/', '\\', ':'], "-"))
}

/// Returns the outermost `node_modules` around a program, or the program itself.
fn with_modules(program: &Path) -> PathBuf {
    let modules = program.ancestors().filter(|place| place.file_name() == Some(OsStr::new("node_modules")));
    modules.last().unwrap_or(program).to_owned()
}

/// Returns the existing paths that the user names on the command line as extensions, skills and the like.
fn named_extensions(start: &Start, project: &Path) -> Vec<PathBuf> {
    let after = start.arguments.iter().skip(1);
    let named = start.arguments.iter().zip(after).filter(|(word, _)| {
        ["-e", "--extension", "--skill", "--prompt-template", "--theme"].iter().any(|option| word == option)
    });
    named.map(|(_, path)| project.join(path)).filter(|path| path.exists()).collect()
}

/// Returns the targets of links in pi's directory, since users may keep their settings elsewhere.
fn links_out(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths.filter(|path| path.is_symlink()).filter_map(|path| path.canonicalize().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_as_pi_names_them() {
        assert_eq!(name_of_sessions(Path::new("/home/u/a:b")), "--home-u-a-b--");
    }

    #[test]
    fn a_program_comes_with_its_packages() {
        let cli = Path::new("/opt/x/node_modules/@a/pi/node_modules/b/cli.js");
        assert_eq!(with_modules(cli), Path::new("/opt/x/node_modules"));
        assert_eq!(with_modules(Path::new("/opt/x/pi")), Path::new("/opt/x/pi"));
    }
}
