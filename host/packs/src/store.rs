//! A directory of packs: `policy.lock`, and the components it names in `packs/`, by their digests.
//!
//! The lock is the one switch: components are written beside those in use, and then the lock is replaced in one
//! step. Whatever goes wrong before that leaves everything as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::lock::{LOCK_MAX, Lock, LockError, Locked};
use crate::signature::{SignatureError, Signatures, TEXT_MAX};

/// Largest component, in bytes; the runtime loads no larger one.
pub const COMPONENT_MAX: u64 = 64 << 20;
/// Name of the lock.
pub const LOCK: &str = "policy.lock";
/// Folder of the components.
const PACKS: &str = "packs";
/// Held by whoever writes.
const GUARD: &str = ".guard";

/// A directory of packs.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// A component with what signs it.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The component.
    pub bytes: Vec<u8>,
    /// Its signatures.
    pub signatures: Signatures,
}

/// Why a directory of packs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("{act} `{}`", path.display())]
    Io {
        /// What was being done.
        act: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is larger than it may be.
    #[error("`{}` is larger than {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// A text is not UTF-8.
    #[error("`{}` is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The lock cannot be used.
    #[error("the lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: LockError,
    },
    /// Signatures cannot be read.
    #[error("the signatures beside `{}`", path.display())]
    Signatures {
        /// The component.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SignatureError,
    },
    /// A component is not the one that is locked.
    #[error("`{}` is not what the lock names for `{id}`: its digest is `{found}`; `portcullis policy add` fetches it anew", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The id in the lock.
        id: String,
        /// Its digest.
        found: String,
    },
}

impl Store {
    /// Names a directory; it need not be there.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where the lock lies.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.root.join(LOCK)
    }

    /// Where the component of a lock's entry lies.
    #[must_use]
    pub fn file(&self, policy: &Locked) -> PathBuf {
        self.root.join(PACKS).join(policy.digest.trim_start_matches("sha256:")).with_extension("wasm")
    }

    /// Reads the lock; where there is none, an empty one.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn lock(&self) -> Result<Lock, StoreError> {
        let path = self.lock_file();
        let text = match read_text(&path, LOCK_MAX) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        Lock::parse(&text).map_err(|source| StoreError::Lock { path, source })
    }

    /// Reads a component, and proves that it is the one that is locked.
    ///
    /// # Errors
    /// When it is missing, or has other bytes.
    pub fn component(&self, policy: &Locked) -> Result<Vec<u8>, StoreError> {
        let path = self.file(policy);
        let bytes = read(&path, COMPONENT_MAX)?;
        let found = format!("sha256:{}", crate::digest(&bytes));
        if found != policy.digest {
            return Err(StoreError::Changed { path, id: policy.id.clone(), found });
        }
        Ok(bytes)
    }

    /// Reads a component that is locked, with its signatures.
    ///
    /// # Errors
    /// As for [`Store::component`], and when the signatures cannot be read.
    pub fn signed(&self, policy: &Locked) -> Result<Signed, StoreError> {
        Ok(Signed { bytes: self.component(policy)?, signatures: signatures_beside(&self.file(policy))? })
    }

    /// Waits until nobody else writes here.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn begin(&self) -> Result<Writing<'_>, StoreError> {
        let packs = self.root.join(PACKS);
        fs::create_dir_all(&packs).map_err(failed("making", &packs))?;
        let path = packs.join(GUARD);
        let guard = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .custom_flags(flags())
            .open(&path)
            .map_err(failed("opening", &path))?;
        guard.lock().map_err(failed("waiting for", &path))?;
        Ok(Writing { store: self, _guard: guard })
    }
}

/// The right to change a directory of packs.
#[derive(Debug)]
pub struct Writing<'a> {
    store: &'a Store,
    _guard: File,
}

impl Writing<'_> {
    /// Puts a lock in force, and what it names beside it; what it no longer names is removed.
    ///
    /// # Errors
    /// When something cannot be written; the lock that was in force is still there then.
    pub fn commit(&self, lock: &Lock, new: &[(&Locked, &Signed)]) -> Result<(), StoreError> {
        for (policy, signed) in new {
            let file = self.store.file(policy);
            write_signed(&file, signed)?;
        }
        let path = self.store.lock_file();
        let text = lock.text().map_err(|source| StoreError::Lock { path: path.clone(), source })?;
        write(&path, text.as_bytes())?;
        self.sweep(lock);
        Ok(())
    }

    /// Removes components that no entry names. One that stays does no harm.
    fn sweep(&self, lock: &Lock) {
        let kept: Vec<PathBuf> = lock.policies.iter().map(|policy| self.store.file(policy)).collect();
        let Ok(entries) = fs::read_dir(self.store.root.join(PACKS)) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let component = name.split('.').next().unwrap_or_default();
            let is_ours = component.len() == 64 && component.bytes().all(|byte| byte.is_ascii_hexdigit());
            let used = kept.iter().any(|file| file.file_stem().is_some_and(|stem| stem == component));
            if is_ours && !used {
                drop(fs::remove_file(&path));
            }
        }
    }
}

/// Reads the signatures that lie beside a component: `FILE.sig` and `FILE.minisig`.
///
/// # Errors
/// When one is there and cannot be read.
pub fn signatures_beside(file: &Path) -> Result<Signatures, StoreError> {
    let text = |ending: &str| match read_text(&beside(file, ending), TEXT_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    };
    let (ssh, minisign) = (text("sig")?, text("minisig")?);
    Signatures::parse(&ssh, &minisign)
        .map_err(|source| StoreError::Signatures { path: file.to_owned(), source })
}

/// Writes a component with its signatures beside it.
///
/// # Errors
/// When the system refuses.
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

/// The name of a file beside another one: `x.wasm` and `sig` give `x.wasm.sig`.
#[must_use]
pub fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Reads a file of at most `max` bytes; a device or a pipe is none.
///
/// # Errors
/// When it is no file, cannot be read, or is larger.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, StoreError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking())
        .open(path)
        .map_err(failed("reading", path))?;
    if !file.metadata().map_err(failed("reading", path))?.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(StoreError::Io { act: "reading", path: path.to_owned(), source });
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(failed("reading", path))?;
    if bytes.len() as u64 > max {
        return Err(StoreError::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// Reads a text of at most `max` bytes.
///
/// # Errors
/// As for [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, max: usize) -> Result<String, StoreError> {
    let bytes = read(path, max as u64)?;
    String::from_utf8(bytes).map_err(|_| StoreError::NotText { path: path.to_owned() })
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// When the system refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let part = beside(path, &format!("part-{}", std::process::id()));
    // A rest of an earlier process with this number.
    drop(fs::remove_file(&part));
    let written = OpenOptions::new()
        .create_new(true)
        .write(true)
        .custom_flags(flags())
        .open(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|source| {
        drop(fs::remove_file(&part));
        failed("writing", path)(source)
    })
}

fn flags() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
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
        (locked(format!("sha256:{}", crate::digest(bytes))), signed)
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
        // A directory stands where the component would go.
        fs::create_dir(store.file(&policy)).unwrap();
        let mut lock = Lock::default();
        lock.put(policy.clone());
        assert!(writing.commit(&lock, &[(&policy, &signed)]).is_err());
        assert!(!store.lock_file().exists());
    }

    #[test]
    fn pipes_and_large_files_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert!(matches!(read(&pipe, 1), Err(StoreError::Io { .. })));
        assert!(matches!(read(Path::new("/dev/zero"), 1), Err(StoreError::Io { .. })));
        let large = directory.path().join("large");
        fs::write(&large, "xx").unwrap();
        assert!(matches!(read(&large, 1), Err(StoreError::TooLarge { .. })));
    }
}
