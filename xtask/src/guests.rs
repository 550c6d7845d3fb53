//! `guests`: compiles policies and test guests to components.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::cache::Wasm;
use crate::run::{quiet, say, show, step};
use crate::{digest, project, setup};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask guests            build shipped policies whose sources changed, and all test guests
  cargo xtask guests --check    only say whether the components in the tree are what their sources build

Shipped policies go to policies/NAME/policy.wasm, test guests to target/guests/NAME.wasm.
A crate is built for wasm32-wasip2, or without any import if its manifest has
  [package.metadata.portcullis]
  target = \"wasm32-unknown-unknown\"";

/// Policies whose components are in the source tree and in the program.
const SHIPPED: [Shipped; 7] = [
    Shipped { name: "workspace", folder: "guest/workspace", engine: Engine::None },
    Shipped { name: "guard", folder: "policies/guard", engine: Engine::None },
    Shipped { name: "git-guard", folder: "policies/git-guard", engine: Engine::None },
    Shipped { name: "secrets", folder: "policies/secrets", engine: Engine::None },
    Shipped { name: "bosun", folder: "policies/bosun", engine: Engine::None },
    Shipped { name: "rego", folder: "policies/rego", engine: Engine::OfTexts },
    Shipped { name: "cedar", folder: "policies/cedar", engine: Engine::OfTexts },
];

/// A shipped policy.
#[derive(Debug, Clone, Copy)]
struct Shipped {
    name: &'static str,
    /// The directory of its crate.
    folder: &'static str,
    engine: Engine,
}

/// The engine in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    None,
    /// One that runs texts. Its crate is a workspace of its own with a lock file, so that no other build compiles the
    /// engine, and its machine code is too large to be embedded.
    OfTexts,
}

/// The crate that policies with an engine of texts share.
const TEXT_POLICY: &str = "guest/text-policy";

const COMPONENT_TARGET: &str = "wasm32-wasip2";
const MODULE_TARGET: &str = "wasm32-unknown-unknown";

/// Build profile of guests. Components are read at every start, so size matters most.
const PROFILE: [(&str, &str); 6] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_STRIP", "true"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true"),
];

/// Options of `guests`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Builds nothing; fails if the default policy in the tree is out of date
    #[arg(long)]
    check: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    shipped_policies()?;
    test_guests()
}

/// Checks that the shipped policies in the tree were built from the sources in the tree.
pub(crate) fn check() -> Result<()> {
    SHIPPED.iter().try_for_each(Shipped::check)
}

/// Builds the shipped policies that are not up to date in the tree.
pub(crate) fn shipped_policies() -> Result<()> {
    SHIPPED.iter().try_for_each(Shipped::build)
}

/// Returns the paths of the shipped policies whose machine code is embedded.
pub(crate) fn precompiled_components() -> impl Iterator<Item = PathBuf> {
    let precompiled = SHIPPED.iter().filter(|shipped| shipped.engine == Engine::None);
    precompiled.map(|shipped| project::root().join(shipped.component()))
}

/// Returns the manifests of the policies that run texts.
pub(crate) fn text_policies() -> impl Iterator<Item = PathBuf> {
    SHIPPED.iter().filter(|shipped| shipped.engine == Engine::OfTexts).map(Shipped::manifest)
}

impl Shipped {
    /// Returns the path of the component in the tree.
    fn component(&self) -> String {
        format!("policies/{}/policy.wasm", self.name)
    }

    fn manifest(&self) -> PathBuf {
        project::root().join(self.folder).join("Cargo.toml")
    }

    fn check(&self) -> Result<()> {
        let component = self.component();
        match self.in_tree()? {
            Some(found) if found == self.digest()? => Ok(()),
            Some(_) => {
                bail!("`{component}` was built from other sources: run `cargo xtask guests` and commit it")
            }
            None => bail!("`{component}` is missing or unmarked: run `cargo xtask guests` and commit it"),
        }
    }

    fn build(&self) -> Result<()> {
        let (component, wanted) = (self.component(), self.digest()?);
        if self.in_tree()?.is_some_and(|found| found == wanted) {
            say(format_args!("{component} is up to date"));
            return Ok(());
        }
        let guest = Guest::read(self.manifest())?;
        let wasm = setup::wasm()?;
        let bytes = step(&format!("building {component}"), || guest.compile(&wasm))?;
        let path = project::root().join(&component);
        fs::create_dir_all(path.with_file_name("")).context("creating the policy's folder")?;
        fs::write(&path, digest::mark(bytes, &wanted)).with_context(|| format!("writing `{component}`"))
    }

    fn in_tree(&self) -> Result<Option<String>> {
        let component = self.component();
        let path = project::root().join(&component);
        if !path.exists() {
            return Ok(None);
        }
        digest::read(&fs::read(&path).with_context(|| format!("reading `{component}`"))?)
    }

    /// Returns the digest of the policy's sources, of the crates that it uses and of the build settings.
    fn digest(&self) -> Result<String> {
        let Guest { name, target, .. } = Guest::read(self.manifest())?;
        if self.engine == Engine::OfTexts {
            // Its lock file is one of the sources, so its crates need not be fetched.
            let folders = ["guest/sdk", TEXT_POLICY, self.folder, "wit"];
            return digest::of_sources(project::root(), &folders, &format!("{target}{PROFILE:?}"));
        }
        let crates = crates(&name, &target)?;
        let facts = format!("{target}{crates:?}{PROFILE:?}");
        digest::of_sources(project::root(), &["guest/sdk", self.folder, "wit"], &facts)
    }
}

/// Returns a line for each crate from a registry that a guest uses.
fn crates(name: &str, target: &str) -> Result<Vec<String>> {
    let mut tree = project::cargo();
    tree.args(["tree", "--package", name, "--target", target, "--edges", "normal,build"]);
    let text = quiet(tree.args(["--prefix", "none", "--format", "{p} {f}", "--no-dedupe"]))?;
    let clone = format!(" ({}", project::root().display());
    let mut crates: Vec<String> =
        text.lines().filter(|line| !line.contains(&clone)).map(str::to_owned).collect();
    crates.sort_unstable();
    crates.dedup();
    Ok(crates)
}

/// Builds every crate in tests/guests into target/guests.
pub(crate) fn test_guests() -> Result<()> {
    let manifests = test_manifests()?;
    if manifests.is_empty() {
        return Ok(());
    }
    let wasm = setup::wasm()?;
    manifests.into_iter().try_for_each(|manifest| build_test_guest(manifest, &wasm))
}

/// Builds one crate in tests/guests into target/guests.
pub(crate) fn test_guest(name: &str) -> Result<()> {
    let manifest = project::root().join("tests/guests").join(name).join("Cargo.toml");
    build_test_guest(manifest, &setup::wasm()?)
}

fn build_test_guest(manifest: PathBuf, wasm: &Wasm) -> Result<()> {
    let guest = Guest::read(manifest)?;
    let component = step(&format!("building test guest {}", guest.name), || guest.compile(wasm))?;
    let output = project::root().join("target/guests");
    fs::create_dir_all(&output).with_context(|| format!("creating `{}`", output.display()))?;
    let file = output.join(format!("{}.wasm", guest.name));
    fs::write(&file, component).with_context(|| format!("writing `{}`", file.display()))
}

/// A crate that is compiled to a component.
#[derive(Debug)]
struct Guest {
    manifest: PathBuf,
    name: String,
    target: String,
}

impl Guest {
    fn read(manifest: PathBuf) -> Result<Self> {
        let mut cargo: Command = project::cargo();
        cargo.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
        let metadata: Value =
            serde_json::from_str(&quiet(&mut cargo)?).context("reading cargo's metadata")?;
        let packages =
            metadata.get("packages").and_then(Value::as_array).context("cargo names no packages")?;
        let path = |package: &Value| package.get("manifest_path").and_then(Value::as_str).map(PathBuf::from);
        let package = packages
            .iter()
            .find(|package| path(package).as_ref() == Some(&manifest))
            .with_context(|| format!("`{}` is no package", manifest.display()))?;
        let name = package.get("name").and_then(Value::as_str).context("a package has no name")?.to_owned();
        let target = package.pointer("/metadata/portcullis/target").and_then(Value::as_str);
        Ok(Self { manifest, name, target: target.unwrap_or(COMPONENT_TARGET).to_owned() })
    }

    /// Compiles the crate and returns the component.
    fn compile(&self, wasm: &Wasm) -> Result<Vec<u8>> {
        let directory = project::target_directory()?.join("guest-build");
        let mut cargo = project::cargo();
        cargo.args([
            "build",
            "--quiet",
            "--release",
            "--lib",
            "--package",
            &self.name,
            "--target",
            &self.target,
        ]);
        cargo.arg("--manifest-path").arg(&self.manifest).arg("--target-dir").arg(&directory);
        cargo.args(self.manifest.with_file_name("Cargo.lock").exists().then_some("--locked"));
        cargo.envs(PROFILE).env("RUSTFLAGS", flags(wasm)).env_remove("CARGO_ENCODED_RUSTFLAGS");
        if let Some(rustc) = &wasm.rustc {
            cargo.env("RUSTC", rustc);
        }
        show(&mut cargo)?;
        let file = format!("{}.wasm", self.name.replace('-', "_"));
        let file = directory.join(&self.target).join("release").join(file);
        let hint = || format!("reading `{}`; its manifest needs `crate-type = [\"cdylib\"]`", file.display());
        let bytes = fs::read(&file).with_context(hint)?;
        if self.target == MODULE_TARGET { component(&bytes) } else { Ok(bytes) }
    }
}

fn component(module: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = wit_component::ComponentEncoder::default();
    let made = encoder.validate(true).module(module).and_then(|encoder| encoder.encode());
    made.context("making a component of the module")
}

/// Returns the compiler flags that keep this machine's paths out of the component.
fn flags(wasm: &Wasm) -> String {
    let mut flags = wasm.flags.clone();
    flags.push(format!("--remap-path-prefix={}=.", project::root().display()));
    flags.extend(project::no_cargo_home());
    flags.join(" ")
}

fn test_manifests() -> Result<Vec<PathBuf>> {
    let folder = project::root().join("tests/guests");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut manifests = Vec::new();
    for entry in fs::read_dir(&folder).context("listing tests/guests")? {
        manifests.push(entry?.path().join("Cargo.toml"));
    }
    manifests.retain(|manifest| manifest.is_file());
    manifests.sort();
    Ok(manifests)
}
