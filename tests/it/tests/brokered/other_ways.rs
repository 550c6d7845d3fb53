//! Other ways to a host whose requests are limited: its address, and a name for its address.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::{Value, json};

use super::{before, folders, marked, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(
    a_limited_host_is_not_reached_by_its_address,
    a_limited_address_is_not_reached_by_a_name,
    a_limited_name_of_this_machine_is_not_reached_by_an_address,
    a_name_service_that_fails_opens_no_way,
    an_address_that_the_gate_has_used_is_known,
);

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

/// Each address of the machine leads to the server that listens on all of them.
fn a_limited_name_of_this_machine_is_not_reached_by_an_address(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?)
        + &marked(&[
            "curl -sS http://127.0.0.1:8000/ 2>&1",
            "curl -sS http://203.0.113.254:8000/ 2>&1",
            "curl -sS -x $PORTCULLIS_PROXY -p http://127.0.0.2:8000/ 2>&1",
            "curl -sS -x $PORTCULLIS_PROXY -p http://0.0.0.0:8000/ 2>&1",
        ]);
    for host in [None, Some("own.test:8000"), Some("loopback.test:8000"), Some("loop-by-hand.test:8000")] {
        let mut settings = both_ways(host);
        settings["network"]["allowedDomains"] = json!([
            "own.test",
            "loopback.test",
            "loop-by-hand.test",
            "203.0.113.254",
            "127.0.0.0/8",
            "0.0.0.0:8000"
        ]);
        let finished = run_with(&world, &scene, &settings, &script)?;
        for number in 0..4 {
            let is_reached =
                section(&finished.stdout, number).context(format!("{finished:#?}"))?.contains("REACHED");
            ensure!(is_reached == host.is_none(), "{host:?}: {finished:#?}");
        }
    }
    Ok(())
}

fn a_name_service_that_fails_opens_no_way(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?) + &marked(&[BY_ADDRESS]);
    for (host, is_open) in
        [("nobody.test:9444", true), ("broken.test:9444", false), ("silent.test:9444", false)]
    {
        let finished = run_with(&world, &scene, &both_ways(Some(host)), &script)?;
        ensure!(section(&finished.stdout, 0)?.contains("REACHED") == is_open, "{host}: {finished:#?}");
        ensure!(finished.stderr.contains("could not be looked up") != is_open, "{host}: {finished:#?}");
    }
    Ok(())
}

fn an_address_that_the_gate_has_used_is_known(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let earlier = "curl -sSk https://203.0.113.2:9444/open/a 2>&1";
    let by_name = "curl -sSk https://moves.test:9444/open/a 2>&1";
    let mut settings = both_ways(Some("moves.test:9444"));
    settings["network"]["allowedDomains"] = json!(["moves.test", "203.0.113.0/24"]);
    for (number, scripts) in
        [[earlier, "true", BY_ADDRESS], [earlier, by_name, BY_ADDRESS]].iter().enumerate()
    {
        let script = before(&folders()?) + &marked(scripts);
        let finished = run_with(&world, &scene, &settings, &script)?;
        ensure!(!section(&finished.stdout, 0)?.contains("REACHED"), "{finished:#?}");
        // The control: an address that the name has not had belongs to another server.
        ensure!(section(&finished.stdout, 2)?.contains("REACHED") == (number == 0), "{finished:#?}");
    }
    Ok(())
}
