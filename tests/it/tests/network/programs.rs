//! Programs that people work with, each through the gate as it comes: no proxy, no certificates of ours.

use std::fs;
use std::io::{Write as _, stderr};

use anyhow::{Result, ensure};
use portcullis_it::{Scene, User, World};

use super::{PROGRAM, each};

as_each_user!(programs_reach_what_is_allowed, programs_are_told_what_is_not);

const ALLOW: &str = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": ["evil.test"] }"#;

/// Registries, repositories and a data base, of files that are made here.
const SERVERS: &str = include_str!("servers.py");

/// What is run, and prints `REACHED` if it got there. `HOST` stands for the host.
const PROGRAMS: &[(&str, &str)] = &[
    ("git over HTTP", "git clone -q http://HOST:8081/repo.git git1 && cat git1/file"),
    (
        "git over HTTPS",
        "git -c http.sslCAInfo=ca.pem clone -q https://HOST:8443/repo.git git2 && cat git2/file",
    ),
    ("git of its own kind", "git clone -q git://HOST/repo.git git3 && cat git3/file"),
    (
        "npm",
        "mkdir npm && cd npm && npm install --no-audit --no-fund --cache=c --fetch-retries=0 \
         --registry=http://HOST:8081/npm/ hello && node -e 'console.log(require(\"hello\"))'",
    ),
    (
        "npm over HTTPS",
        "mkdir npms && cd npms && npm install --no-audit --no-fund --cache=c --fetch-retries=0 --cafile=../ca.pem \
         --registry=https://HOST:8443/npm/ hello && node -e 'console.log(require(\"hello\"))'",
    ),
    (
        "pip",
        "/usr/bin/python3 -m pip -q install --no-cache-dir --retries 0 --target pip1 --trusted-host HOST \
         --index-url http://HOST:8081/simple hello && PYTHONPATH=pip1 /usr/bin/python3 -c 'import hello'",
    ),
    (
        "pip over HTTPS",
        "/usr/bin/python3 -m pip -q install --no-cache-dir --retries 0 --target pip2 --cert ca.pem \
         --index-url https://HOST:8443/simple hello && PYTHONPATH=pip2 /usr/bin/python3 -c 'import hello'",
    ),
    ("psql", "psql 'host=HOST user=u dbname=d connect_timeout=9'"),
    (
        "Java",
        "cat > C.java <<'END'\n\
         class C { public static void main(String[] a) throws Exception {\n\
         var s = new java.net.URI(\"http://HOST:8081/file\").toURL().openStream();\n\
         System.out.write(s.readAllBytes()); System.out.flush(); } }\n\
         END\n\
         java -XX:TieredStopAtLevel=1 C.java",
    ),
    (
        "asyncio",
        "python3 -c 'import asyncio\n\
         async def main():\n  r, w = await asyncio.open_connection(\"HOST\", 22)\n  print(await r.readline())\n\
         asyncio.run(main())'",
    ),
    (
        "openssl",
        "openssl s_client -connect HOST:443 -servername HOST </dev/null 2>/dev/null | sed -n 's/.*BEGIN CERT.*/REACHED/p'",
    ),
    ("ssh", "ssh -v -o BatchMode=yes -o StrictHostKeyChecking=no HOST 2>&1 | grep 'banner line'"),
];

/// Programs that are not on every machine, and are needed by a row.
const NEEDED: &[(&str, &str)] = &[("psql", "psql"), ("Java", "javac")];

/// The rows for which everything is here; says which are not.
fn present() -> Vec<(&'static str, &'static str)> {
    let is_here = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|place| place.join(program).exists()))
    };
    let missing = |name: &str| NEEDED.iter().find(|(row, program)| *row == name && !is_here(program));
    let mut rows = PROGRAMS.to_vec();
    rows.retain(|(name, _)| match missing(name) {
        Some((row, program)) => {
            let told = writeln!(stderr(), "not run: {row}, because `{program}` is not in PATH");
            drop(told);
            false
        }
        None => true,
    });
    rows
}

fn prepared(scene: &Scene) -> Result<()> {
    scene.write(&scene.at("world").join("more.py"), SERVERS)?;
    Ok(())
}

fn run(world: &World<'_>, scene: &Scene, host: &str) -> Result<Vec<(&'static str, String)>> {
    prepared(scene)?;
    let rows = present();
    let certificate = scene.at("world").join("certificate.pem");
    let setup = format!("export HOME=$PWD GIT_TERMINAL_PROMPT=0; cp '{}' ca.pem", certificate.display());
    let scripts: Vec<String> = std::iter::once(setup.clone())
        .chain(rows.iter().map(|(_, script)| {
            format!("export HOME=$PWD GIT_TERMINAL_PROMPT=0; {}", script.replace("HOST", host))
        }))
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let outputs = each(&scripts, |script| world.run(ALLOW, script))?;
    Ok(rows.into_iter().map(|(name, _)| name).zip(outputs.into_iter().skip(1)).collect())
}

fn programs_reach_what_is_allowed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    for (name, output) in run(&world, &scene, "allowed.test")? {
        ensure!(
            output.contains("REACHED"),
            "{name}: {output}; {:?}",
            fs::read_to_string(scene.at("world").join("more.log"))
        );
    }
    Ok(())
}

fn programs_are_told_what_is_not(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    for (name, output) in run(&world, &scene, "evil.test")? {
        ensure!(!output.contains("REACHED"), "{name}: {output}");
    }
    let seen = world.seen()?;
    ensure!(!seen.contains(" 203.0.113.2"), "{seen}");
    Ok(())
}
