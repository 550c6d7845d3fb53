//! Toolchains in the home directory that PATH leads to.

use std::path::{Path, PathBuf};

/// Directories in a home directory that hold a toolchain, and what else belongs to it.
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
];

/// The roots of toolchains for the directories of `path`: a known directory as a whole, of any other
/// only the directory that is on PATH itself.
pub(crate) fn roots(path: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = path.iter().flat_map(|directory| roots_of(directory, home)).collect();
    roots.sort();
    roots.dedup();
    roots
}

fn roots_of(directory: &Path, home: &Path) -> Vec<PathBuf> {
    let Ok(inside) = directory.strip_prefix(home) else { return Vec::new() };
    let Some(first) = inside.components().next() else { return Vec::new() };
    let known = KNOWN.iter().find(|(name, _)| Path::new(name) == Path::new(first.as_os_str()));
    match known {
        Some((name, others)) => std::iter::once(name).chain(*others).map(|name| home.join(name)).collect(),
        None => vec![directory.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_roots() {
        let home = Path::new("/home/u");
        let check = |directory: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(roots(&[directory.into()], home), expected, "{directory}");
        };
        check("/home/u/.cargo/bin", &["/home/u/.cargo", "/home/u/.rustup"]);
        check("/home/u/.nvm/versions/node/v1/bin", &["/home/u/.nvm"]);
        check("/home/u/.local/bin", &["/home/u/.local/bin"]);
        check("/usr/bin", &[]);
        check("/home/u", &[]);
        check("/home/v/.cargo/bin", &[]);
    }
}
