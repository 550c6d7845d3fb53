//! The programs that pi's tools and the tests call, in one directory for the front of PATH.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::debian::{Program, Start};
use super::link::link;
use super::node;
use crate::cache::Cache;
use crate::run::{find_program, quiet, step};

const RIPGREP: &str = "1.18.0";
/// pi passes `--no-require-git`, which versions before 10 reject. Debian has version 8.
const FD: &str = "10.3.0";
/// The usual client for components in registries. There are no prebuilt packages of it.
const WKG: &str = "0.16.1";

/// Start lines that make gcc use musl and ignore the system's own C library.
const WITH_MUSL: &str = "lib=$(echo \"$root\"/usr/lib/*-linux-musl)\n\
    include=$(echo \"$root\"/usr/include/*-linux-musl)\n\
    unset LD_LIBRARY_PATH\n\
    exec cc -static -no-pie -nostdinc -isystem \"$include\" -nostdlib \"$lib/crt1.o\" \"$lib/crti.o\" \"$@\" \
    \"$lib/libc.a\" -lgcc \"$lib/crtn.o\"";

/// Start lines of shells, which look for their own parts in the system. The tests of completion tell them the directory.
const ZSH: &str =
    "unset LD_LIBRARY_PATH\nexport PORTCULLIS_SHELL_ROOT=\"$root\"\nexec \"$root/bin/zsh\" \"$@\"";
const FISH: &str = "export PORTCULLIS_SHELL_ROOT=\"$root\"\nexec \"$root/usr/bin/fish\" \"$@\"";

/// Programs that are taken from the system, or else unpacked from their Debian package.
const FROM_DEBIAN: [Program; 17] = [
    plain("tmux", "tmux", "usr/bin/tmux"),
    plain("bwrap", "bubblewrap", "usr/bin/bwrap"),
    plain("mkfs.btrfs", "btrfs-progs", "sbin/mkfs.btrfs"),
    plain("docker-registry", "docker-registry", "usr/bin/docker-registry"),
    plain("minisign", "minisign", "usr/bin/minisign"),
    // Servers and clients of different kinds, for the connection tests.
    plain("sshd", "openssh-server", "usr/sbin/sshd"),
    plain("dig", "bind9-dnsutils", "usr/bin/dig"),
    plain("wget", "wget", "usr/bin/wget"),
    Program { start: Start::Script(ZSH), ..plain("zsh", "zsh", "bin/zsh") },
    Program { start: Start::Script(FISH), ..plain("fish", "fish", "usr/bin/fish") },
    plain("busybox", "busybox-static", "bin/busybox"),
    // Both are written in Go: the first does not use libc, the second does not need it to resolve names.
    plain("certinfo", "certinfo", "usr/bin/certinfo"),
    plain("hey", "hey", "usr/bin/hey"),
    Program { start: Start::Script(WITH_MUSL), ..plain("musl-gcc", "musl-tools", "usr/bin/musl-gcc") },
    Program {
        with: Some("postgresql-client-"),
        ..plain("psql", "postgresql-client", "usr/lib/postgresql/*/bin/psql")
    },
    // Part of every Java runtime; makes connections.
    Program {
        with: Some("openjdk-"),
        ..plain("keytool", "default-jre-headless", "usr/lib/jvm/*/bin/keytool")
    },
    Program {
        start: Start::Script(
            "export PYTHONPATH=\"$root/usr/lib/python3/dist-packages\"\nexec /usr/bin/python3 -m pip \"$@\"",
        ),
        ..plain("pip3", "python3-pip", "usr/bin/pip3")
    },
];

const fn plain(name: &'static str, package: &'static str, path: &'static str) -> Program {
    Program { name, package, with: None, path, start: Start::Plain }
}

pub(super) fn bin_dir(cache: &Cache) -> Result<PathBuf> {
    let bin = cache.path("bin");
    fs::create_dir_all(&bin).with_context(|| format!("creating `{}`", bin.display()))?;
    link(&ripgrep(cache)?, &bin.join("rg"))?;
    link(&fd(cache)?, &bin.join("fd"))?;
    for program in FROM_DEBIAN {
        let link_path = bin.join(program.name);
        let own = own(program.name).filter(|found| *found != link_path);
        link(&own.map_or_else(|| program.provide(cache), Ok)?, &link_path)?;
    }
    Ok(bin)
}

/// Returns the path of a program in a system directory.
///
/// A program in a home directory is useless for tests that run as another user. Without apt, any program on
/// PATH has to do.
fn own(program: &str) -> Option<PathBuf> {
    let places = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
    let found = places.into_iter().map(|place| Path::new(place).join(program)).find(|path| path.exists());
    found.or_else(|| find_program("apt-get").map_or_else(|| find_program(program), |_apt| None))
}

/// Installs ripgrep from npm, which has the same version on every system and needs no privileges.
fn ripgrep(cache: &Cache) -> Result<PathBuf> {
    let package = format!("@vscode/ripgrep-linux-{}", node::npm_arch()?);
    let root = cache.directory(&format!("ripgrep-{RIPGREP}"), |root| {
        node::install(root, &[&format!("{package}@{RIPGREP}")])
    })?;
    Ok(root.join("node_modules").join(package).join("bin/rg"))
}

fn fd(cache: &Cache) -> Result<PathBuf> {
    let root = cache.directory(&format!("fd-{FD}"), |root| compile(root, "fd-find", FD))?;
    Ok(root.join("bin/fd"))
}

/// Adds `wkg` to the programs of the tests. Compiling it takes longer than any other step of set-up.
pub(super) fn wkg(cache: &Cache) -> Result<()> {
    let root = cache.directory(&format!("wkg-{WKG}"), |root| compile(root, "wkg", WKG))?;
    link(&root.join("bin/wkg"), &cache.path("bin/wkg"))
}

/// Compiles a program from crates.io into `root`, without optimisation and debug information.
///
/// That is quick, and the tests give the program little to do.
fn compile(root: &Path, name: &str, version: &str) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["install", name, "--version", version, "--locked", "--root"]).arg(root);
    cargo.args(["--debug", "--no-default-features"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
    // In a shared target directory this build would wait for the project's own builds and mix with them.
    cargo.arg("--target-dir").arg(root.join("build")).current_dir(root);
    step(&format!("compiling {name} (minutes)"), || quiet(&mut cargo))?;
    fs::remove_dir_all(root.join("build")).with_context(|| format!("removing what the build of {name} left"))
}
