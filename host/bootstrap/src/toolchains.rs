//! Finds toolchains in the home directory that are on PATH.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::process_env::is_executable;
use crate::untrusted_paths::UntrustedPaths;

/// Toolchain directories in a home directory, each with related directories.
const KNOWN: &[(&str, &[&str])] = &[
    (".cargo", &[".rustup"]),
    (".rustup", &[]),
    (".nvm", &[]),
    (".fnm", &[]),
    (".volta", &[]),
    (".pyenv", &[]),
    (".rbenv", &[]),
    (".asdf", &[]),
    (".sdkman", &[]),
    (".bun", &[]),
    (".deno", &[]),
    (".ghcup", &[]),
    (".opam", &[]),
    (".juliaup", &[]),
    (".linuxbrew", &[]),
    ("go", &[]),
    ("miniconda3", &[]),
    ("anaconda3", &[]),
    ("miniforge3", &[]),
    (".pixi", &[]),
    (".rye", &[]),
    (".proto", &[]),
    (".nodenv", &[]),
    (".jenv", &[]),
    (".swiftly", &[]),
    (".dotnet", &[]),
    (".rvm", &[]),
];

/// Maximum number of names to examine in a directory; real program directories have fewer.
const MOST_NAMES: usize = 2000;

/// Interpreters that may belong to another toolchain than their scripts.
const INTERPRETERS: [&str; 4] = ["python", "python3", "node", "ruby"];

/// Returns the roots of toolchains for the directories of `path`.
///
/// Known directories count as a whole, of others only the directory on PATH itself. Directories within `reach`, and
/// links to them, are excluded: the agent may have created the links, and any file could be made to look like part of a
/// toolchain.
pub fn roots(path: &[PathBuf], home: &Path, reach: &UntrustedPaths) -> Vec<PathBuf> {
    let in_home = path.iter().filter(|directory| directory.starts_with(home));
    let trusted = in_home.filter(|directory| !reach.holds(directory));
    let mut roots: Vec<PathBuf> = trusted.flat_map(|directory| roots_of(directory, home, reach)).collect();
    roots.retain(|root| !reach.holds(root));
    roots.sort();
    roots.dedup();
    roots
}

fn roots_of(directory: &Path, home: &Path, reach: &UntrustedPaths) -> Vec<PathBuf> {
    let Ok(inside) = directory.strip_prefix(home) else { return Vec::new() };
    let Some(first) = inside.components().next() else { return Vec::new() };
    let known = KNOWN.iter().find(|(name, _)| Path::new(name) == Path::new(first.as_os_str()));
    match known {
        Some((name, others)) => std::iter::once(name).chain(*others).map(|name| home.join(name)).collect(),
        None => std::iter::once(directory.to_owned()).chain(linked(directory, home, reach)).collect(),
    }
}

/// Returns the targets of links in a directory such as `~/.local/bin`.
///
/// These are tools installed in directories of their own (pipx, uv), with their interpreters.
fn linked(directory: &Path, home: &Path, reach: &UntrustedPaths) -> Vec<PathBuf> {
    let Ok(home) = home.canonicalize() else { return Vec::new() };
    let Ok(names) = directory.read_dir() else { return Vec::new() };
    let links =
        names.flatten().take(MOST_NAMES).filter(|name| name.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut roots: Vec<PathBuf> = links.filter_map(|link| root_behind(&link.path(), &home, reach)).collect();
    roots.sort();
    roots.dedup();
    let interpreters: Vec<PathBuf> = roots
        .iter()
        .flat_map(|root| INTERPRETERS.map(|name| root.join("bin").join(name)))
        .filter_map(|program| root_behind(&program, &home, reach))
        .collect();
    roots.extend(interpreters);
    roots
}

/// Returns the package of Node's, or the directory around the `bin`, of a program, or the program alone.
///
/// The directory must be deep enough in the home directory to contain only the tool.
fn root_behind(program: &Path, home: &Path, reach: &UntrustedPaths) -> Option<PathBuf> {
    /// `~/x/y`, but not `~/.local`.
    const DEEP: usize = 2;
    if !is_executable(program) || reach.holds(program) {
        return None;
    }
    let program = program.canonicalize().ok()?;
    let inside = program.strip_prefix(home).ok()?;
    let around_bin = || inside.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
    let root = package_of(inside).or_else(|| around_bin().map(Path::to_owned));
    Some(match root {
        Some(root) if root.components().count() >= DEEP => home.join(root),
        _ => program,
    })
}

/// Returns the package in `node_modules` that a file belongs to. Its own dependencies lie in it; pnpm's lie beside it, in
/// the directory `.pnpm`.
fn package_of(file: &Path) -> Option<PathBuf> {
    let names: Vec<&OsStr> = file.iter().collect();
    let modules = names.iter().position(|name| *name == "node_modules")?;
    let store = names.iter().take(modules).position(|name| *name == ".pnpm");
    let is_scoped = names.get(modules + 1)?.as_encoded_bytes().starts_with(b"@");
    let last = store.unwrap_or(modules + 1 + usize::from(is_scoped));
    Some(names.into_iter().take(last + 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_links_to_tools_that_lie_elsewhere() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let at = |path: &str| home.join(path);
        for file in [
            ".local/share/uv/tools/black/bin/black",
            ".local/share/uv/python/3/bin/python3",
            "scripts/mine",
            "scripts/theirs",
            "project/.venv/bin/x",
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
            std::fs::set_permissions(at(file), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(at("scripts/notes"), "").unwrap();
        std::fs::create_dir_all(at(".local/bin")).unwrap();
        for (link, target) in [
            (".local/bin/black", ".local/share/uv/tools/black/bin/black"),
            (".local/share/uv/tools/black/bin/python", ".local/share/uv/python/3/bin/python3"),
            (".local/bin/mine", "scripts/mine"),
            (".local/bin/gone", "nowhere"),
            (".local/bin/home", ""),
            (".local/bin/notes", "scripts/notes"),
            (".local/bin/theirs", "project/link"),
            ("project/link", "scripts/theirs"),
        ] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        std::os::unix::fs::symlink("/usr/bin/env", at(".local/bin/env")).unwrap();
        let expected =
            [".local/bin", ".local/share/uv/python/3", ".local/share/uv/tools/black", "scripts/mine"].map(at);
        let reach = UntrustedPaths::of_project(&at("project"), std::slice::from_ref(&home));
        let path = [at(".local/bin"), at("project/.venv/bin")];
        assert_eq!(roots(&path, &home, &reach), expected);
    }

    #[test]
    fn a_package_of_node_is_whole() {
        for (file, package) in [
            (".local/lib/node_modules/cowsay/cli.js", Some(".local/lib/node_modules/cowsay")),
            (".local/lib/node_modules/@a/b/dist/bin/c.js", Some(".local/lib/node_modules/@a/b")),
            (".p/global/5/.pnpm/x@1/node_modules/x/x.js", Some(".p/global/5/.pnpm")),
            (".local/lib/node_modules/a/node_modules/b/c.js", Some(".local/lib/node_modules/a")),
            ("tools/bin/x", None),
            ("a/node_modules", None),
        ] {
            assert_eq!(package_of(Path::new(file)), package.map(PathBuf::from), "{file}");
        }
    }

    #[test]
    fn finds_roots() {
        let home = Path::new("/home/u");
        let check = |directory: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            let reach = UntrustedPaths::of_project(Path::new("/w"), &[]);
            assert_eq!(roots(&[directory.into()], home, &reach), expected, "{directory}");
        };
        check("/home/u/.cargo/bin", &["/home/u/.cargo", "/home/u/.rustup"]);
        check("/home/u/.nvm/versions/node/v1/bin", &["/home/u/.nvm"]);
        check("/home/u/.local/bin", &["/home/u/.local/bin"]);
        check("/usr/bin", &[]);
        check("/home/u", &[]);
        check("/home/v/.cargo/bin", &[]);
    }
}
