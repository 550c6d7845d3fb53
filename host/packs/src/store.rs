//! A directory of packs: `policy.lock`, and its components in `packs/`, named by their digests.
//!
//! New components are written beside those in use. Then the lock is replaced atomically. A failure before
//! that changes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::lock::{LOCK_MAX, Lock, LockError, Locked};
use crate::signature::{SignatureError, Signatures, TEXT_MAX};

/// Largest component, in bytes. The runtime has the same limit.
pub const COMPONENT_MAX: u64 = 64 << 20;
/// File name of the lock.
pub const LOCK: &str = "policy.lock";
/// Directory of the components.
const PACKS: &str = "packs";
/// Lock file that a writer holds.
const GUARD: &str = ".guard";

/// A directory of packs.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    owner: Owner,
}

/// The owner of a directory of packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The user's settings directory. Its `packs` directory may be a symlink of the user.
    User,
    /// A directory such as the project's, which others may control.
    ///
    /// A symlink there could redirect writes and removals.
    Anybody,
}

/// A component with its signatures.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The component.
    pub bytes: Vec<u8>,
    /// The signatures.
    pub signatures: Signatures,
}

/// The reason why a directory of packs cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StoreError {
    /// A system call failed.
    #[error("{act} `{}`", path.display())]
    Io {
        act: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file is too large.
    #[error("`{}` is larger than {max} bytes", path.display())]
    TooLarge { path: PathBuf, max: u64 },
    /// A text is not UTF-8.
    #[error("`{}` is not UTF-8", path.display())]
    NotText { path: PathBuf },
    /// The lock is invalid.
    #[error("the lock `{}`", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: LockError,
    },
    /// The signatures of a component cannot be read.
    #[error("the signatures beside `{}`", path.display())]
    Signatures {
        path: PathBuf,
        #[source]
        source: SignatureError,
    },
    /// A component differs from the locked one.
    #[error("`{}` differs from the lock's `{id}`: its digest is `{found}`; `portcullis policy add` fetches it again", path.display())]
    Changed { path: PathBuf, id: String, found: String },
}

impl Store {
    /// Returns the store in the user's settings directory, which need not exist.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), owner: Owner::User }
    }

    /// Returns the store in any other directory. Symlinks in it are not followed for writing.
    #[must_use]
    pub fn elsewhere(root: &Path) -> Self {
        Self { root: root.to_owned(), owner: Owner::Anybody }
    }

    /// Returns the path of the lock.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// Returns the path of a locked component.
    #[must_use]
    pub fn file(&self, policy: &Locked) -> PathBuf {
        self.root.join(PACKS).join(policy.digest.trim_start_matches("sha256:")).with_extension("wasm")
    }

    /// Reads the lock. Returns an empty lock if there is no file.
    ///
    /// # Errors
    /// Fails when the lock cannot be read or is invalid.
    pub fn lock(&self) -> Result<Lock, StoreError> {
        let path = self.lock_file();
        let text = match read_text(&path, LOCK_MAX) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        Lock::parse(&text).map_err(|source| StoreError::Lock { path, source })
    }

    /// Reads a locked component and checks its digest.
    ///
    /// # Errors
    /// Fails when the component is missing or its digest differs.
    pub fn component(&self, policy: &Locked) -> Result<Vec<u8>, StoreError> {
        let path = self.file(policy);
        let bytes = read(&path, COMPONENT_MAX)?;
        let found = format!("sha256:{}", crate::digest::digest(&bytes));
        if found != policy.digest {
            return Err(StoreError::Changed { path, id: policy.id.clone(), found });
        }
        Ok(bytes)
    }

    /// Reads a locked component with its signatures.
    ///
    /// # Errors
    /// Those of [`Store::component`], and when the signatures cannot be read.
    pub fn signed(&self, policy: &Locked) -> Result<Signed, StoreError> {
        Ok(Signed { bytes: self.component(policy)?, signatures: signatures_beside(&self.file(policy))? })
    }

    /// Waits until no other process writes here, and locks the directory.
    ///
    /// # Errors
    /// Fails when the directory cannot be created or written.
    pub fn begin(&self) -> Result<Writing<'_>, StoreError> {
        let packs = self.root.join(PACKS);
        fs::create_dir_all(&self.root).map_err(failed("making", &self.root))?;
        let root = directory(CWD, &self.root, OFlags::empty()).map_err(failed("opening", &self.root))?;
        match mkdirat(&root, PACKS, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("making", &packs)(error.into())),
        }
        let follow = if self.owner == Owner::Anybody { OFlags::NOFOLLOW } else { OFlags::empty() };
        let folder = directory(&root, Path::new(PACKS), follow).map_err(|error| {
            let text = "it must be a directory; a link is not followed there, so remove it";
            let is_none = matches!(
                error.raw_os_error().map(Errno::from_raw_os_error),
                Some(Errno::NOTDIR | Errno::LOOP)
            );
            failed("opening", &packs)(if is_none { io::Error::other(text) } else { error })
        })?;
        let path = packs.join(GUARD);
        let wanted = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let guard = openat(&folder, GUARD, wanted, Mode::RUSR | Mode::WUSR);
        let guard = File::from(guard.map_err(|error| failed("opening", &path)(error.into()))?);
        if !guard.metadata().map_err(failed("opening", &path))?.is_file() {
            return Err(failed("opening", &path)(io::Error::other("it is no regular file; remove it")));
        }
        guard.lock().map_err(failed("waiting for", &path))?;
        Ok(Writing { store: self, root, folder, _guard: guard })
    }
}

/// Exclusive write access to a directory of packs.
///
/// It holds the directory's file descriptor, so it never writes to another directory that gets the same name.
#[derive(Debug)]
pub struct Writing<'a> {
    store: &'a Store,
    root: OwnedFd,
    /// The directory of the components.
    folder: OwnedFd,
    _guard: File,
}

impl Writing<'_> {
    /// Writes new components and replaces the lock, then removes the components that only the old lock names.
    ///
    /// # Errors
    /// Fails when a file cannot be written. The old lock then stays in place.
    pub fn commit(&self, lock: &Lock, new: &[(&Locked, &Signed)]) -> Result<(), StoreError> {
        // If the old lock is unreadable its components stay, which does no harm.
        let before = self.store.lock().unwrap_or_default();
        for (policy, signed) in new {
            self.put(policy, signed)?;
        }
        let path = self.store.lock_file();
        let text = lock.text().map_err(|source| StoreError::Lock { path: path.clone(), source })?;
        write_at(&self.root, LOCK, text.as_bytes()).map_err(failed("writing", &path))?;
        self.sweep(&before, lock);
        Ok(())
    }

    fn put(&self, policy: &Locked, signed: &Signed) -> Result<(), StoreError> {
        let path = self.store.file(policy);
        let signatures = [
            ("sig", signed.signatures.ssh_text()),
            ("minisig", signed.signatures.minisign_text().to_owned()),
        ];
        for (ending, text) in signatures {
            let path = beside(&path, ending);
            match text.as_str() {
                "" => self.remove(&path),
                text => {
                    write_at(&self.folder, name_of(&path), text.as_bytes())
                        .map_err(failed("writing", &path))?;
                }
            }
        }
        write_at(&self.folder, name_of(&path), &signed.bytes).map_err(failed("writing", &path))
    }

    /// Removes the components that only the old lock names. A file that stays does no harm.
    fn sweep(&self, before: &Lock, lock: &Lock) {
        let is_used = |digest: &str| lock.policies.iter().any(|policy| policy.digest == digest);
        for policy in before.policies.iter().filter(|policy| !is_used(&policy.digest)) {
            let path = self.store.file(policy);
            for path in [beside(&path, "sig"), beside(&path, "minisig"), path] {
                self.remove(&path);
            }
        }
    }

    fn remove(&self, path: &Path) {
        let _often_there_is_none = unlinkat(&self.folder, name_of(path), AtFlags::empty());
    }
}

/// Opens a directory for operations relative to it.
fn directory(around: impl std::os::fd::AsFd, path: &Path, how: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(around, path, OFlags::DIRECTORY | OFlags::CLOEXEC | how, Mode::empty())?)
}

fn name_of(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

/// Reads the signatures beside a component: `FILE.sig` and `FILE.minisig`.
///
/// # Errors
/// Fails when one of the files exists but cannot be read.
pub fn signatures_beside(file: &Path) -> Result<Signatures, StoreError> {
    let text = |ending: &str| match read_text(&beside(file, ending), TEXT_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    };
    let (ssh, minisign) = (text("sig")?, text("minisig")?);
    Signatures::parse(&ssh, &minisign)
        .map_err(|source| StoreError::Signatures { path: file.to_owned(), source })
}

/// Writes a component, and its signatures beside it.
///
/// # Errors
/// Fails when a file cannot be written.
pub fn write_signed(file: &Path, signed: &Signed) -> Result<(), StoreError> {
    let ssh = signed.signatures.ssh_text();
    for (ending, text) in [("sig", ssh.as_str()), ("minisig", signed.signatures.minisign_text())] {
        let path = beside(file, ending);
        match text {
            "" => drop(fs::remove_file(&path)),
            text => write(&path, text.as_bytes())?,
        }
    }
    write(file, &signed.bytes)
}

/// Returns the name of a file beside another one: `x.wasm` and `sig` give `x.wasm.sig`.
#[must_use]
pub fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Opens a regular file for reading. Refuses devices and pipes, where opening or reading could block forever.
///
/// # Errors
/// Fails when the path is not a regular file or cannot be opened.
pub fn open(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking())
        .open(path)
        .map_err(failed("reading", path))?;
    if !file.metadata().map_err(failed("reading", path))?.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(StoreError::Io { act: "reading", path: path.to_owned(), source });
    }
    Ok(file)
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// Fails when the path is not a regular file, cannot be read, or is too large.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    open(path)?.take(max + 1).read_to_end(&mut bytes).map_err(failed("reading", path))?;
    if bytes.len() as u64 > max {
        return Err(StoreError::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// Reads a text file of at most `max` bytes.
///
/// # Errors
/// Those of [`read`], and when the text is not UTF-8.
pub fn read_text(path: &Path, max: usize) -> Result<String, StoreError> {
    let bytes = read(path, max as u64)?;
    String::from_utf8(bytes).map_err(|_| StoreError::NotText { path: path.to_owned() })
}

/// Writes a file atomically.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let written =
        directory(CWD, parent, OFlags::empty()).and_then(|folder| write_at(&folder, name_of(path), bytes));
    written.map_err(failed("writing", path))
}

/// Writes a file in an open directory atomically. An existing symlink is replaced, never followed.
fn write_at(folder: &OwnedFd, name: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let name = name.as_ref();
    let part = beside(name, &format!("part-{}", std::process::id()));
    // Left by an earlier process with the same pid.
    let _often_there_is_none = unlinkat(folder, &part, AtFlags::empty());
    let wanted = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let mut file = File::from(openat(folder, &part, wanted, mode)?);
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(folder, &part, folder, name)?));
    if written.is_err() {
        let _nothing_more_to_do = unlinkat(folder, &part, AtFlags::empty());
    }
    written
}

fn nonblocking() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

fn failed<'a>(act: &'static str, path: &'a Path) -> impl Fn(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { act, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(digest: String) -> Locked {
        Locked {
            id: "a:a".to_owned(),
            version: semver::Version::new(1, 0, 0),
            requirement: None,
            source: "file".to_owned(),
            digest,
            size: 1,
            capabilities: std::collections::BTreeSet::new(),
            signed_by: Vec::new(),
        }
    }

    fn signed(bytes: &[u8]) -> (Locked, Signed) {
        let signed = Signed { bytes: bytes.to_owned(), signatures: Signatures::default() };
        (locked(format!("sha256:{}", crate::digest::digest(bytes))), signed)
    }

    #[test]
    fn what_is_committed_is_there_and_what_was_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let mut lock = store.lock().unwrap();
        for bytes in [b"one", b"two"] {
            let (policy, signed) = signed(bytes);
            lock.put(policy.clone());
            store.begin().unwrap().commit(&lock, &[(&policy, &signed)]).unwrap();
            assert_eq!(store.component(store.lock().unwrap().find("a:a").unwrap()).unwrap(), bytes);
        }
        let names = fs::read_dir(directory.path().join(PACKS)).unwrap();
        assert_eq!(names.count(), 2, "one component and the guard");
    }

    #[test]
    fn other_bytes_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let (policy, signed) = signed(b"one");
        let mut lock = Lock::default();
        lock.put(policy.clone());
        store.begin().unwrap().commit(&lock, &[(&policy, &signed)]).unwrap();
        fs::write(store.file(&policy), b"oNe").unwrap();
        assert!(matches!(store.component(&policy), Err(StoreError::Changed { .. })));
        fs::remove_file(store.file(&policy)).unwrap();
        assert!(matches!(store.component(&policy), Err(StoreError::Io { .. })));
    }

    #[test]
    fn a_failed_commit_leaves_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let (policy, signed) = signed(b"one");
        let writing = store.begin().unwrap();
        // A directory occupies the path of the component.
        fs::create_dir(store.file(&policy)).unwrap();
        let mut lock = Lock::default();
        lock.put(policy.clone());
        assert!(writing.commit(&lock, &[(&policy, &signed)]).is_err());
        assert!(!store.lock_file().exists());
    }

    /// Commits one pack and then another in its place, in a directory that `prepare` sets up.
    fn replaced(
        make: fn(&Path) -> Store,
        prepare: impl Fn(&Path),
    ) -> (tempfile::TempDir, Result<(), StoreError>) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(&root).unwrap();
        let (one, two) = (signed(b"one"), signed(b"two"));
        let mut lock = Lock::default();
        lock.put(one.0);
        fs::write(root.join(LOCK), lock.text().unwrap()).unwrap();
        prepare(&root);
        let store = make(&root);
        lock.put(two.0.clone());
        let done = store.begin().and_then(|writing| writing.commit(&lock, &[(&two.0, &two.1)]));
        (directory, done)
    }

    #[test]
    fn nothing_is_written_or_removed_through_a_link_of_somebody_elses() {
        let lead_away = |root: &Path| {
            let (one, other) = (crate::digest::digest(b"one"), crate::digest::digest(b"other"));
            let away = root.with_file_name("away");
            fs::create_dir(&away).unwrap();
            for name in [format!("{one}.wasm"), one, format!("{other}.wasm")] {
                fs::write(away.join(name), "x").unwrap();
            }
            std::os::unix::fs::symlink("../away", root.join(PACKS)).unwrap();
        };
        let left =
            |directory: &tempfile::TempDir| fs::read_dir(directory.path().join("away")).unwrap().count();
        let (directory, done) = replaced(Store::elsewhere, lead_away);
        assert!(done.is_err());
        assert_eq!(left(&directory), 3);
        // The control: the user's own symlink is followed, and only the components of the old lock are
        // removed.
        let (directory, done) = replaced(Store::new, lead_away);
        done.unwrap();
        let two = directory.path().join("away").join(crate::digest::digest(b"two")).with_extension("wasm");
        assert!(two.exists());
        assert_eq!(left(&directory), 4, "one has gone, the guard and the new one have come");
    }

    #[test]
    fn a_pipe_or_a_link_is_no_guard() {
        for make in [Store::new, Store::elsewhere] {
            let (_directory, done) = replaced(make, |root| {
                let guard = root.join(PACKS).join(GUARD);
                fs::create_dir(root.join(PACKS)).unwrap();
                rustix::fs::mknodat(CWD, &guard, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
            });
            assert!(done.is_err());
            let (directory, done) = replaced(make, |root| {
                fs::create_dir(root.join(PACKS)).unwrap();
                std::os::unix::fs::symlink("../../new", root.join(PACKS).join(GUARD)).unwrap();
            });
            assert!(done.is_err() && !directory.path().join("new").exists());
        }
    }

    #[test]
    fn pipes_and_large_files_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(matches!(read(&pipe, 1), Err(StoreError::Io { .. })));
        assert!(matches!(read(Path::new("/dev/zero"), 1), Err(StoreError::Io { .. })));
        let large = directory.path().join("large");
        fs::write(&large, "xx").unwrap();
        assert!(matches!(read(&large, 1), Err(StoreError::TooLarge { .. })));
    }
}
