//! The private home of a project: the state of the tools that commands run, kept between sessions.
//!
//! In the state directory, which no command sees, `homes/PROJECT` holds the home itself, the changes in caches, and the
//! path of the project. Sessions of one project share it. Each holds a lock on it, so that it is not removed under them.

mod mount_points;
mod place;
mod stored;

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::Context as _;
use portcullis_session::{CacheKind, KeptHome, LayersUsers, WarmCache};

use place::{HOME, PROJECT, lock, place};
#[cfg(target_os = "linux")]
pub(crate) use place::{lock as lock_file, name_of};
pub use stored::{Cleared, Size, StoredHome, clear, size, stored};

/// The table of caches.
const WARM_CACHES: &str = include_str!("warm-caches.txt");

const LAYERS: &str = "layers";
/// The size in bytes, as it was when a session began.
const SIZE: &str = "size";
/// So long a noted size is taken for the size.
const SIZE_LASTS: Duration = Duration::from_mins(5);

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
    /// If it cannot be made, is not as this program made it, or has `most` bytes already.
    pub fn open(state: &Path, project: &Path, owner: Option<(u32, u32)>, most: u64) -> anyhow::Result<Self> {
        let place = place(state, project);
        let shown = place.display();
        private().recursive(true).create(&place).with_context(|| format!("making `{shown}`"))?;
        // The sandbox opens it without following links.
        let place = place.canonicalize().with_context(|| format!("opening `{shown}`"))?;
        require_own(&place, rustix::process::geteuid().as_raw())?;
        let in_use = lock(&place.join("lock"))?;
        if in_use.try_lock().is_ok() {
            mount_points::remove(&place.join(HOME));
        }
        in_use.lock_shared().with_context(|| format!("waiting for the lock of `{shown}`"))?;
        is_full(&place, most)?;
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

    /// Writes its size down for the next session, unless that was done a short while ago.
    pub fn note_size(&self) {
        let noted = self.place.join(SIZE);
        let age = noted.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_none_or(|age| age > SIZE_LASTS) {
            let _for_the_next_session = std::fs::write(noted, noted_size(size(&self.place)));
        }
    }

    /// Returns its directories; `scratch` is the session's own directory.
    pub fn kept(&self, scratch: &Path) -> KeptHome {
        KeptHome {
            homes: self.place.parent().unwrap_or(&self.place).to_owned(),
            directory: self.place.join(HOME),
            layers: self.place.join(LAYERS),
            passing: scratch.join(LAYERS),
            keeps_layers: self.layers.is_some(),
            passed: AtomicUsize::new(0),
            users: LayersUsers::default(),
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

/// Fails if a private home has more than `most` bytes. It is looked through only if it had at its last size.
fn is_full(place: &Path, most: u64) -> anyhow::Result<()> {
    let noted = std::fs::read_to_string(place.join(SIZE)).ok().and_then(|text| text.parse::<u64>().ok());
    if noted.is_none_or(|noted| noted <= most) {
        return Ok(());
    }
    let found = size(place);
    std::fs::write(place.join(SIZE), noted_size(found))?;
    let Size { bytes, is_at_least } = found;
    // A command can close a directory to the user, or nest it so deep that it has no path.
    anyhow::ensure!(!is_at_least, "how large it is cannot be told, because a part of it cannot be looked at");
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    anyhow::ensure!(bytes <= most, "it is full: {} MiB, and `home.maxMib` is {}", mib(bytes), mib(most));
    Ok(())
}

/// Returns the text of a noted size: one that is not known is beyond every limit.
fn noted_size(Size { bytes, is_at_least }: Size) -> String {
    if is_at_least { u64::MAX } else { bytes }.to_string()
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

/// Returns a builder of directories that only this user can use.
pub(crate) fn private() -> DirBuilder {
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
        let first = ProjectHome::open(state.path(), project, None, u64::MAX).unwrap();
        let second = ProjectHome::open(state.path(), project, None, u64::MAX).unwrap();
        assert!(first.layers.is_some() && second.layers.is_none());
        let other = ProjectHome::open(state.path(), Path::new("/srv/other/app"), None, u64::MAX).unwrap();
        assert_ne!(first.place, other.place);
    }

    #[test]
    fn what_is_not_a_directory_of_the_user_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        let place = place(state.path(), project);
        std::fs::create_dir_all(&place).unwrap();
        std::os::unix::fs::symlink("/etc", place.join(HOME)).unwrap();
        let said = ProjectHome::open(state.path(), project, None, u64::MAX).unwrap_err().to_string();
        assert!(said.contains("is not a directory"), "{said}");
    }

    #[test]
    fn a_home_in_use_stays() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        assert_eq!(stored(state.path(), Some(project)).unwrap(), []);
        let home = ProjectHome::open(state.path(), project, None, u64::MAX).unwrap();
        std::fs::write(home.place.join("home/x"), [1; 10_000]).unwrap();
        let [found] = stored(state.path(), None).unwrap().try_into().unwrap();
        assert!(found.is_in_use && found.size.bytes >= 10_000 && found.project == project, "{found:?}");
        assert_eq!(clear(&found.directory).unwrap(), Cleared::InUse);
        drop(home);
        assert_eq!(clear(&found.directory).unwrap(), Cleared::Removed);
        assert_eq!(stored(state.path(), None).unwrap(), []);
    }

    #[test]
    fn what_is_too_large_is_not_opened() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        let open = |most| ProjectHome::open(state.path(), project, None, most);
        let home = open(50_000).unwrap();
        std::fs::write(home.place.join("home/x"), vec![1; 100_000]).unwrap();
        home.note_size();
        drop(home);
        let said = open(50_000).unwrap_err().to_string();
        assert!(said.contains("is full"), "{said}");
        assert!(open(1_000_000).is_ok());
    }

    #[test]
    fn what_cannot_be_measured_is_not_opened() {
        let state = tempfile::tempdir().unwrap();
        let project = Path::new("/srv/app");
        let open = |most| ProjectHome::open(state.path(), project, None, most);
        let home = open(50_000).unwrap();
        // A path that is too long; root can look into every directory.
        let cache = home.place.join("home/.cache");
        std::fs::create_dir(&cache).unwrap();
        let mut deep =
            rustix::fs::openat(rustix::fs::CWD, cache, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
                .unwrap();
        let name = "d".repeat(200);
        for _ in 0..30 {
            rustix::fs::mkdirat(&deep, &name, rustix::fs::Mode::RWXU).unwrap();
            let (flags, mode) = (rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
            deep = rustix::fs::openat(&deep, &name, flags, mode).unwrap();
        }
        home.note_size();
        drop(home);
        let said = open(50_000).unwrap_err().to_string();
        assert!(said.contains("cannot be looked at"), "{said}");
        assert!(open(u64::MAX).is_ok(), "without a limit");
        let [found] = stored(state.path(), None).unwrap().try_into().unwrap();
        assert_eq!(clear(&found.directory).unwrap(), Cleared::Removed);
    }
}
