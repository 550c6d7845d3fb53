//! Bodies over HTTP/2 that are judged as a whole, or that wait for each other.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};

use super::{SECRET, logs, run, section, settings, stored};
use crate::network::PROGRAM;

as_each_user!(operations_are_judged_over_the_second_version, bodies_do_not_stop_each_other);

/// A client that makes requests at the same time on one connection: `at-once URL PATH TOKEN COUNT`, with a document of
/// GraphQL and the length of its comment. It prints the statuses, and the last answer.
const AT_ONCE: &str = "\
const [url, path, token, count, document, filling, step] = process.argv.slice(2);\n\
const c = require('http2').connect(url, { maxSessionMemory: 1000 });\n\
c.on('error', (error) => console.log('error', error.message));\n\
const body = Buffer.from(JSON.stringify({ query: document + '#' + ' '.repeat(Number(filling)) }));\n\
const statuses = {};\n\
let left = Number(count), last = '';\n\
for (let one = 0; one < Number(count); one++) {\n\
  const r = c.request({ ':method': 'POST', ':path': path, authorization: 'Bearer ' + token, 'content-type': 'application/json' });\n\
  let text = '', status = 'none';\n\
  r.on('response', (head) => (status = head[':status']));\n\
  r.on('data', (piece) => (text += piece));\n\
  r.on('error', (error) => (status = error.message));\n\
  r.on('close', () => {\n\
    statuses[status] = (statuses[status] ?? 0) + 1; last = text;\n\
    if (--left === 0) { console.log(JSON.stringify(statuses), last.slice(-300)); c.close(); }\n\
  });\n\
  const size = Number(step) || body.length;\n\
  for (let from = 0; from < body.length; from += size) r.write(body.subarray(from, from + size));\n\
  r.end();\n\
}\n\
setTimeout(() => { console.log('timeout', JSON.stringify(statuses), left); process.exit(); }, 50000).unref();\n";

const QUERY: &str = "{ viewer { login } }";
const DELETES: &str = "mutation createIssue { deleteRepository(id: 1) { id } }";

/// Requests with the path, the document and further words, and with what comes of them.
const OPERATIONS: &[(&str, &str, &str, &str, &[&str])] = &[
    ("a query", "/graphql", QUERY, "0", &["{\"200\":1}", "REACHED"]),
    ("a query in single bytes", "/graphql", QUERY, "0 1", &["{\"200\":1}", "REACHED"]),
    ("a mutation", "/graphql", "mutation { createIssue(a: 1) { id } }", "0", &["{\"200\":1}", "REACHED"]),
    ("another mutation", "/graphql", DELETES, "0", &["{\"403\":1}", "mutation:deleteRepository"]),
    (
        "another mutation in single bytes",
        "/graphql",
        DELETES,
        "0 1",
        &["{\"403\":1}", "mutation:deleteRepository"],
    ),
    (
        "another operation in the document",
        "/graphql",
        "query a { viewer { login } } mutation b { deleteRepository(id: 1) { id } }",
        "0",
        &["{\"403\":1}", "mutation:deleteRepository"],
    ),
    ("a query after the path", "/graphql?query=x", QUERY, "0", &["{\"403\":1}", "host.request-rule"]),
    ("a document that is too long", "/graphql", QUERY, "1048577", &["{\"403\":1}", "longer than 1 MiB"]),
    (
        "the control: a path without a rule on operations",
        "/mine/graphql",
        DELETES,
        "0",
        &["{\"200\":1}", "REACHED"],
    ),
];

fn operations_are_judged_over_the_second_version(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("at-once.js"), AT_ONCE)?;
    let scripts: Vec<String> = OPERATIONS
        .iter()
        .map(|(_, path, document, more, _)| {
            format!("node at-once.js $S '{path}' $STREAMS_TOKEN 1 '{document}' {more}")
        })
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run(&world, &scene, &settings(), &scripts)?;
    for (number, (name, _, _, _, wanted)) in OPERATIONS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        for text in *wanted {
            ensure!(output.contains(text), "{name}, {text}: {output}\n{finished:#?}");
        }
    }
    let deleting = stored(&scene)?.iter().filter(|one| one.to_string().contains("deleteRepository")).count();
    ensure!(deleting == 1, "only the control arrived: {deleting}");
    ensure!(!finished.stdout.contains(SECRET) && !logs(&scene)?.contains(SECRET), "{finished:#?}");
    Ok(())
}

/// Requests at the same time on one connection, with what comes of them.
const TOGETHER: &[(&str, &str, &str)] = &[
    (
        "more documents than have a place in memory",
        "node at-once.js $S /graphql $STREAMS_TOKEN 60 '{ viewer { login } }' 300000",
        "{\"200\":60}",
    ),
    (
        "bodies for a server that takes one after the other",
        "node at-once.js $B /mine/wants $FORGE_TOKEN 20 '{ viewer { login } }' 500000",
        "{\"200\":20}",
    ),
    (
        "bodies for a server that takes all",
        "node at-once.js $S /mine/wants $STREAMS_TOKEN 60 '{ viewer { login } }' 500000",
        "{\"200\":60}",
    ),
];

fn bodies_do_not_stop_each_other(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("at-once.js"), AT_ONCE)?;
    let scripts: Vec<&str> = TOGETHER.iter().map(|(_, script, _)| *script).collect();
    let finished = run(&world, &scene, &settings(), &scripts)?;
    for (number, (name, _, wanted)) in TOGETHER.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains(wanted), "{name}: {output}\n{finished:#?}");
    }
    Ok(())
}
