//! The cache of fetched tools, and the file that lists their paths for tests and scripts.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{env, iter};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::run::{persistently, step};

/// The paths that `setup` leaves in `tools.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tools {
    /// The last pi for Node 20.
    pub(crate) pi_0_74: Option<Pi>,
    /// The current pi, with the newer Node it needs.
    pub(crate) pi_1_5: Option<Pi>,
    /// The oldest Node that is promised to work.
    pub(crate) node_oldest: Option<PathBuf>,
    /// The directory of the programs that pi's tools and the tests call, for the front of PATH.
    pub(crate) bin_dir: Option<PathBuf>,
    /// The TypeScript compiler, with Node's types beside it.
    pub(crate) tsc: Option<PathBuf>,
    /// How wasm guests are compiled.
    pub(crate) wasm: Option<Wasm>,
}

/// One version of pi: run `node cli`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pi {
    pub(crate) node: PathBuf,
    pub(crate) cli: PathBuf,
}

/// The compiler for guests: `rustc` is `None` where the ordinary toolchain has the targets.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Wasm {
    pub(crate) rustc: Option<PathBuf>,
    pub(crate) flags: Vec<String>,
}

impl Tools {
    /// Returns the value of PATH with which the fetched programs are found first.
    pub(crate) fn search_path(&self) -> Result<OsString> {
        let bin = self.bin_dir.clone().context("set-up left no directory of programs")?;
        let path = env::var_os("PATH").unwrap_or_default();
        env::join_paths(iter::once(bin).chain(env::split_paths(&path))).context("putting PATH together")
    }
}

/// The directory outside the clone with everything that was fetched; it may be deleted at any time.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache that the environment names, creating it if needed.
    pub(crate) fn open() -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = variable("PORTCULLIS_DEV")
            .or_else(|| variable("XDG_CACHE_HOME").map(|caches| caches.join("portcullis-dev")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/portcullis-dev")))
            .context("finding the cache directory: set PORTCULLIS_DEV or HOME")?;
        fs::create_dir_all(&root).with_context(|| format!("creating `{}`", root.display()))?;
        let root = root.canonicalize().with_context(|| format!("resolving `{}`", root.display()))?;
        Ok(Self { root })
    }

    /// Returns the path of `name` in the cache.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Waits until no other set-up works in this cache; the lock ends with the returned file.
    pub(crate) fn lock(&self) -> Result<File> {
        let file = File::create(self.path("lock")).context("creating the lock file of the cache")?;
        file.lock().context("waiting for another `cargo xtask setup`")?;
        Ok(file)
    }

    /// Returns the directory `name`, made by `fill` if it is not there yet.
    ///
    /// The name carries the version. A directory appears under its name only when complete, so an
    /// interrupted set-up begins this piece anew.
    pub(crate) fn directory(&self, name: &str, fill: impl Fn(&Path) -> Result<()>) -> Result<PathBuf> {
        let target = self.path(name);
        if !target.exists() {
            persistently(&format!("fetching {name}"), || self.fill(name, &fill))?;
        }
        Ok(target)
    }

    /// Makes the directory `name`.
    fn fill(&self, name: &str, fill: &impl Fn(&Path) -> Result<()>) -> Result<()> {
        let target = self.path(name);
        let partial = self.path(&format!("{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| format!("removing `{}`", partial.display()))?;
        }
        fs::create_dir_all(&partial).with_context(|| format!("creating `{}`", partial.display()))?;
        step(&format!("fetching {name}"), || fill(&partial))?;
        fs::rename(&partial, &target).with_context(|| format!("putting `{}` in place", target.display()))
    }

    /// Returns the path of `tools.json`.
    pub(crate) fn tools_file(&self) -> PathBuf {
        self.path("tools.json")
    }

    /// Writes `tools.json`, whole or not at all.
    pub(crate) fn write_tools(&self, tools: &Tools) -> Result<()> {
        let partial = self.path("tools.json.partial");
        fs::write(&partial, serde_json::to_string_pretty(tools)? + "\n").context("writing tools.json")?;
        fs::rename(&partial, self.tools_file()).context("putting tools.json in place")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_piece_is_made_anew_and_a_finished_one_is_kept() {
        let root = env::temp_dir().join(format!("xtask-cache-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let cache = Cache { root: root.clone() };
        cache.fill("piece-1", &|_: &Path| anyhow::bail!("no network")).unwrap_err();
        assert!(!cache.path("piece-1").exists());
        let made = cache.directory("piece-1", |inside| Ok(fs::write(inside.join("file"), "x")?)).unwrap();
        assert!(made.join("file").exists());
        cache.directory("piece-1", |_| anyhow::bail!("made twice")).unwrap();
        fs::remove_dir_all(root).unwrap();
    }
}
