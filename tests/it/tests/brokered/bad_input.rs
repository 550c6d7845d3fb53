//! Other accounts at an allowed host, and credentials, servers and programs that do not work: nothing gets out, and the
//! words say what to do.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::{Value, json};

use super::{SECRET, before, folders, marked, run, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(forty_ways_to_another_account_are_closed, what_does_not_work_is_explained);

const OTHER_ACCOUNTS: &str = include_str!("other_accounts.py");
/// How many ways there are.
const WAYS: usize = 40;

fn arrived(scene: &Scene) -> Result<usize> {
    let file = scene.at("world").join("requests");
    let count = fs::read_to_string(&file).unwrap_or_default().matches("/open/way-").count();
    if file.exists() {
        fs::remove_file(&file)?;
    }
    Ok(count)
}

/// The control is the same without the gate.
fn forty_ways_to_another_account_are_closed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    scene.write(&scene.project().join("other_accounts.py"), OTHER_ACCOUNTS)?;
    let mut settings = settings();
    settings["network"]["requests"] =
        json!([{ "host": "allowed.test:9444", "allow": ["* /open/**"], "ownAccountOnly": true }]);
    let finished = run_with(&world, &scene, &settings, &(before(&folders()?) + "python3 other_accounts.py"))?;
    ensure!(finished.stdout.matches("host.other-account").count() == WAYS, "{finished:#?}");
    ensure!(finished.stdout.contains("/open/plain REACHED"), "the control: {finished:#?}");
    ensure!(arrived(&scene)? == 0, "{finished:#?}");
    let authority = scene.at("world").join("authority.pem");
    let direct = format!(
        "cd {} && SSL_CERT_FILE={} python3 other_accounts.py",
        scene.project().display(),
        authority.display()
    );
    let control = world.control(&direct)?;
    ensure!(arrived(&scene)? == WAYS, "the control: {control:#?}");
    Ok(())
}

/// An entry whose credential comes from this source, for a port of the machine.
fn entry(name: &str, source: &Value, port: u16, variable: &str) -> Value {
    json!({
        "name": name, "source": source, "host": format!("allowed.test:{port}"), "form": "bearer", "for": ["* /**"],
        "variables": [variable],
    })
}

/// Scripts, each with parts of what the command or its result says.
const BROKEN: &[(&str, &[&str])] = &[
    (
        "curl -sS -H \"Authorization: Bearer $FAILS\" https://allowed.test:9444/open/a",
        &[
            "the credential `fails` cannot be used",
            "`sh` failed",
            "`portcullis credentials test fails` tries it",
        ],
    ),
    ("curl -sS -H \"Authorization: Bearer $OLD\" https://allowed.test:9443/a", &["who are you?"]),
    (
        "curl -sS -m 30 -H \"Authorization: Bearer $SILENT\" https://allowed.test:9448/a",
        &["`allowed.test` does not answer"],
    ),
    ("curl -sS -m 2 -H \"Authorization: Bearer $HANGS\" https://allowed.test:9445/hang", &["timed out"]),
    (
        "curl -sS --pinnedpubkey sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= https://allowed.test:9443/a",
        &["pinned"],
    ),
    ("env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS https://allowed.test:9443/a", &["certificate"]),
    ("curl -sS http://allowed.test:9443/a", &["curl: ("]),
    (
        "curl -sS --tlsv1.0 --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 https://allowed.test:9443/a",
        &["curl: (35)"],
    ),
    ("curl -sS -H \"Authorization: Bearer $HANGS\" https://allowed.test:9445/a", &["REACHED"]),
];

fn what_does_not_work_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut settings = settings();
    settings["network"]["requests"] = json!([]);
    let own = json!({ "env": super::SOURCE });
    settings["credentials"]["brokered"] = json!([
        entry("fails", &json!({ "command": ["sh", "-c", "echo a-part-of-it; exit 3"] }), 9444, "FAILS"),
        entry("old", &json!({ "command": ["printf", "a-credential-of-last-year"] }), 9443, "OLD"),
        entry("silent", &own, 9448, "SILENT"),
        entry("hangs", &own, 9445, "HANGS"),
    ]);
    let scripts: Vec<String> = BROKEN.iter().map(|(script, _)| format!("{script} 2>&1")).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run_with(&world, &scene, &settings, &(before(&folders()?) + &marked(&scripts)))?;
    for (number, (script, wanted)) in BROKEN.iter().enumerate() {
        let said = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        for text in *wanted {
            ensure!(said.contains(text), "{script}: no {text} in {said}\n{finished:#?}");
        }
    }
    // The result of the command says what a program cannot know.
    for text in [
        "the program has to trust the certificates in SSL_CERT_FILE",
        "taken out of `credentials.brokered`",
        "the program has to use TLS 1.2 or 1.3",
        "it does not speak TLS; the program has to use `https://`",
    ] {
        ensure!(finished.stderr.contains(text), "{text}: {finished:#?}");
    }
    let all = format!("{finished:?}");
    ensure!(
        !all.contains("a-part-of-it") && !all.contains("last-year") && !all.contains(SECRET),
        "{finished:#?}"
    );
    // The first source that fails does not stop requests to other hosts, and a good one works.
    let good = run(
        &world,
        &scene,
        "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" https://allowed.test:9443/wants",
    )?;
    ensure!(good.stdout.contains("REACHED"), "the control: {good:#?}");
    Ok(())
}
