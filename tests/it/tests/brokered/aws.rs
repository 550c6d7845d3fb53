//! Requests to AWS, which commands sign with placeholders and the gate signs with the real keys, for a server that
//! checks signatures.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::{AWS_SERVER, SEARCH, before, folders, logs, marked, run_with, section};
use crate::network::PROGRAM;

as_each_user!(requests_to_aws_are_signed_anew, programs_sign_with_placeholders);

const CLIENT: &str = include_str!("aws_client.py");

/// The real keys, which the server knows.
const KEYS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "AKIAREAL0REAL0REAL00"),
    ("AWS_SECRET_ACCESS_KEY", "s3cr3t/Key+0f/AWS+0123456789abcdefghij"),
    ("AWS_SESSION_TOKEN", "s3cr3t-t0ken-0f-the-session/AAAA="),
];

/// The cases of the client that get through.
pub(super) const GOOD: usize = 8;

/// The other cases, each with a text of the answer.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("another path", "host.credential-signature"),
    ("another method", "403"),
    ("another query", "host.credential-signature"),
    ("another body", "host.credential-signature"),
    ("another header", "host.credential-signature"),
    ("a header of AWS that is not signed", "is not signed"),
    ("a header of AWS that is added", "`x-amz-tagging` is not signed"),
    ("a host that is not signed", "`host` is not signed"),
    ("another host", "host.other-server"),
    ("another host, signed", "host.malformed"),
    ("another region", "the region `us-east-1`"),
    ("another service", "the service `iam`"),
    ("a scope that is changed", "host.credential-signature"),
    ("an old signature", "15 minutes"),
    ("a signature of tomorrow", "15 minutes"),
    ("a list that names a header twice", "not sorted"),
    ("a list that names another header", "a header that is signed is missing"),
    ("two signatures", "host.malformed"),
    ("another algorithm", "AWS4-HMAC-SHA256 only"),
    ("pieces that are signed", "AWS_REQUEST_CHECKSUM_CALCULATION=when_required"),
    ("a part of an object", "a part of an object"),
    ("a presigned URL", "a presigned URL"),
    ("somebody else's token", "session token is not the placeholder"),
    ("the secret of somebody else", "host.credential-signature"),
    ("another path than `for` covers", "host.credential-purpose"),
    ("the secret in the body", "host.placeholder"),
    ("the secret in a body that is hashed", "host.placeholder"),
    ("the token in the body", "host.placeholder"),
    ("the id in the body", "host.placeholder"),
    ("the secret in the query", "host.placeholder"),
    ("the secret in a header", "host.placeholder"),
    ("the id without a signature", "host.placeholder"),
    ("the id in another scheme", "AWS4-HMAC-SHA256 only"),
    ("the keys of another account, with the placeholder of the token", "host.placeholder"),
];

/// Makes an entry for the server, with the real keys.
pub(super) fn entry(scene: &Scene, name: &str) -> Result<Value> {
    let file = scene.at("aws-keys");
    let lines: Vec<String> = KEYS.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    scene.write(&file, &lines.concat())?;
    Ok(json!({
        "name": name, "source": { "file": file }, "host": "allowed.test:9446", "form": "aws",
        "for": ["GET,HEAD /**", "PUT,POST /mine/**"], "services": ["s3", "sts"], "regions": ["eu-central-1"],
    }))
}

pub(super) fn settings(scene: &Scene) -> Result<Value> {
    Ok(json!({
        "network": { "allowedDomains": ["allowed.test"], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "credentials": { "brokered": [entry(scene, "bucket")?] },
    }))
}

/// Returns the answer to a case of the client.
pub(super) fn answer<'a>(said: &'a str, name: &str) -> Result<&'a str> {
    let begin = said.split_once(&format!("<{name}>")).with_context(|| format!("{name}: {said}"))?.1;
    Ok(begin.split_once(&format!("</{name}>")).context("its end")?.0)
}

/// Returns the requests that have reached the server since the last time.
pub(super) fn stored(scene: &Scene) -> Result<String> {
    let file = scene.at("world").join("aws");
    let text = fs::read_to_string(&file).unwrap_or_default();
    if file.exists() {
        fs::remove_file(&file)?;
    }
    Ok(text)
}

pub(super) fn write_client(scene: &Scene) -> Result<()> {
    scene.write(&scene.project().join("aws_server.py"), AWS_SERVER)?;
    scene.write(&scene.project().join("aws_client.py"), CLIENT)
}

pub(super) fn is_without_keys(finished: &Finished) -> Result<()> {
    for (name, value) in KEYS {
        ensure!(!format!("{finished:?}").contains(value), "{name}: {finished:#?}");
    }
    ensure!(!finished.stdout.contains("7333637233742f4b6579"), "in hexadecimal: {finished:#?}");
    Ok(())
}

/// Runs the client outside of the sandbox.
fn without_gate(world: &World<'_>, scene: &Scene, keys: [(&str, &str); 3]) -> Result<Finished> {
    let variables: Vec<String> = keys.iter().map(|(name, value)| format!("{name}='{value}'")).collect();
    let authority = scene.at("world").join("authority.pem");
    world.control(&format!(
        "cd {} && SSL_CERT_FILE={} {} python3 -W ignore aws_client.py",
        scene.project().display(),
        authority.display(),
        variables.join(" ")
    ))
}

fn requests_to_aws_are_signed_anew(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    write_client(&scene)?;
    let script = before(&folders()?) + "python3 -W ignore aws_client.py";
    let finished = run_with(&world, &scene, &settings(&scene)?, &script)?;
    for (name, wanted) in REFUSED {
        let said = answer(&finished.stdout, name)?;
        ensure!(said.contains(wanted) && !said.contains("REACHED"), "{name}: {said}\n{}", finished.stderr);
    }
    ensure!(finished.stdout.matches("REACHED").count() == GOOD, "{finished:#?}");
    is_without_keys(&finished)?;
    let reached = stored(&scene)?;
    let good = reached.lines().filter(|line| line.starts_with("good ")).count();
    ensure!(good == GOOD, "{reached}");
    ensure!(!reached.contains("pcx_"), "a placeholder arrived: {reached}");
    let log = logs(&scene)?;
    ensure!(log.contains("the credential `bucket` goes into"), "{log}");
    ensure!(!KEYS.iter().any(|(_, value)| log.contains(value)), "{log}");

    // Without the gate, the server accepts what the real keys have signed, and nothing of the placeholders.
    let real = without_gate(&world, &scene, KEYS)?;
    ensure!(real.stdout.matches("REACHED").count() >= GOOD, "the control: {real:#?}");
    let placeholders = KEYS.map(|(name, _)| (name, "pcx_0123456789012345678901234567890123456789"));
    let other = without_gate(&world, &scene, placeholders)?;
    ensure!(other.stdout.contains("another token") && !other.stdout.contains("REACHED"), "{other:#?}");
    Ok(())
}

/// Programs that sign, each with a word of the answer.
const PROGRAMS: &[&str] = &[
    "curl -sS $SIGN $A/a",
    "curl -sS $SIGN -X PUT --data-binary content -H 'Content-Type: text/plain' $A/mine/a",
    "curl -sS $SIGN \"$A/list?max-keys=2&prefix=a\"",
    "curl -sS $SIGN $A/echo",
    "curl -sS $SIGN $A/a $A/a",
];

fn programs_sign_with_placeholders(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let sign = "export A=https://allowed.test:9446\n\
                SIGN=\"--aws-sigv4 aws:amz:eu-central-1:s3 --user $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY \
                -H x-amz-security-token:$AWS_SESSION_TOKEN\"\n\
                export PART1=s3cr3t/Key+0f PART2=/AWS+0123456789abcdefghij\n";
    let scripts: Vec<&str> = PROGRAMS.iter().copied().chain([SEARCH]).collect();
    let script = before(&folders()?) + sign + &marked(&scripts);
    let finished = run_with(&world, &scene, &settings(&scene)?, &script)?;
    for (number, program) in PROGRAMS.iter().enumerate() {
        ensure!(section(&finished.stdout, number)?.contains("REACHED"), "{program}: {finished:#?}");
    }
    let found = section(&finished.stdout, PROGRAMS.len())?;
    ensure!(found.split_whitespace().eq(["0", "0", "memory", "0", "0"]), "{found}");
    is_without_keys(&finished)
}
