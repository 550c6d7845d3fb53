//! The same calls through pi alone and through pi under Portcullis, in the same project: the results of the tools and
//! the files that they leave on disk are identical, byte for byte.

mod calls;
mod corpus;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::{call, calls, say};
use portcullis_it::{Launch, PiVersion, Scene, User, script};
use serde_json::{Value, json};

use calls::Call;

on_each_pi!(results_are_pis_own, commands_end_as_in_pi_alone);

fn results_are_pis_own(version: PiVersion, user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let all = calls::of_files(&scene, user);
    compare(&scene, version, &all)
}

fn commands_end_as_in_pi_alone(version: PiVersion, user: User) -> Result<()> {
    compare(&Scene::new(user)?, version, &calls::commands(version))
}

fn compare(scene: &Scene, version: PiVersion, all: &[Call]) -> Result<()> {
    let alone = run(scene, version, all, Guard::Without)?;
    let guarded = run(scene, version, all, Guard::With)?;
    let mut differing = Vec::new();
    for (call, (expected, found)) in all.iter().zip(alone.results.iter().zip(&guarded.results)) {
        if call.comparable(expected) != call.comparable(found) {
            differing
                .push(format!("{} {}\n  alone   {expected}\n  guarded {found}", call.tool, call.arguments));
        }
    }
    ensure!(differing.is_empty(), "{} calls differ:\n{}", differing.len(), differing.join("\n"));
    for (path, expected) in &alone.disk {
        let found = guarded.disk.get(path);
        ensure!(found == Some(expected), "`{path}`: {expected:?} alone, {found:?} guarded");
    }
    ensure!(alone.disk.len() == guarded.disk.len(), "{:?} {:?}", alone.disk.keys(), guarded.disk.keys());
    Ok(())
}

enum Guard {
    With,
    Without,
}

/// The results of one run of pi, and the files that it left.
struct Outcome {
    results: Vec<Value>,
    /// Mode and content of each file of the project.
    disk: BTreeMap<String, (u32, Vec<u8>)>,
}

fn run(scene: &Scene, version: PiVersion, all: &[Call], guard: Guard) -> Result<Outcome> {
    corpus::make(scene)?;
    let mut steps: Vec<Value> = all.iter().map(|one| calls([call(one.tool, &one.arguments)])).collect();
    steps.push(say("done"));
    let script = script(steps);
    let launch = match guard {
        Guard::With => Launch::guarded(scene, version, &script)?,
        Guard::Without => Launch::plain(scene, version, &script)?,
    };
    let launch = launch.with(["--mode", "json", "--tools", "read,write,edit,ls,find,grep,bash"]);
    // The files with the whole output of commands belong to pi in both runs.
    let temporary = scene.at("temporary");
    if !temporary.exists() {
        std::fs::create_dir(&temporary)?;
        scene.user().own(&temporary)?;
    }
    let finished =
        launch.variable("TMPDIR", temporary.display().to_string()).print("go")?.ended_unattended()?;
    let events = finished.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended = events.filter(|event| event.get("type") == Some(&json!("tool_execution_end")));
    let results: Vec<Value> = ended.map(|event| shortened(&event)).collect();
    ensure!(results.len() == all.len(), "{} results of {} calls: {finished:#?}", results.len(), all.len());
    let mut disk = BTreeMap::new();
    read_disk(&scene.project(), &scene.project(), &mut disk)?;
    Ok(Outcome { results, disk })
}

/// Returns the part of a call's end event that comes from the tool.
fn shortened(event: &Value) -> Value {
    let result = event.get("result").cloned().unwrap_or_default();
    json!({
        "content": result.get("content"), "details": result.get("details"),
        "structured": result.get("structuredContent"), "isError": event.get("isError"),
    })
}

fn read_disk(top: &Path, directory: &Path, disk: &mut BTreeMap<String, (u32, Vec<u8>)>) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    for entry in std::fs::read_dir(directory).with_context(|| format!("{}", directory.display()))? {
        let path = entry?.path();
        let status = std::fs::symlink_metadata(&path)?;
        if status.is_dir() {
            read_disk(top, &path, disk)?;
            continue;
        }
        let content = if status.is_file() { std::fs::read(&path)? } else { Vec::new() };
        let name = path.strip_prefix(top)?.to_string_lossy().into_owned();
        disk.insert(name, (status.mode(), content));
    }
    Ok(())
}
