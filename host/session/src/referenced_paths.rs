//! Paths that the project's files give to a program: the remotes of git, the modules beside a Go module, the `path`
//! dependencies of Cargo and of Python projects, and the `file:` dependencies of npm.
//!
//! A program reads them from its own files, so they are not among the words of the command. A path found here is a
//! guess about the files that the program will open: it leads to a question about a place, and to nothing else.

use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::profile::FileRight;
use portcullis_exec_surface::git::config_text;
use portcullis_file_gate::HostDirectory;
use serde_json::Value as Json;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;
/// Maximum number of paths from one file.
const MOST: usize = 64;
/// Maximum number of bytes to read for one script, which can name programs thousands of times.
pub(crate) const ROOM: u64 = 4 * LONGEST;
/// The part of that for looking up a file, whether it exists or not.
const LOOK: u64 = 4096;

/// A path that a file of the project gives to a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The absolute path, as the file spells it.
    pub(crate) path: PathBuf,
    /// The access that the program wants.
    pub(crate) right: FileRight,
}

/// Returns the paths that the program in `words` takes from the files of the directory that it runs in, and of those
/// around that, up to the project's top directory, as far as there is `room`.
pub(crate) fn find(words: &[&str], cwd: &Path, workspace: &[PathBuf], room: &mut u64) -> Vec<Reference> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut right = FileRight::Read;
    let sources: &[Source] = match program {
        "git" => match rest.iter().find(|word| GIT_REMOTE_VERBS.contains(word)) {
            Some(&verb) => {
                if verb == "push" {
                    right = FileRight::Write;
                }
                &[GIT]
            }
            None => return Vec::new(),
        },
        "go" => &[GO_MODULE, GO_WORKSPACE],
        "cargo" => &[CARGO],
        "npm" | "npx" | "pnpm" | "yarn" | "bun" => &[NPM],
        "uv" | "pip" | "pip3" | "poetry" | "pdm" => &[PYTHON],
        _ => return Vec::new(),
    };
    let is_inside = |directory: &&Path| workspace.iter().any(|top| directory.starts_with(top));
    let mut found = Vec::new();
    for source in sources {
        for directory in cwd.ancestors().take_while(is_inside) {
            let Some(left) = room.checked_sub(LOOK) else { return found };
            let holder = HostDirectory::open(&directory.join(source.directory));
            let text = holder.and_then(|holder| holder.read(source.file, left.min(LONGEST)));
            *room = left.saturating_sub(text.as_ref().map_or(0, |text| text.len() as u64));
            let Some(text) = text else { continue };
            let paths = (source.paths)(&text, rest).into_iter().take(MOST);
            let paths = paths.map(|path| path_text::normalize(&directory.join(path)));
            found.extend(paths.map(|path| Reference { path, right }));
        }
    }
    found
}

/// Verbs of git that access a remote repository.
const GIT_REMOTE_VERBS: [&str; 6] = ["fetch", "pull", "push", "ls-remote", "remote", "submodule"];

/// A file that names other paths.
struct Source {
    /// The directory that it is in, from that of the project.
    directory: &'static str,
    file: &'static str,
    /// Returns the paths in its text, relative to the directory of the project, or absolute. The second argument holds
    /// the words that the program gets.
    paths: fn(&[u8], &[&str]) -> Vec<String>,
}

const GIT: Source = Source { directory: ".git", file: "config", paths: remotes };
const GO_MODULE: Source = Source { directory: "", file: "go.mod", paths: go_paths };
const GO_WORKSPACE: Source = Source { directory: "", file: "go.work", paths: go_paths };
const CARGO: Source = Source { directory: "", file: "Cargo.toml", paths: toml_paths };
const PYTHON: Source = Source { directory: "", file: "pyproject.toml", paths: toml_paths };
const NPM: Source = Source { directory: "", file: "package.json", paths: npm_paths };

/// Returns the paths of the remotes that the words name, or of all if they name none, and those of submodules.
fn remotes(text: &[u8], words: &[&str]) -> Vec<String> {
    let entries = config_text::parse(text).unwrap_or_default();
    let addresses: Vec<(Option<&str>, String)> = entries
        .iter()
        .filter_map(|entry| {
            let name = str::from_utf8(&entry.name).ok()?;
            let key = name.strip_suffix(".url").or_else(|| name.strip_suffix(".pushurl"))?;
            let remote = key.strip_prefix("remote.");
            let address = str::from_utf8(entry.value.as_deref()?).ok()?;
            (remote.is_some() || key.starts_with("submodule.")).then_some((remote, local(address)?))
        })
        .collect();
    let is_word = |remote: &str| words.contains(&remote);
    let names_one = addresses.iter().any(|(remote, _)| remote.is_some_and(is_word));
    let wanted = addresses.into_iter().filter(|(remote, _)| !names_one || remote.is_none_or(is_word));
    wanted.map(|(_, address)| address).collect()
}

/// Returns the path of a repository's address in the file system.
fn local(address: &str) -> Option<String> {
    let path = address.strip_prefix("file://").unwrap_or(address);
    let first = path.split('/').next().unwrap_or_default();
    (!first.contains(':') && !path.starts_with('~')).then(|| path.to_owned())
}

/// Returns the words of a file of Go that are paths: those that begin with `./`, `../` or `/`.
fn go_paths(text: &[u8], _words: &[&str]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(str::split_whitespace).map(|word| word.trim_matches(['"', '`']));
    words.filter(|word| is_path(word)).map(str::to_owned).collect()
}

fn is_path(word: &str) -> bool {
    ["./", "../", "/"].iter().any(|start| word.starts_with(start)) || word == ".."
}

/// Returns the values of all keys called `path`.
fn toml_paths(text: &[u8], _words: &[&str]) -> Vec<String> {
    let table = std::str::from_utf8(text).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let mut found = Vec::new();
    for (name, value) in table.iter().flatten() {
        in_toml(name, value, &mut found);
    }
    found
}

fn in_toml(name: &str, value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(path) if name == "path" => found.push(path.clone()),
        toml::Value::Table(table) => table.iter().for_each(|(name, value)| in_toml(name, value, found)),
        toml::Value::Array(array) => array.iter().for_each(|value| in_toml("", value, found)),
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => {}
    }
}

fn npm_paths(text: &[u8], _words: &[&str]) -> Vec<String> {
    let package: Json = serde_json::from_slice(text).unwrap_or_default();
    let tables = ["dependencies", "devDependencies", "optionalDependencies"];
    let tables = tables.iter().filter_map(|table| package.get(table)?.as_object());
    let values = tables.flat_map(serde_json::Map::values).filter_map(Json::as_str);
    let path = |value: &str| {
        let given = ["file:", "link:", "portal:"].iter().find_map(|scheme| value.strip_prefix(scheme));
        given.map(str::to_owned).or_else(|| is_path(value).then(|| value.to_owned()))
    };
    values.filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap().join("app");
        for (name, text) in files {
            let file = top.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        std::fs::create_dir_all(top.join("src/deep")).unwrap();
        (root, top)
    }

    #[test]
    fn files_of_the_project_name_paths() {
        let git = "[remote \"origin\"]\n\turl = ../origin.git\n[remote \"x\"]\n\turl = https://a.test/x.git\n\
                   [remote \"y\"]\n\turl = a.test:y.git\n\tpushurl = file:///srv/y.git\n";
        let files = [
            (".git/config", git),
            ("go.mod", "module a\nreplace b => ../lib // ../none\nreplace c v1 => c.test/c v2\n"),
            ("go.work", "use (\n\t./x\n\t../y\n)\n"),
            (
                "Cargo.toml",
                "[dependencies]\na = { path = \"../a\" }\n[target.x.dependencies.b]\npath = \"b\"\n",
            ),
            ("pyproject.toml", "[tool.uv.sources]\nlib = { path = \"../py\" }\n"),
            ("package.json", "{\"dependencies\":{\"a\":\"file:../js\",\"b\":\"^1\"},\"x\":\"../y\"}"),
        ];
        let (_root, top) = project(&files);
        let workspace = [top.clone()];
        for (command, expected) in [
            ("git fetch", &["../origin.git", "/srv/y.git"][..]),
            ("git fetch origin", &["../origin.git"]),
            ("git pull x main", &["../origin.git", "/srv/y.git"]),
            ("git status", &[]),
            ("/usr/bin/go build", &["../lib", "x", "../y"]),
            ("cargo build", &["../a", "b"]),
            ("uv sync", &["../py"]),
            ("npm ci", &["../js"]),
            ("cat go.mod", &[]),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            let found = find(&words, &top.join("src/deep"), &workspace, &mut ROOM.clone());
            let expected: Vec<PathBuf> =
                expected.iter().map(|path| path_text::normalize(&top.join(path))).collect();
            assert_eq!(
                found.iter().map(|found| found.path.clone()).collect::<Vec<_>>(),
                expected,
                "{command}"
            );
            assert!(found.iter().all(|found| found.right == FileRight::Read), "{command}");
        }
        let pushed = find(&["git", "push"], &top, &workspace, &mut ROOM.clone());
        assert!(!pushed.is_empty() && pushed.iter().all(|found| found.right == FileRight::Write));
    }

    #[test]
    fn a_script_has_only_so_much_read() {
        let long = format!("[dependencies]\na = {{ path = \"../a\" }}\n{}", "#\n".repeat(400_000));
        let (_root, top) = project(&[("Cargo.toml", &long)]);
        let workspace = [top.clone()];
        let mut room = ROOM;
        let found = (0..100).map(|_| find(&["cargo", "build"], &top, &workspace, &mut room).len());
        assert_eq!(found.sum::<usize>(), 5);
        assert!(
            (0..2000).all(|_| find(&["npm", "ci"], &top, &workspace, &mut room).is_empty()) && room < LOOK
        );
    }

    #[test]
    fn only_plain_files_of_the_project_are_read() {
        let (root, top) = project(&[]);
        let outside = root.path().join("Cargo.toml");
        std::fs::write(&outside, "[dependencies]\na = { path = \"../a\" }\n").unwrap();
        let workspace = [top.clone()];
        assert_eq!(
            find(&["cargo", "build"], &top, &workspace, &mut ROOM.clone()),
            [],
            "a file around the project"
        );
        std::os::unix::fs::symlink(&outside, top.join("Cargo.toml")).unwrap();
        assert_eq!(find(&["cargo", "build"], &top, &workspace, &mut ROOM.clone()), [], "a link");
        std::fs::remove_file(top.join("Cargo.toml")).unwrap();
        std::fs::write(top.join("Cargo.toml"), "not = [toml").unwrap();
        assert_eq!(find(&["cargo", "build"], &top, &workspace, &mut ROOM.clone()), [], "a mistake");
    }
}
