//! Every entry of the tables of names: commands and the tool can write a name listed as executed only after a question,
//! at the root of a project and deeper, and a name listed as harmless without one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(executed_names_are_asked_about, harmless_names_are_free);

const EXECUTED: &str = include_str!("../../../host/exec-surface/data/executed.txt");
const HARMLESS: &str = include_str!("../../../host/exec-surface/data/harmless.txt");

/// Names that were broken through once, or suspected: a copy, so that none is lost from the table unseen.
const BROKEN_ONCE: &[&str] = &[
    "_opam/.opam-switch/environment",
    ".pdm-python",
    ".reviewboardrc",
    ".conanrc",
    "pnpm-workspace.yaml",
    "bunfig.toml",
    "ansible.cfg",
    ".bzr/branch/branch.conf",
    ".arcconfig",
    ".gclient_entries",
    ".gitreview",
    "_FOSSIL_",
    ".jvmopts",
    ".sbtopts",
    ".rbenv-vars",
    ".jj/workspace-config.toml",
    ".bsp",
    "hie.yaml",
    ".lsp/config.edn",
    "x.code-workspace",
    "x.sublime-project",
    ".externalToolBuilders",
    ".woodpecker.yaml",
    "prek.toml",
    "hk.pkl",
    "captainhook.json",
    ".github/hooks",
    ".github/skills",
    ".roomodes",
    "CRUSH.md",
    ".openhands",
    ".amp",
    ".continuerc.json",
];

/// Harmless names that are directories: their own file is what git or another system for versions judges.
const DIRECTORIES: &[&str] = &[".git", ".github", ".bzr", ".hg", ".jj", ".pijul", ".sl", ".svn"];

/// Harmless for the host alone, see its reason in the table.
const OF_THE_HOST: &str = ".portcullis-*.tmp";

/// Gives every name in the file `names` content, in place and, where that fails, by renaming.
const WRITE_ALL: &str = "import os
names = open('names.txt').read().splitlines()
for name in names:
    try:
        os.makedirs(os.path.dirname(name), exist_ok=True)
        open(name, 'w').write('evil')
        continue
    except OSError: pass
    try:
        open('carried.txt', 'w').write('evil')
        os.rename('carried.txt', name)
    except OSError: pass
print('tried', len(names))
";

/// The first field of every entry, with an `x` for a `*`.
fn names(table: &'static str) -> Vec<String> {
    let lines = table.lines().filter(|line| !line.starts_with("# ") && !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" | ")?.0.replace('*', "x"))).collect()
}

fn is_evil(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text == "evil")
}

/// Puts the script and its names into the project.
fn prepare(scene: &Scene, paths: &[PathBuf]) -> Result<()> {
    let project = scene.project();
    let lines: Vec<String> = paths
        .iter()
        .map(|path| Ok(path.strip_prefix(&project)?.display().to_string()))
        .collect::<Result<_>>()?;
    scene.write(&project.join("names.txt"), &(lines.join("\n") + "\n"))?;
    scene.write(&project.join("write.py"), WRITE_ALL)?;
    scene.write(&project.join("src/there.txt"), "")?;
    scene.write(&project.join("deep/er/there.txt"), "")
}

/// Which paths a command writes.
fn by_command(scene: &Scene, host: &mut Serve, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    prepare(scene, paths)?;
    let (ended, said) = host.run("python3 write.py")?;
    ensure!(said == format!("tried {}\n", paths.len()), "{ended} {said}");
    Ok(paths.iter().filter(|path| is_evil(path)).cloned().collect())
}

/// Which paths the tool `write` writes.
fn by_tool(host: &mut Serve, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    /// The host takes no more at once.
    const AT_ONCE: usize = 64;
    for paths in paths.chunks(AT_ONCE) {
        let write = |path| json!({ "callId": "w", "path": path, "content": "evil" });
        let asked =
            paths.iter().map(|path| host.request("file/write", &write(path))).collect::<Result<Vec<_>>>()?;
        for id in asked {
            host.reply(id)?;
        }
    }
    Ok(paths.iter().filter(|path| is_evil(path)).cloned().collect())
}

/// A name at the root, in a directory of the project, and as a directory with a file in it.
fn places(project: &Path, name: &str) -> [PathBuf; 3] {
    [project.join(name), project.join("src").join(name), project.join("deep/er").join(name).join("x")]
}

/// Every third of them is there already, and no directory of another one.
fn put_there(scene: &Scene, paths: &[PathBuf]) -> Result<()> {
    for path in paths.iter().step_by(3) {
        let is_directory = paths.iter().any(|other| other != path && other.starts_with(path));
        if !is_directory && !path.exists() {
            scene.write(path, "old").with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

fn executed_names_are_asked_about(user: User) -> Result<()> {
    let names = names(EXECUTED);
    ensure!(names.len() > 350, "{}", names.len());
    let lost: Vec<_> = BROKEN_ONCE.iter().filter(|name| !names.contains(&(**name).to_owned())).collect();
    ensure!(lost.is_empty(), "not in the table: {lost:?}");

    let scene = Scene::new(user)?;
    let paths: Vec<PathBuf> = names.iter().flat_map(|name| places(&scene.project(), name)).collect();
    put_there(&scene, &paths)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let written = by_command(&scene, &mut host, &paths)?;
    ensure!(written.is_empty(), "commands wrote {written:#?}");
    let written = by_tool(&mut host, &paths)?;
    ensure!(written.is_empty(), "the tool wrote {written:#?}");
    host.close()?;

    // The control: the same script, free.
    let free = Scene::new(user)?;
    let paths: Vec<PathBuf> = names.iter().flat_map(|name| places(&free.project(), name)).collect();
    put_there(&free, &paths)?;
    prepare(&free, &paths)?;
    let mut control = user.command("/usr/bin/python3".as_ref());
    free.enter(&mut control);
    Finished::run(control.arg("write.py"))?.ended_with(0)?;
    let left: Vec<_> = paths.iter().filter(|path| !path.is_dir() && !is_evil(path)).collect();
    // Some are directories of others.
    ensure!(left.len() * 20 < paths.len(), "control: not written: {left:#?}");
    Ok(())
}

fn harmless_names_are_free(user: User) -> Result<()> {
    let names = names(HARMLESS);
    ensure!(names.len() > 90, "{}", names.len());
    let scene = Scene::new(user)?;
    let of_the_host = OF_THE_HOST.replace('*', "x");
    let paths: Vec<PathBuf> = names
        .iter()
        .filter(|name| **name != of_the_host)
        .map(|name| {
            scene.project().join(name).join(if DIRECTORIES.contains(&name.as_str()) { "x" } else { "" })
        })
        .map(|path| path.components().collect())
        .collect();
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let written = by_command(&scene, &mut host, &paths)?;
    let left: Vec<_> = paths.iter().filter(|path| !written.contains(path)).collect();
    ensure!(left.is_empty(), "commands may not write {left:#?}");
    for path in &paths {
        fs::remove_file(path)?;
    }
    let written = by_tool(&mut host, &paths)?;
    let left: Vec<_> = paths.iter().filter(|path| !written.contains(path)).collect();
    ensure!(left.is_empty(), "the tool may not write {left:#?}");
    // Below them as well, where the name is a directory.
    let below: Vec<PathBuf> = paths.iter().map(|path| path.join("x")).collect();
    for path in &paths {
        fs::remove_file(path)?;
    }
    let written = by_command(&scene, &mut host, &below)?;
    let left: Vec<_> = below.iter().filter(|path| !written.contains(path)).collect();
    ensure!(left.is_empty(), "commands may not write {left:#?}");
    host.close()?;
    Ok(())
}
