//! Requests to AWS over HTTP/2: the same signatures are taken and refused as over HTTP/1.1.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::json;

use super::super::aws::{self, GOOD, REFUSED, answer, is_without_keys, write_client};
use super::{header, logs, run, stored};
use crate::network::PROGRAM;

as_each_user!(requests_to_aws_are_signed_anew_over_the_second_version);

const PLACE: &str = "allowed.test:9456";

fn requests_to_aws_are_signed_anew_over_the_second_version(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    write_client(&scene)?;
    let mut settings = aws::settings(&scene)?;
    settings["credentials"]["brokered"][0]["host"] = json!(PLACE);
    let script = format!("AWS_PLACE={PLACE} python3 -W ignore aws_client.py");
    let finished = run(&world, &scene, &settings, &[&script])?;
    // `curl` sends the first `Host` only; `frames` has requests with another one.
    let one_host = "another host, signed";
    let good = GOOD + 1;
    ensure!(answer(&finished.stdout, one_host)?.contains("REACHED"), "{finished:#?}");
    for (name, wanted) in REFUSED.iter().filter(|(name, _)| *name != one_host) {
        let said = answer(&finished.stdout, name)?;
        ensure!(said.contains(wanted) && !said.contains("REACHED"), "{name}: {said}\n{}", finished.stderr);
    }
    ensure!(finished.stdout.matches("REACHED").count() == good, "{finished:#?}");
    ensure!(finished.stdout.matches("HTTP/2 200").count() == good, "{finished:#?}");
    is_without_keys(&finished)?;
    let reached = aws::stored(&scene)?;
    ensure!(reached.lines().filter(|line| line.starts_with("good ")).count() == good, "{reached}");
    ensure!(reached.lines().count() == good, "{reached}");
    ensure!(!reached.contains("pcx_"), "a placeholder arrived: {reached}");
    for request in stored(&scene)? {
        ensure!(request["version"] == "2.0" && !request.to_string().contains("pcx_"), "{request:#?}");
        let signed = header(&request, "authorization").context("a signature")?;
        ensure!(signed.contains("host;x-amz-"), "{signed}");
    }
    ensure!(logs(&scene)?.contains("the credential `bucket` goes into"));
    Ok(())
}
