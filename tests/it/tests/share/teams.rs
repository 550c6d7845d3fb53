//! A team's bundle from its publisher to the machines of its members, through a real registry.

mod attacks;
mod gives;
mod mandatory;
mod members;
mod publisher;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene};
use serde_json::Value;

/// Exit code of a verb that found something wrong.
const BAD: i32 = 1;

/// Returns the JSON object that a command has printed.
fn printed(finished: &Finished) -> Result<Value> {
    serde_json::from_str(&finished.stdout).with_context(|| format!("no JSON in {finished:#?}"))
}

/// Returns the version of the bundle in force.
fn in_force(scene: &Scene) -> Result<Value> {
    let status = printed(&scene.portcullis(&["team", "status", "--json"])?)?;
    Ok(status.pointer("/inForce/bundle").cloned().unwrap_or(Value::Null))
}

/// Expects that `team update` is refused with `said`, and that a version stays in force.
fn stays(scene: &Scene, version: u64, said: &str) -> Result<()> {
    let told = scene.portcullis(&["team", "update"])?.ended_with(BAD)?;
    let all = format!("{}{}", told.stdout, told.stderr);
    ensure!(all.contains(said), "no `{said}` in {told:#?}");
    ensure!(in_force(scene)? == version, "bundle {version} stays in force after `{said}`");
    Ok(())
}
