//! The private home of a project: the state of the tools that commands run, kept between sessions.
//!
//! In the state directory, which no command sees, `homes/PROJECT` holds the home itself, the changes in caches, and the
//! path of the project. Sessions of one project share it. Each holds a lock on it, so that it is not removed under them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use anyhow::Context as _;
use portcullis_session::{CacheKind, KeptHome, WarmCache};
use sha2::{Digest as _, Sha256};

/// The table of caches.
const WARM_CACHES: &str = include_str!("warm-caches.txt");

/// The directory of all private homes in the state directory.
const HOMES: &str = "homes";
const HOME: &str = "home";
const LAYERS: &str = "layers";
const PROJECT: &str = "project";

/// The private home of a project, in use.
#[derive(Debug)]
pub struct ProjectHome {
    place: PathBuf,
    _in_use: File,
    /// Held by the session that keeps what it changes in caches.
    layers: Option<File>,
}

impl ProjectHome {
    /// Opens the private home of `project` for commands that act as `owner`, and makes it if it is missing.
    ///
    /// # Errors
    /// If it cannot be made, or is not as this program made it.
    pub fn open(state: &Path, project: &Path, owner: Option<(u32, u32)>) -> anyhow::Result<Self> {
        let place = place(state, project);
        let shown = place.display();
        private().recursive(true).create(&place).with_context(|| format!("making `{shown}`"))?;
        // The sandbox opens it without following links.
        let place = place.canonicalize().with_context(|| format!("opening `{shown}`"))?;
        require_own(&place, rustix::process::geteuid().as_raw())?;
        let in_use = lock(&place.join("lock"))?;
        in_use.lock_shared().with_context(|| format!("waiting for the lock of `{shown}`"))?;
        std::fs::write(place.join(PROJECT), project.as_os_str().as_bytes())
            .with_context(|| format!("writing to `{shown}`"))?;
        let home = place.join(HOME);
        let user = owner.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        match private().create(&home) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made.with_context(|| format!("making `{}`", home.display()))?;
                if let Some((uid, gid)) = owner {
                    std::os::unix::fs::lchown(&home, Some(uid), Some(gid))?;
                }
            }
        }
        require_own(&home, user)?;
        let layers = lock(&place.join("layers.lock"))?;
        let layers = layers.try_lock().is_ok().then_some(layers);
        Ok(Self { place, _in_use: in_use, layers })
    }

    /// Returns its directories; `scratch` is the session's own directory.
    pub fn kept(&self, scratch: &Path) -> KeptHome {
        KeptHome {
            directory: self.place.join(HOME),
            layers: self.place.join(LAYERS),
            passing: scratch.join(LAYERS),
            keeps_layers: self.layers.is_some(),
            passed: AtomicUsize::new(0),
        }
    }
}

/// Returns the caches of the table below a home directory.
pub fn caches(home: &Path) -> Vec<WarmCache> {
    let lines = WARM_CACHES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cache = |line: &str| {
        let (kind, rest) = line.split_once(' ')?;
        let (path, _reason) = rest.split_once(": ")?;
        let kind = match kind {
            "directory" => CacheKind::Directory,
            "programs" => CacheKind::Programs,
            "file" => CacheKind::File,
            _ => return None,
        };
        Some(WarmCache { path: home.join(path), kind })
    };
    lines.filter_map(cache).collect()
}

/// Returns the directory of a project's private home.
fn place(state: &Path, project: &Path) -> PathBuf {
    let digest = Sha256::digest(project.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|letter| letter.is_ascii_alphanumeric()).take(24).collect();
    state.join(HOMES).join(format!("{name}-{digest}"))
}

/// Fails if a path is not a directory of this user.
fn require_own(path: &Path, user: u32) -> anyhow::Result<()> {
    let found = path.symlink_metadata().with_context(|| format!("looking at `{}`", path.display()))?;
    anyhow::ensure!(found.is_dir(), "`{}` is not a directory", path.display());
    anyhow::ensure!(
        found.uid() == user,
        "`{}` belongs to the user {}, and commands act as {user}",
        path.display(),
        found.uid()
    );
    Ok(())
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).with_context(|| format!("opening `{}`", path.display()))
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = WARM_CACHES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        let caches = caches(Path::new("/home/u"));
        assert_eq!(caches.len(), lines);
        for cache in &caches {
            let name = cache.path.strip_prefix("/home/u").unwrap().iter().next().unwrap();
            assert!(name.as_encoded_bytes().starts_with(b".") || name == "go", "{cache:?}");
        }
    }

    #[test]
    fn one_session_keeps_what_it_changes_in_caches() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        let first = ProjectHome::open(state.path(), project, None).unwrap();
        let second = ProjectHome::open(state.path(), project, None).unwrap();
        assert!(first.layers.is_some() && second.layers.is_none());
        let other = ProjectHome::open(state.path(), Path::new("/srv/other/app"), None).unwrap();
        assert_ne!(first.place, other.place);
    }

    #[test]
    fn what_is_not_a_directory_of_the_user_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        let place = place(state.path(), project);
        std::fs::create_dir_all(&place).unwrap();
        std::os::unix::fs::symlink("/etc", place.join(HOME)).unwrap();
        let said = ProjectHome::open(state.path(), project, None).unwrap_err().to_string();
        assert!(said.contains("is not a directory"), "{said}");
    }
}
