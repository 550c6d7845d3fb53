//! Other ways to a host whose requests are limited: its address, and a name for its address.

use anyhow::{Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::{Value, json};

use super::{before, folders, marked, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(a_limited_host_is_not_reached_by_its_address, a_limited_address_is_not_reached_by_a_name);

const BY_NAME: &str = "curl -sSk -d data https://allowed.test:9444/open/a 2>&1";
const BY_ADDRESS: &str = "curl -sSk -d data https://203.0.113.1:9444/open/a 2>&1";
const PERMITTED: &str = "curl -sSk https://allowed.test:9444/open/a 2>&1";

fn limited(host: &str) -> Value {
    json!([{ "host": host, "allow": ["GET /open/**"] }])
}

/// Settings that allow the name and the address, and limit the requests to this host, if it is given.
fn both_ways(host: Option<&str>) -> Value {
    let mut settings = settings();
    settings["credentials"] = json!({});
    settings["network"]["allowedDomains"] = json!(["allowed.test", "203.0.113.1"]);
    settings["network"]["requests"] = host.map_or_else(|| json!([]), limited);
    settings
}

fn a_limited_host_is_not_reached_by_its_address(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let other_port = "curl -sSk https://203.0.113.1:9443/open/a 2>&1";
    let script = before(&folders()?) + &marked(&[BY_NAME, BY_ADDRESS, PERMITTED, other_port]);
    let control = run_with(&world, &scene, &both_ways(None), &script)?;
    for number in 0..4 {
        ensure!(section(&control.stdout, number)?.contains("REACHED"), "the control: {control:#?}");
    }
    let finished = run_with(&world, &scene, &both_ways(Some("allowed.test:9444")), &script)?;
    for number in [0, 1, 3] {
        ensure!(!section(&finished.stdout, number)?.contains("REACHED"), "{finished:#?}");
    }
    ensure!(section(&finished.stdout, 2)?.contains("REACHED"), "{finished:#?}");
    let told = "203.0.113.1 is `allowed.test`, to which only some requests may be sent";
    ensure!(finished.stderr.contains(told), "{finished:#?}");
    Ok(())
}

fn a_limited_address_is_not_reached_by_a_name(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?) + &marked(&[BY_NAME, BY_ADDRESS]);
    let finished = run_with(&world, &scene, &both_ways(Some("203.0.113.1:9444")), &script)?;
    for number in [0, 1] {
        ensure!(!section(&finished.stdout, number)?.contains("REACHED"), "{finished:#?}");
    }
    let told = "203.0.113.1 is `203.0.113.1:9444`, to which only some requests may be sent";
    ensure!(finished.stderr.contains(told), "{finished:#?}");
    Ok(())
}
