//! Programs in everyday use, each through the gate in its default configuration, without a proxy or a certificate.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, Tools, User, World};

use super::{PROGRAM, each};

as_each_user!(programs_reach_what_is_allowed, programs_are_told_what_is_not);

const ALLOW: &str = r#"{ "allowedDomains": ["allowed.test"], "deniedDomains": ["evil.test"] }"#;

/// Servers of registries, repositories and a database, with files that the tests make.
const SERVERS: &str = concat!(include_str!("packages.py"), include_str!("servers.py"));

/// Programs with their scripts, which print `REACHED` on success. `HOST` stands for the host.
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
        "pip3 -q install --no-cache-dir --retries 0 --target pip1 --trusted-host HOST \
         --index-url http://HOST:8081/simple hello && PYTHONPATH=pip1 /usr/bin/python3 -c 'import hello'",
    ),
    (
        "pip over HTTPS",
        "pip3 -q install --no-cache-dir --retries 0 --target pip2 --cert ca.pem \
         --index-url https://HOST:8443/simple hello && PYTHONPATH=pip2 /usr/bin/python3 -c 'import hello'",
    ),
    (
        "git over SSH",
        "GIT_SSH_COMMAND='ssh -F none -i client_key -o IdentitiesOnly=yes -o UserKnownHostsFile=/dev/null \
         -o StrictHostKeyChecking=no -p 2222' git clone -q git@HOST:repo.git git4 && cat git4/file",
    ),
    ("psql", "psql 'host=HOST user=u dbname=d connect_timeout=9'"),
    ("Java", "keytool -printcert -sslserver HOST:443 | sed -n 's/Owner: CN=test/REACHED/p'"),
    // Go reads `/etc/resolv.conf` itself, makes its own system calls, and is tested without a proxy.
    ("Go", "GODEBUG=netdns=go hey -n 1 -c 1 http://HOST:8081/file | sed -n 's/.*\\[200\\].*/REACHED/p'"),
    ("Go without a C library", "certinfo -insecure HOST:443 | sed -n 's/.*CN=test.*/REACHED/p'"),
    ("a program with musl, static", "musl-gcc client.c -o client1 && ./client1 HOST 8081"),
    ("a program with glibc", "cc client.c -o client2 && ./client2 HOST 8081"),
    ("wget", "wget -qO- --tries=1 http://HOST:8081/file"),
    ("busybox", "busybox wget -qO- http://HOST:8081/file"),
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

/// The programs that `cargo xtask set-up` fetches where the system does not have them.
pub(super) const FETCHED: &[&str] =
    &["psql", "keytool", "hey", "certinfo", "musl-gcc", "wget", "busybox", "pip3"];

/// A client that resolves a name in the way of programs that check the address families of the machine, and fetches a
/// file from there.
pub(super) const CLIENT: &str = include_str!("client.c");

/// Makes the servers of registries and repositories a part of the world.
pub(crate) fn prepared(scene: &Scene) -> Result<()> {
    let folders = Tools::find()?.folders(&["sshd"])?;
    let sshd = folders.first().context("a folder")?.join("sshd");
    scene.write(&scene.at("world").join("sshd"), sshd.to_str().context("a path of text")?)?;
    scene.write(&scene.project().join("client.c"), CLIENT)?;
    scene.write(&scene.at("world").join("more.py"), SERVERS)
}

fn run(world: &World<'_>, scene: &Scene, host: &str) -> Result<Vec<(&'static str, String)>> {
    prepared(scene)?;
    let world_folder = scene.at("world");
    let folders = Tools::find()?.folders(FETCHED)?;
    let folders = std::env::join_paths(folders)?;
    let before =
        format!("export HOME=$PWD GIT_TERMINAL_PROMPT=0 PATH=\"$PATH:{}\"; ", folders.to_string_lossy());
    let setup = format!(
        "cp '{0}/certificate.pem' ca.pem; install -m 600 '{0}/client_key' client_key",
        world_folder.display()
    );
    let scripts: Vec<String> = std::iter::once(setup)
        .chain(PROGRAMS.iter().map(|(_, script)| before.clone() + &script.replace("HOST", host)))
        .collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let outputs = each(&scripts, |script| world.run(ALLOW, script))?;
    Ok(PROGRAMS.iter().map(|(name, _)| *name).zip(outputs.into_iter().skip(1)).collect())
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
