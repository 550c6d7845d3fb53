//! Calls of gRPC, whose answers have trailers.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};

use super::{SECRET, logs, run, section, settings};
use crate::network::PROGRAM;

as_each_user!(calls_have_trailers_and_no_credential);

/// A client that makes one call, and prints what comes: `call URL METHOD TOKEN`, with messages to send after that.
const CLIENT: &str = "\
const [url, method, token, ...messages] = process.argv.slice(2);\n\
const c = require('http2').connect(url);\n\
c.on('error', (error) => console.log('error', error.message));\n\
const head = { ':method': 'POST', ':path': '/calls.Calls/' + method, te: 'trailers', 'content-type': 'application/grpc' };\n\
if (token) head.authorization = 'Bearer ' + token;\n\
const r = c.request(head);\n\
const message = (text) => Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text)]);\n\
let waiting = messages.slice(1);\n\
r.on('response', (h) => console.log('head', h[':status'], h['grpc-status'], decodeURIComponent(h['grpc-message'] ?? '')));\n\
r.on('data', (piece) => { console.log('data', JSON.stringify(piece.toString('latin1'))); waiting.length ? r.write(message(waiting.shift())) : r.end(); });\n\
r.on('trailers', (t) => console.log('trailers', t['grpc-status'], t['grpc-message']));\n\
r.on('error', (error) => console.log('error', error.message));\n\
r.on('close', () => c.close());\n\
if (messages.length) r.write(message(messages[0])); else r.end();\n\
setTimeout(() => { console.log('timeout'); process.exit(); }, 8000).unref();\n";

/// Calls, with what comes back.
const CALLS: &[(&str, &str, &[&str])] = &[
    ("a call", "node call.js $S one $STREAMS_TOKEN", &["head 200", "hello", "trailers 0 REACHED"]),
    (
        "the credential in the message and in the trailers",
        "node call.js $S credential $STREAMS_TOKEN",
        &["head 200", "****", "trailers 0 Bearer ****"],
    ),
    (
        "messages of both sides in turn, to a host without a credential",
        "node call.js https://allowed.test:9458 echoes '' one two three",
        &["one", "two", "three", "trailers 0 REACHED"],
    ),
    (
        "messages that are compressed",
        "node call.js $S packed $STREAMS_TOKEN",
        &["head 200 7", "host.unreadable-answer"],
    ),
    (
        "a call that is not allowed",
        "node call.js https://allowed.test:9456/ ../Other/one $STREAMS_TOKEN",
        &["head 200 7"],
    ),
    (
        "another service",
        "node call.js https://allowed.test:9458 ../other.Calls/one ''",
        &["head 200 7", "host.ambiguous-path"],
    ),
];

fn calls_have_trailers_and_no_credential(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("call.js"), CLIENT)?;
    let scripts: Vec<&str> = CALLS.iter().map(|(_, script, _)| *script).collect();
    let finished = run(&world, &scene, &settings(), &scripts)?;
    for (number, (name, _, wanted)) in CALLS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        for text in *wanted {
            ensure!(output.contains(text), "{name}, {text}: {output}\n{finished:#?}");
        }
        ensure!(!output.contains("timeout"), "{name}: {output}");
    }
    ensure!(!finished.stdout.contains(SECRET) && !logs(&scene)?.contains(SECRET), "{finished:#?}");
    Ok(())
}
