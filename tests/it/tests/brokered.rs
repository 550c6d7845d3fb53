//! Credentials that commands use without having them, with the programs that people use: each reaches a server that
//! wants the credential, and the credential is nowhere inside.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod aws;
mod bad_input;
mod crowds;
mod declared;
mod http1;
mod http2;
mod memory;
mod offers;
mod other_ways;
mod pushes;
mod repeated;
mod searched_processes;
mod signing;
mod signing_keys;
mod signing_load;
mod signing_shown;
mod ssh;
mod ssh_attacks;
mod ssh_memory;
mod ssh_outside;
mod verbs;
mod ways_out;

use std::ffi::OsStr;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, Tools, User, World};
use serde_json::{Value, json};

use crate::network::{self, PROGRAM, section};

as_each_user!(programs_use_a_credential_that_is_not_inside, no_part_of_it_comes_back_in_other_answers,);

/// A registry, a git server and a server that shows and stores the headers of requests. They want a credential.
const SERVERS: &str = concat!(include_str!("network/packages.py"), include_str!("brokered/servers.py"));
const RAW_SERVER: &str = include_str!("brokered/raw_server.py");
const AWS_SERVER: &str = include_str!("brokered/aws_server.py");

/// Sends bytes to the server that stores them.
const CLIENT: &str = include_str!("brokered/client.py");

/// The credential. It appears in the environment of the host only.
const SECRET: &str = "s3cr3t-Credential-0123456789";

/// The variable in which the host has it.
const SOURCE: &str = "FORGE_SECRET";

fn settings() -> Value {
    let entry = |name: &str, form: &str, purpose: &[&str], variables: &[&str]| {
        json!({
            "name": name, "source": { "env": SOURCE }, "host": "allowed.test:9443", "form": form, "for": purpose,
            "variables": variables,
        })
    };
    let mut basic =
        entry("forge-git", "basic", &["* /**"], &["PIP_INDEX_URL=https://me:{}@allowed.test:9443/simple"]);
    basic["git"] = json!(true);
    let mut header = entry("forge-key", "header", &["GET /**"], &["FORGE_KEY"]);
    header["header"] = json!("x-key");
    let mut raw = entry("raw", "bearer", &["GET,HEAD /**", "POST /mine/**"], &["RAW_TOKEN"]);
    raw["host"] = json!("allowed.test:9445");
    json!({
        "network": {
            "allowedDomains": ["allowed.test", "example.com"], "deniedDomains": ["evil.test"],
            "requests": [
                { "host": "allowed.test:9444", "allow": ["GET /open/**"], "maxBodyKib": 1, "ownAccountOnly": true },
                { "host": "allowed.test:9445", "allow": ["GET,POST /**"], "headers": ["X-Wanted"] },
            ],
        },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "credentials": { "brokered": [
            entry("forge", "bearer", &["GET,HEAD /**", "POST /mine/**"],
                  &["FORGE_TOKEN", "npm_config_//allowed.test:9443/:_authToken"]),
            basic, header, raw,
        ] },
    })
}

/// Writes the servers that the program of the machine imports.
fn write_modules(directory: &std::path::Path, scene: &Scene) -> Result<()> {
    scene.write(&directory.join("raw_server.py"), RAW_SERVER)?;
    scene.write(&directory.join("aws_server.py"), AWS_SERVER)
}

/// Runs a script inside, on a machine that trusts the servers.
fn run(world: &World<'_>, scene: &Scene, script: &str) -> Result<Finished> {
    run_with(world, scene, &settings(), script)
}

fn run_with(world: &World<'_>, scene: &Scene, settings: &Value, script: &str) -> Result<Finished> {
    scene.write(&scene.at("world").join("more.py"), SERVERS)?;
    write_modules(&scene.at("world"), scene)?;
    let settings_file = scene.at("brokered.json");
    scene.write(&settings_file, &settings.to_string())?;
    let authority = scene.at("world").join("authority.pem");
    let variables = [(SOURCE, OsStr::new(SECRET)), ("SSL_CERT_FILE", authority.as_os_str())];
    world.run_under(&settings_file, &variables, script)
}

/// Programs with their scripts, which print `REACHED` on success.
const PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/wants"),
    ("curl, the older scheme", "curl -sS -H \"Authorization: token $FORGE_TOKEN\" $B/wants"),
    ("curl with a header of its own", "curl -sS -H \"X-Key: $FORGE_KEY\" $B/wants"),
    ("curl that would speak HTTP/2", "curl -sS --http2 -H \"Authorization: Bearer $FORGE_TOKEN\" $B/wants"),
    ("curl, posting", "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" -d a=b $B/mine/wants"),
    (
        "curl, posting in chunks and waiting for leave",
        "head -c 300000 /dev/zero | curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" -H 'Expect: 100-continue' \
         -T - -X POST $B/mine/wants",
    ),
    ("curl, twice on one connection", "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/one $B/wants"),
    (
        "Python",
        "python3 -c 'import os, urllib.request as r\n\
         q = r.Request(os.environ[\"B\"] + \"/wants\", headers={\"Authorization\": \"Bearer \" + os.environ[\"FORGE_TOKEN\"]})\n\
         print(r.urlopen(q).read().decode())'",
    ),
    (
        "Python's requests",
        "/usr/bin/python3 -c 'import os\n\
         from pip._vendor import requests\n\
         print(requests.get(os.environ[\"B\"] + \"/wants\", headers={\"Authorization\": \"Bearer \" + os.environ[\"FORGE_TOKEN\"]}).text)'",
    ),
    (
        "a client of a model, with a stream of events",
        "OPENAI_API_KEY=$FORGE_TOKEN OPENAI_BASE_URL=$B/mine/v1 python3 -c 'import json, os, urllib.request as r\n\
         asked = json.dumps({\"model\": \"m\", \"stream\": True, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}).encode()\n\
         headers = {\"Authorization\": \"Bearer \" + os.environ[\"OPENAI_API_KEY\"], \"Content-Type\": \"application/json\", \"Accept\": \"text/event-stream\"}\n\
         answer = r.urlopen(r.Request(os.environ[\"OPENAI_BASE_URL\"] + \"/chat/completions\", asked, headers))\n\
         pieces = [line[6:].strip() for line in answer if line.startswith(b\"data: \")]\n\
         assert pieces.pop() == b\"[DONE]\"\n\
         print(\"\".join(json.loads(piece)[\"choices\"][0][\"delta\"][\"content\"] for piece in pieces))'",
    ),
    (
        "Node",
        "node -e 'fetch(process.env.B + \"/wants\", { headers: { authorization: \"Bearer \" + process.env.FORGE_TOKEN } })\
         .then(a => a.text()).then(console.log)'",
    ),
    ("git", "git clone -q $B/git/repo.git cloned && cat cloned/file"),
    (
        "git, pushing",
        "cd cloned && git -c user.name=n -c user.email=e commit -q --allow-empty -m two && git push -q && echo REACHED",
    ),
    (
        "npm",
        "mkdir npm && cd npm && npm install --no-audit --no-fund --cache=c --fetch-retries=0 --registry=$B/npm/ hello \
         && node -e 'console.log(require(\"hello\"))'",
    ),
    (
        "pip",
        "pip3 -q install --no-cache-dir --retries 0 --target pip hello && PYTHONPATH=pip /usr/bin/python3 -c 'import hello'",
    ),
];

/// What a command tries to find the credential in.
const SEARCH: &str = "\
    grep -c \"$PART1$PART2\" /proc/self/environ; env | grep -c \"$PART1$PART2\"; \
    python3 -c 'import os\n\
    part = (os.environ[\"PART1\"] + os.environ[\"PART2\"]).encode()\n\
    found = 0\n\
    for pid in filter(str.isdigit, os.listdir(\"/proc\")):\n\
    \x20   if int(pid) == os.getpid(): continue\n\
    \x20   try:\n\
    \x20       for line in open(f\"/proc/{pid}/maps\"):\n\
    \x20           span, rights = line.split()[:2]\n\
    \x20           if \"r\" not in rights or \"[v\" in line: continue\n\
    \x20           low, high = (int(end, 16) for end in span.split(\"-\"))\n\
    \x20           with open(f\"/proc/{pid}/mem\", \"rb\", 0) as memory:\n\
    \x20               memory.seek(low)\n\
    \x20               found += part in memory.read(high - low)\n\
    \x20   except OSError: pass\n\
    print(\"memory\", found)'; grep -rlc \"$PART1$PART2\" . /tmp 2>/dev/null | grep -v more | wc -l";

fn before(tools: &str) -> String {
    format!(
        "export HOME=$PWD GIT_TERMINAL_PROMPT=0 B=https://allowed.test:9443 PATH=\"$PATH:{tools}\"\n\
         export PART1=s3cr3t-Cred PART2=ential-0123456789\n"
    )
}

fn marked(scripts: &[&str]) -> String {
    scripts.iter().enumerate().map(|(number, script)| network::marked(number, script)).collect()
}

fn folders() -> Result<String> {
    let folders = Tools::find()?.folders(&["pip3"])?;
    Ok(std::env::join_paths(folders)?.to_string_lossy().into_owned())
}

fn programs_use_a_credential_that_is_not_inside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let scripts: Vec<&str> = PROGRAMS.iter().map(|(_, script)| *script).chain([SEARCH]).collect();
    let finished = run(&world, &scene, &(before(&folders()?) + &marked(&scripts)))?;
    for (number, (name, _)) in PROGRAMS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains("REACHED"), "{name}: {output}\n{finished:#?}");
    }
    let found = section(&finished.stdout, PROGRAMS.len())?;
    ensure!(found.split_whitespace().eq(["0", "0", "memory", "0", "0"]), "{found}");
    ensure!(!finished.stdout.contains(SECRET) && !finished.stderr.contains(SECRET), "{finished:#?}");
    let log = logs(&scene)?;
    ensure!(log.contains("the credential `forge` goes into") && !log.contains(SECRET), "{log}");
    Ok(())
}

/// One server repeats a part of the credential, and a declared host without a credential repeats the whole.
fn no_part_of_it_comes_back_in_other_answers(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let cuts = |token: &str, more: &str| -> String {
        let sent = format!("curl -sS {more} -H \"Authorization: Bearer {token}\" https://allowed.test:9443");
        let cut = [16, 20, 27].map(|length| format!("{sent}/cut/{length}"));
        cut.join("; ") + &format!("; curl -sS {more} https://allowed.test:9444/open/last")
    };
    let finished = run(&world, &scene, &cuts("$FORGE_TOKEN", ""))?.ended_with(0)?;
    ensure!(finished.stdout.matches('*').count() == 16 + 20 + 27 + SECRET.len(), "{finished:#?}");
    ensure!(!finished.stdout.contains("s3cr3t"), "{finished:#?}");
    let authority = scene.at("world").join("authority.pem");
    let direct = cuts(SECRET, &format!("--cacert '{}'", authority.display()));
    let control = world.control(&direct)?.ended_with(0)?;
    ensure!(control.stdout.matches("s3cr3t").count() == 4, "{control:#?}");
    Ok(())
}

/// Returns the audit logs of a scene.
fn logs(scene: &Scene) -> Result<String> {
    let mut all = String::new();
    for entry in std::fs::read_dir(scene.home().join(".local/state/portcullis/audit"))? {
        let path = entry?.path();
        if path.is_file() {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(path)?));
        }
    }
    Ok(all)
}
