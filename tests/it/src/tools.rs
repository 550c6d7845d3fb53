//! Finds the programs that the tests use.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::{User, reach};

const GET_TOOLS: &str = "run `cargo xtask setup` to fetch it";

/// One of the two supported pi versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiVersion {
    /// 0.74.2, with the current Node: it starts in two thirds of the time.
    V0_74,
    /// 0.74.2, with Node 20: the last version for that.
    V0_74OnNode20,
    /// 1.5.2.
    V1_5,
}

impl PiVersion {
    const fn key(self) -> &'static str {
        match self {
            Self::V0_74 | Self::V0_74OnNode20 => "pi_0_74",
            Self::V1_5 => "pi_1_5",
        }
    }

    const fn key_of_node(self) -> &'static str {
        match self {
            Self::V0_74OnNode20 => "pi_0_74",
            Self::V0_74 | Self::V1_5 => "pi_1_5",
        }
    }
}

/// A pi installation: its Node and its entry point.
#[derive(Debug, Clone)]
pub struct Pi {
    /// The `node` program.
    pub node: PathBuf,
    /// pi's entry point.
    pub cli: PathBuf,
}

/// Directories of pi's loaders of extensions, in its `dist`.
const LOADERS: [&str; 2] = ["bundle/chunks", "core/extensions"];

/// Lets `user` keep the compiled extensions between starts of a copied pi, which saves a third of each start.
///
/// The loader keeps them in a `node_modules` beside it, or else in one directory for all users of the machine, which
/// only the user who made it can write.
fn keep_compiled_extensions(cli: &Path, user: User) -> anyhow::Result<()> {
    let dist = cli.ancestors().find(|folder| folder.ends_with("dist")).context("pi has a `dist`")?;
    for loader in LOADERS.map(|loader| dist.join(loader)).iter().filter(|loader| loader.is_dir()) {
        let folder = loader.join("node_modules");
        fs::create_dir_all(&folder).with_context(|| format!("creating `{}`", folder.display()))?;
        user.own(&folder)?;
    }
    Ok(())
}

/// The tools that `cargo xtask setup` has prepared, as its `tools.json` lists them.
#[derive(Debug)]
pub struct Tools {
    listing: Value,
    file: PathBuf,
}

impl Tools {
    /// Reads `tools.json` of the development cache.
    ///
    /// # Errors
    ///
    /// If it is missing, or cannot be read.
    pub fn find() -> anyhow::Result<Self> {
        let file = cache_folder()?.join("tools.json");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("reading the list of tools `{}`; {GET_TOOLS}", file.display()))?;
        let listing = serde_json::from_str(&text).with_context(|| format!("parsing `{}`", file.display()))?;
        Ok(Self { listing, file })
    }

    /// Returns the pi of `version`, at paths that `user` can reach.
    ///
    /// # Errors
    ///
    /// If it is not listed, missing, or cannot be made reachable.
    pub fn pi(&self, version: PiVersion, user: User) -> anyhow::Result<Pi> {
        let key = version.key();
        let node = reach::program(&self.path(&format!("/{}/node", version.key_of_node()))?, user)?;
        let original = self.path(&format!("/{key}/cli"))?;
        let cli = reach::within_tree(&original, user)?;
        if cli != original {
            keep_compiled_extensions(&cli, user)?;
        }
        Ok(Pi { node, cli })
    }

    /// Returns the oldest supported Node, at a path for commands of any user.
    ///
    /// # Errors
    ///
    /// If it is not listed, missing, or cannot be made reachable.
    pub fn oldest_node(&self) -> anyhow::Result<PathBuf> {
        reach::outside_homes(&self.path("/node_oldest")?)
    }

    /// Returns the program `name` that pi starts for one of its tools, at a path that `user` can reach.
    ///
    /// # Errors
    ///
    /// If it is missing or cannot be made reachable.
    pub fn helper(&self, name: &str, user: User) -> anyhow::Result<PathBuf> {
        let path = self.path("/bin_dir")?.join(name);
        let real = fs::canonicalize(&path)
            .with_context(|| format!("`{}` is missing; {GET_TOOLS}", path.display()))?;
        match unpacked(&real) {
            Some(tree) => Ok(reach::tree(tree, user)?.join(SCRIPTS).join(name)),
            None => reach::program(&real, user),
        }
    }

    /// Returns folders with these programs for commands of any user, to be appended to PATH.
    ///
    /// # Errors
    ///
    /// If one is missing or cannot be made reachable.
    pub fn folders(&self, names: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
        let bin = self.path("/bin_dir")?;
        let folder = |name: &&str| {
            let path = bin.join(name);
            // The link's own name counts: its target may have another one.
            let target =
                fs::read_link(&path).with_context(|| format!("no `{}`; {GET_TOOLS}", path.display()))?;
            match unpacked(&target) {
                Some(tree) => Ok(reach::outside_homes(tree)?.join(SCRIPTS)),
                None => target.parent().map(PathBuf::from).context("a program lies in a folder"),
            }
        };
        names.iter().map(folder).collect()
    }

    /// Returns the compiler for wasm targets and its flags, if it is not rustup's own.
    #[must_use]
    pub fn wasm(&self) -> Option<(PathBuf, String)> {
        let rustc = self.listing.pointer("/wasm/rustc").and_then(Value::as_str)?;
        let flags = self.listing.pointer("/wasm/flags").and_then(Value::as_array)?;
        let flags: Vec<&str> = flags.iter().filter_map(Value::as_str).collect();
        Some((PathBuf::from(rustc), flags.join(" ")))
    }

    fn path(&self, pointer: &str) -> anyhow::Result<PathBuf> {
        let listed = self.listing.pointer(pointer).and_then(Value::as_str);
        let path =
            listed.with_context(|| format!("`{}` has no `{pointer}`; {GET_TOOLS}", self.file.display()))?;
        ensure!(Path::new(path).exists(), "`{path}` ({pointer}) is missing; {GET_TOOLS}");
        Ok(PathBuf::from(path))
    }
}

/// The folder of the scripts that start the programs of an unpacked package.
const SCRIPTS: &str = "scripts";

/// Returns the unpacked package of a program, without which it does not work.
fn unpacked(script: &Path) -> Option<&Path> {
    script.parent().filter(|folder| folder.ends_with(SCRIPTS))?.parent()
}

/// Returns the `portcullis` binary under test, at a path that `user` can reach: the one in `PORTCULLIS_BIN`, or the one
/// built beside this test.
///
/// # Errors
///
/// If it is missing or cannot be made reachable.
pub fn portcullis(user: User) -> anyhow::Result<PathBuf> {
    let path = match env::var_os("PORTCULLIS_BIN") {
        Some(named) => PathBuf::from(named),
        None => beside_this_test()?.join("portcullis"),
    };
    ensure!(
        path.exists(),
        "the binary `{}` is missing; run `cargo build -p portcullis-cli` first, or name it in PORTCULLIS_BIN",
        path.display()
    );
    reach::program(&fs::canonicalize(&path)?, user)
}

/// Returns the program of systems other than Linux, built beside this test, at a path that `user` can reach.
///
/// # Errors
///
/// If it is missing or cannot be made reachable.
pub(crate) fn portable(user: User) -> anyhow::Result<PathBuf> {
    let path = beside_this_test()?.join("portcullis-portable");
    let command = "cargo build --workspace --features portcullis-cli/portable --bin portcullis-portable";
    ensure!(path.exists(), "the binary `{}` is missing; run `{command}`", path.display());
    reach::program(&fs::canonicalize(&path)?, user)
}

/// Returns the component of a test guest, at a path that `user` can reach.
///
/// # Errors
///
/// If it has not been built, or cannot be made reachable.
pub fn guest(name: &str, user: User) -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests").join(format!("{name}.wasm"));
    let path = fs::canonicalize(&path)
        .with_context(|| format!("`{}` is missing; run `cargo xtask guests`", path.display()))?;
    reach::program(&path, user)
}

/// Returns a path of a folder of programs at which commands of any user can run them.
///
/// # Errors
///
/// If it cannot be made reachable.
pub fn for_commands(folder: &Path) -> anyhow::Result<PathBuf> {
    reach::outside_homes(folder)
}

/// Returns the folder of the built binaries: cargo puts tests into `deps/` below it.
fn beside_this_test() -> anyhow::Result<PathBuf> {
    let this = env::current_exe().context("finding this test's own path")?;
    this.ancestors().nth(2).map(PathBuf::from).context("this test lies in no target folder")
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    let from = |name: &str, rest: &str| named(name).map(|folder| PathBuf::from(folder).join(rest));
    from("PORTCULLIS_DEV", "")
        .or_else(|| from("XDG_CACHE_HOME", "portcullis-dev"))
        .or_else(|| from("HOME", ".cache/portcullis-dev"))
        .context("neither PORTCULLIS_DEV nor HOME is set, so the tools cannot be found")
}

fn named(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}
