//! HTTP/2 with declared hosts: programs that speak it reach servers that do and servers that do not, and the same rules
//! hold as over HTTP/1.1.

mod calls;
mod floods;
mod frames;
mod judged_bodies;
mod pushes;
mod signed;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, World};
use serde_json::{Value, json};

use super::{SECRET, before, folders, logs, marked, run_with, section};
use crate::network::PROGRAM;

as_each_user!(programs_speak_the_second_version, both_versions_are_translated);

/// A server of both versions on port 9456, and one of HTTP/2 alone on 9457.
const STREAMS: &str = include_str!("http2/streams.js");

/// Settings with the servers of HTTP/2.
fn settings() -> Value {
    let mut settings = super::settings();
    let entry = |name: &str, port: u16, variable: &str| {
        json!({
            "name": name, "source": { "env": super::SOURCE }, "host": format!("allowed.test:{port}"),
            "form": "bearer", "for": [
                "GET,HEAD /**", "POST /mine/**", "POST /calls.Calls/**",
                "POST /graphql query:* mutation:createIssue",
            ],
            "variables": [variable],
        })
    };
    let mut basic = entry("streams-git", 9456, "STREAMS_PASSWORD");
    basic["form"] = json!("basic");
    basic["for"] = json!(["* /**"]);
    basic["git"] = json!(true);
    let brokered = settings["credentials"]["brokered"].as_array_mut();
    brokered.into_iter().for_each(|all| {
        all.extend([
            entry("streams", 9456, "STREAMS_TOKEN"),
            entry("only", 9457, "ONLY_TOKEN"),
            basic.clone(),
        ]);
    });
    let requests = settings["network"]["requests"].as_array_mut();
    let calls =
        json!({ "host": "allowed.test:9458", "allow": ["POST /calls.Calls/**"], "ownAccountOnly": false });
    requests.into_iter().for_each(|all| all.push(calls.clone()));
    settings
}

/// Runs a script inside, with the servers of HTTP/2.
fn run(world: &World<'_>, scene: &Scene, settings: &Value, scripts: &[&str]) -> Result<Finished> {
    scene.write(&scene.at("world").join("streams.js"), STREAMS)?;
    let own = "export S=https://allowed.test:9456 O=https://allowed.test:9457\n";
    run_with(world, scene, settings, &(before(&folders()?) + own + &marked(scripts)))
}

/// Returns the requests that the servers of HTTP/2 have stored, and forgets them.
fn stored(scene: &Scene) -> Result<Vec<Value>> {
    let file = scene.at("world").join("streams");
    let text = fs::read_to_string(&file).context("what the servers of HTTP/2 stored")?;
    fs::remove_file(&file)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns the value of a header that a server has stored.
fn header<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let words: Vec<&str> = request.get("headers")?.as_array()?.iter().filter_map(Value::as_str).collect();
    words.chunks(2).find_map(|pair| (pair.first() == Some(&name)).then(|| pair.get(1).copied())?)
}

/// A client of Node that speaks HTTP/2 only, and makes two requests at once on one connection.
const NODE: &str = "node -e 'const c = require(\"http2\").connect(process.env.URL), f = require(\"fs\");\n\
    c.on(\"error\", console.log); let left = 2;\n\
    for (const path of [\"/wants\", \"/mine/wants\"]) {\n\
    \x20 const method = path === \"/wants\" ? \"GET\" : \"POST\";\n\
    \x20 const r = c.request({ \":path\": path, \":method\": method, authorization: \"Bearer \" + process.env.TOKEN });\n\
    \x20 let text = \"\"; r.on(\"data\", (piece) => text += piece);\n\
    \x20 r.on(\"end\", () => { console.log(text); if (--left === 0) c.close(); });\n\
    \x20 method === \"POST\" ? r.end(\"body\") : r.end();\n\
    }'";

/// Programs with their scripts, which print `REACHED`, and the versions that the program and the server speak.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "curl",
        "curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/wants",
        "2",
    ),
    (
        "curl, posting",
        "curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" -d a=b $S/mine/a",
        "2",
    ),
    (
        "curl, posting much",
        "head -c 3000000 /dev/zero | curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" \
         -T - -X POST $S/mine/a",
        "2",
    ),
    (
        "curl, of which nothing is known beforehand",
        "curl -sS -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/wants",
        "2",
    ),
    (
        "curl with cookies",
        "curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" -b 'a=1; b=2' $S/cookie",
        "a=1; b=2 REACHED\n2",
    ),
    (
        "curl, receiving much",
        "curl -sS --http2 -w 'REACHED %{size_download} %{http_version}' $S/big -o /dev/null",
        "67108864 2",
    ),
    ("Node", NODE, ""),
    ("git", "git clone -q $S/git/repo.git cloned && cat cloned/file", ""),
    (
        "git, pushing",
        "cd cloned && git -c user.name=n -c user.email=e commit -q --allow-empty -m two && git push -q && echo REACHED",
        "",
    ),
];

fn programs_speak_the_second_version(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts: Vec<String> = PROGRAMS
        .iter()
        .map(|(_, script, _)| format!("export URL=$S TOKEN=$STREAMS_TOKEN; {script}"))
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run(&world, &scene, &settings(), &scripts)?;
    for (number, (name, _, wanted)) in PROGRAMS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains("REACHED") && output.contains(wanted), "{name}: {output}\n{finished:#?}");
    }
    let stored = stored(&scene)?;
    ensure!(stored.len() > 12, "{stored:#?}");
    for request in &stored {
        ensure!(request["version"] == "2.0", "the server was not spoken to in HTTP/2: {request:#?}");
        ensure!(!request.to_string().contains("pcx_"), "a placeholder arrived: {request:#?}");
    }
    let pushed =
        |request: &&Value| header(request, ":path").is_some_and(|path| path.ends_with("/git-receive-pack"));
    ensure!(stored.iter().any(|request| pushed(&request)), "git did not push in HTTP/2: {stored:#?}");
    let long = stored.iter().find(|request| request["length"] == 3_000_000);
    ensure!(long.is_some(), "{stored:#?}");
    ensure!(!finished.stdout.contains(SECRET) && !logs(&scene)?.contains(SECRET), "{finished:#?}");
    ensure!(logs(&scene)?.contains("the credential `streams` goes into"), "each use is logged");
    Ok(())
}

/// Scripts where the program and the server speak different versions, with what they print.
const TRANSLATED: &[(&str, &str, &str)] = &[
    (
        "a program of the first version",
        "curl -sS --http1.1 -w '%{http_version}' -H \"Authorization: Bearer $ONLY_TOKEN\" $O/wants",
        "REACHED\n1.1",
    ),
    (
        "HTTP/1.0",
        "curl -sS --http1.0 -w '%{http_version}' -H \"Authorization: Bearer $ONLY_TOKEN\" $O/wants",
        "REACHED\n1",
    ),
    (
        "a body in chunks",
        "head -c 300000 /dev/zero | curl -sS --http1.1 -H 'Expect: 100-continue' \
         -H \"Authorization: Bearer $ONLY_TOKEN\" -T - -X POST $O/mine/wants",
        "REACHED",
    ),
    (
        "an answer that repeats the credential",
        "curl -sS --http1.1 -D - -H \"Authorization: Bearer $ONLY_TOKEN\" $O/echo",
        "****",
    ),
    ("a program of the second version", "export URL=$B TOKEN=$FORGE_TOKEN; NODE", "REACHED"),
    ("the same over and over", "for n in 1 2 3; do export URL=$B TOKEN=$FORGE_TOKEN; NODE; done", "REACHED"),
    (
        "a program of both, and a server of the first",
        "curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $FORGE_TOKEN\" $B/wants",
        "REACHED\n1.1",
    ),
    (
        "a server that resets",
        "curl -sS --http2 -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/broken; \
         curl -sS --http2 -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/wants",
        "gave no answer: http2 error\nREACHED",
    ),
    (
        "a server that takes no request at first",
        "curl -sS --http2 -w '%{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/withdrawn",
        "REACHED\n2",
    ),
    (
        "a server that leaves",
        "curl -sS --rate 120/m --http2 -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/leave $S/wants $S/leave $S/wants",
        "REACHED\nREACHED\nREACHED\nREACHED",
    ),
    (
        "a refused request",
        "curl -sS --http2 -w '%{http_code} %{http_version}' -d a=b -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/theirs",
        "host.credential-purpose",
    ),
    (
        "a refused request without a body in the answer",
        "curl -sS -I --http2 -w '%{http_code} %{http_version}' -H \"Authorization: Bearer $STREAMS_TOKEN\" $S//theirs",
        "403 2",
    ),
    (
        "a refused request with a long body",
        "head -c 60000 /dev/zero | curl -sS --http2 -w '%{http_code} %{http_version}' --data-binary @- \
         -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/theirs",
        "403 2",
    ),
    (
        "a placeholder in the query",
        "curl -sS --http2 -w '%{http_code} %{http_version}' \"$S/a?t=$STREAMS_TOKEN\"",
        "403 2",
    ),
    ("a placeholder in the body", "curl -sS --http2 -d \"t=$STREAMS_TOKEN\" $S/mine/a", "host.placeholder"),
    (
        "an answer that is compressed",
        "curl -sS --http2 -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/gzip",
        "host.unreadable-answer",
    ),
    (
        "another host on the connection",
        "curl -sS --http2 -w '%{http_code}' -H 'Host: allowed.test:9457' -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/a",
        "421",
    ),
    (
        "the credential in an answer",
        "curl -sS --http2 -D - -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/echo",
        "****",
    ),
    (
        "the credential in pieces, and in a head before the answer",
        "curl -sS --http2 -D - -H \"Authorization: Bearer $STREAMS_TOKEN\" $S/pieces",
        "****",
    ),
];

fn both_versions_are_translated(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts: Vec<String> = TRANSLATED.iter().map(|(_, script, _)| script.replace("NODE", NODE)).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run(&world, &scene, &settings(), &scripts)?;
    for (number, (name, _, wanted)) in TRANSLATED.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains(wanted), "{name}: {output}\n{finished:#?}");
    }
    for request in stored(&scene)? {
        ensure!(!request.to_string().contains("pcx_"), "a placeholder arrived: {request:#?}");
        ensure!(!request.to_string().contains("theirs"), "a refused request arrived: {request:#?}");
    }
    ensure!(!finished.stdout.contains(SECRET) && !logs(&scene)?.contains(SECRET), "{finished:#?}");
    Ok(())
}
