//! Frames of HTTP/2 that two parsers could read differently, sent by hand to a server of each version.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::super::http1::{has_one_reading, part};
use super::{SECRET, run, section, settings, stored};
use crate::network::PROGRAM;

as_each_user!(no_frame_is_read_in_two_ways);

const FRAMES: &str = include_str!("frames.py");
/// How many of its cases are attacks, and how many are controls.
const ATTACKS: usize = 109;
const CONTROLS: usize = 10;

/// Sends every case to a server, and returns the names of the cases with their answers.
fn send(
    world: &World<'_>,
    scene: &Scene,
    port: u16,
    token: &str,
) -> Result<(Finished, Vec<(String, String)>)> {
    scene.write(&scene.project().join("frames.py"), FRAMES)?;
    let script = format!("RAW_TOKEN=${token} python3 frames.py {port} 0.6");
    let mut settings = settings();
    let rule = json!({ "host": "allowed.test:9456", "allow": ["GET,POST /**"], "headers": ["X-Wanted"] });
    settings["network"]["requests"].as_array_mut().into_iter().for_each(|all| all.push(rule.clone()));
    let finished = run(world, scene, &settings, &[&script])?;
    let mut answers = Vec::new();
    let mut rest = section(&finished.stdout, 0).with_context(|| format!("{finished:#?}"))?;
    while let Some((name, after)) = rest.split_once("<").and_then(|(_, after)| after.split_once(">\n")) {
        let (answer, after) = after.split_once(&format!("</{name}>\n")).context("an end")?;
        answers.push((name.to_owned(), answer.to_owned()));
        rest = after;
    }
    Ok((finished, answers))
}

/// The names of cases with the answers to them.
type Answers = [(String, String)];

/// Splits the answers into those to attacks and those to controls.
fn parted(answers: &Answers) -> Result<(&Answers, &Answers)> {
    let place = answers.iter().position(|(name, _)| name == "controls").context("no controls")?;
    let (attacks, controls) = answers.split_at(place);
    let controls = controls.get(1..).unwrap_or_default();
    ensure!((attacks.len(), controls.len()) == (ATTACKS, CONTROLS), "{answers:#?}");
    Ok((attacks, controls))
}

fn no_frame_is_read_in_two_ways(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;

    let (finished, answers) = send(&world, &scene, 9456, "STREAMS_TOKEN").context("a server of HTTP/2")?;
    let requests = stored(&scene).with_context(|| format!("{finished:#?}"))?;
    answered(&answers, &finished)?;
    for request in &requests {
        ensure!(request["version"] == "2.0", "{request:#?}");
        has_one_authority(request).with_context(|| format!("{request:#?}"))?;
    }
    let texts: Vec<String> = requests.iter().map(Value::to_string).collect();
    arrived(&texts, &finished)?;

    let (finished, answers) = send(&world, &scene, 9445, "RAW_TOKEN").context("a server of HTTP/1.1")?;
    let text = fs::read_to_string(scene.at("world").join("raw")).context("what the raw server stored")?;
    answered(&answers, &finished)?;
    for line in text.lines() {
        let request: Value = serde_json::from_str(line)?;
        has_one_reading(&request).with_context(|| format!("{request:#?}"))?;
        let outside = [part(&request, "head"), part(&request, "between")];
        ensure!(!outside.iter().any(|text| text.contains("theirs")), "it arrived: {request:#?}");
    }
    let texts: Vec<String> = text.lines().map(str::to_owned).collect();
    arrived(&texts, &finished)?;

    // Without the gate, those that the server takes reach it.
    let authority = scene.at("world").join("authority.pem").display().to_string();
    let direct = format!(
        "cd {} && SSL_CERT_FILE={authority} RAW_TOKEN={SECRET} python3 frames.py 9456 0.2",
        scene.project().display()
    );
    let control = world.control(&direct)?.ended_with(0)?;
    let reached = control.stdout.matches("REACHED").count();
    ensure!(reached > 30 + CONTROLS, "{reached} of {ATTACKS}: {control:#?}");
    Ok(())
}

/// Checks that every control got the server's answer, and no attack did.
fn answered(answers: &Answers, finished: &Finished) -> Result<()> {
    let (attacks, controls) = parted(answers).with_context(|| format!("{finished:#?}"))?;
    for (name, answer) in controls {
        ensure!(answer.contains("REACHED"), "control, {name}: {answer}\n{}", finished.stderr);
    }
    for (name, answer) in attacks {
        // What is dropped on the way is harmless: the request arrives without it.
        let is_dropped = [
            "trailers that frame",
            "trailers with a pseudo-header",
            "data after the end",
            "a request behind the body",
        ];
        let is_harmless = is_dropped.contains(&name.as_str());
        ensure!(!answer.contains("REACHED") || is_harmless, "{name}: {answer}");
    }
    Ok(())
}

/// Checks that of the attacks nothing arrived that should not.
fn arrived(requests: &[String], finished: &Finished) -> Result<()> {
    ensure!(requests.len() >= CONTROLS, "{requests:#?}");
    for request in requests {
        ensure!(!request.contains("pcx_"), "a placeholder arrived: {request}");
        let is_body = request.contains("\"body\":\"theirs ") || request.contains("theirs pcx");
        ensure!(!request.contains("theirs") || is_body, "it arrived: {request}");
    }
    ensure!(!finished.stdout.contains(SECRET), "{finished:#?}");
    Ok(())
}

/// Checks the head of a request of HTTP/2.
fn has_one_authority(request: &Value) -> Result<()> {
    let words = request["headers"].as_array().context("headers")?;
    let names: Vec<&str> = words.iter().step_by(2).filter_map(Value::as_str).collect();
    let count = |wanted: &str| names.iter().filter(|name| **name == wanted).count();
    for once in [":method", ":scheme", ":authority", ":path"] {
        ensure!(count(once) == 1, "{once}");
    }
    ensure!(count("host") == 0 && count("authorization") <= 1 && count("cookie") <= 1, "{names:?}");
    ensure!(super::header(request, ":authority") == Some("allowed.test:9456"));
    ensure!(super::header(request, ":scheme") == Some("https"));
    for foreign in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        ensure!(count(foreign) == 0, "{foreign}");
    }
    Ok(())
}
