//! A lock that serializes changes of names across threads and processes.
//!
//! A change of a name is first judged and then made. In between, no other process may rename a directory on the way to
//! it, nor create another part of a repository beside it: each of two such changes would be judged without the other.
//! So a process that changes a name takes this lock before the judgement and keeps it until the change is made: shared
//! for an independent change, exclusive for one that other judgements depend on. The brokers of all sandboxes and the
//! host, for its tools, take the same lock.
//!
//! Two files that commands cannot reach are locked with flock(2), so the kernel releases the lock of a process that
//! dies. The second file is a queue, because flock(2) lets readers overtake a waiting writer forever.
//!
//! A third file records what brokers have to know of one another's changes. It is truncated when no session uses it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::RwLockReadGuard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

/// The order in which names are changed, shared by all sandboxes and tools that open the same directory.
#[derive(Debug, Clone)]
pub struct NameOrder(
    Arc<Order>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no brokers"))]
    Option<Arc<[File; 2]>>,
);

#[derive(Debug)]
struct Order {
    lock: Lock,
    /// Every session that uses the record holds a shared lock on it.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "kept open for its lock"))]
    record: File,
    /// The number of this session in the record.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no brokers"))]
    session: u64,
}

/// The files of an order that a broker receives.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct OrderFiles {
    /// The lock on names.
    pub names: std::os::fd::OwnedFd,
    /// The queue before the lock.
    pub queue: std::os::fd::OwnedFd,
    /// The record of changes.
    pub record: std::os::fd::OwnedFd,
    /// What the session keeps of the files that its commands change, if it does.
    pub changes: Option<ChangesFiles>,
}

/// The directories of a record of changes.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct ChangesFiles {
    /// The directory of the record.
    pub store: std::os::fd::OwnedFd,
    /// The project, as it is outside of the sandbox.
    pub project: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl OrderFiles {
    /// Returns the files in the order in which they are sent.
    pub fn into_list(self) -> Vec<std::os::fd::OwnedFd> {
        let changes = self.changes.into_iter().flat_map(|changes| [changes.store, changes.project]);
        [self.names, self.queue, self.record].into_iter().chain(changes).collect()
    }

    /// Returns the files from the order in which they are sent; `None` if no files were sent.
    pub fn from_list(given: Vec<std::os::fd::OwnedFd>) -> io::Result<Option<Self>> {
        if given.is_empty() {
            return Ok(None);
        }
        let mut given = given.into_iter();
        let (Some(names), Some(queue), Some(record)) = (given.next(), given.next(), given.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let changes = match (given.next(), given.next(), given.next()) {
            (None, None, None) => None,
            (Some(store), Some(project), None) => Some(ChangesFiles { store, project }),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Some(Self { names, queue, record, changes }))
    }
}

/// The entry that a session writes into the record when it starts: one of length zero.
pub const RECORD_BEGINS: [u8; 4] = [0; 4];

/// Prevents changes of names until it is dropped.
#[derive(Debug)]
pub struct Exclusive<'a> {
    _held: ExclusiveOrder<'a>,
}

impl NameOrder {
    /// Opens the order that is kept in `directory`, and creates the directory if needed.
    ///
    /// # Errors
    /// The system's.
    pub fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let open = |name| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            options.open(directory.join(name))
        };
        let lock = Lock::new(Some(LockFiles::new(open("names.lock")?, open("names.queue")?)));
        let record = open("names.record")?;
        let session = {
            let _alone = lock.alone()?;
            begin_session(&record)?
        };
        Ok(Self(Arc::new(Order { lock, record, session }), None))
    }

    /// Passes the directory on to brokers in which the session keeps what its commands change, and the project's.
    #[must_use]
    pub fn keeping_changes_in(self, store: File, project: File) -> Self {
        Self(self.0, Some(Arc::new([store, project])))
    }

    /// Waits for the exclusive lock: no name changes while it is held.
    ///
    /// # Errors
    /// The system's; nothing may be changed then.
    pub fn exclusive(&self) -> io::Result<Exclusive<'_>> {
        Ok(Exclusive { _held: self.0.lock.alone()? })
    }

    /// Returns the files, opened again: locks taken through them exclude this process as well.
    #[cfg(target_os = "linux")]
    pub fn files(&self) -> io::Result<OrderFiles> {
        use std::os::fd::AsRawFd as _;
        let Some(LockFiles { names, queue }) = &self.0.lock.files else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        // The entry in /proc leads to the same file, even if its name has been replaced.
        let again = |file: &File, append: bool| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            OpenOptions::new().read(true).write(true).append(append).open(path)
        };
        let (names, queue) = (again(names, false)?.into(), again(&queue, false)?.into());
        let files = self.1.as_ref().map(|files| {
            let [store, project] = files.as_ref();
            Ok::<_, io::Error>(ChangesFiles {
                store: store.try_clone()?.into(),
                project: project.try_clone()?.into(),
            })
        });
        let changes = files.transpose()?;
        Ok(OrderFiles { names, queue, record: again(&self.0.record, true)?.into(), changes })
    }

    /// Returns the number of this session in the record.
    #[cfg(target_os = "linux")]
    pub fn session(&self) -> u64 {
        self.0.session
    }
}

/// Takes a number for a session in the record, and truncates the record if no other session uses it. The caller holds
/// the lock.
fn begin_session(record: &File) -> io::Result<u64> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    if record.try_lock().is_ok() {
        record.set_len(0)?;
    }
    // No other process locks it exclusively meanwhile: that requires the lock on names.
    retry(|| record.lock_shared())?;
    let mut end = record;
    let session = end.seek(SeekFrom::End(0))?;
    end.write_all(&RECORD_BEGINS)?;
    Ok(session)
}

impl PartialEq for NameOrder {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for NameOrder {}

/// The lock as one process uses it.
#[derive(Debug)]
pub struct Lock {
    threads: RwLock<()>,
    /// `None` if no other process takes part.
    files: Option<LockFiles>,
    /// The number of threads of this process that share the file lock.
    #[cfg(target_os = "linux")]
    sharing: Mutex<usize>,
}

#[derive(Debug)]
struct LockFiles {
    names: File,
    /// Locked before `names` is locked; also a lock between the threads of this process.
    queue: Mutex<File>,
}

impl LockFiles {
    fn new(names: File, queue: File) -> Self {
        Self { names, queue: Mutex::new(queue) }
    }

    fn stand_in_queue(&self) -> io::Result<Queued<'_>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        retry(|| queue.lock())?;
        Ok(Queued(queue))
    }
}

/// The first position in the queue.
#[derive(Debug)]
struct Queued<'a>(MutexGuard<'a, File>);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        release(&self.0);
    }
}

/// The lock, shared with others that change names.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Shared<'a> {
    lock: &'a Lock,
    _threads: RwLockReadGuard<'a, ()>,
}

/// The lock, held exclusively.
#[derive(Debug)]
pub struct ExclusiveOrder<'a> {
    // In drop order: readers find `names` unlocked when they reach the front of the queue.
    _names: Option<Locked<'a>>,
    _queued: Option<Queued<'a>>,
    _threads: RwLockWriteGuard<'a, ()>,
}

#[derive(Debug)]
struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        release(self.0);
    }
}

impl Lock {
    fn new(files: Option<LockFiles>) -> Self {
        Self {
            threads: RwLock::new(()),
            files,
            #[cfg(target_os = "linux")]
            sharing: Mutex::new(0),
        }
    }

    /// Returns the lock whose files another process has opened for this one.
    #[cfg(target_os = "linux")]
    pub fn from_files(files: Option<[std::os::fd::OwnedFd; 2]>) -> Self {
        Self::new(files.map(|[names, queue]| LockFiles::new(names.into(), queue.into())))
    }

    /// Takes the lock shared.
    #[cfg(target_os = "linux")]
    pub fn shared(&self) -> io::Result<Shared<'_>> {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files {
            // A writer of another process keeps its position until it is done, so nothing below waits. The count is not
            // locked during this wait: the thread that releases the lock needs it.
            let _queued = files.stand_in_queue()?;
            let mut sharing = self.sharing();
            if *sharing == 0 {
                retry(|| files.names.lock_shared())?;
            }
            *sharing += 1;
        }
        Ok(Shared { lock: self, _threads: threads })
    }

    /// Takes the lock exclusively.
    pub fn alone(&self) -> io::Result<ExclusiveOrder<'_>> {
        let threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
        let queued = self.files.as_ref().map(LockFiles::stand_in_queue).transpose()?;
        let names = match &self.files {
            None => None,
            Some(files) => {
                retry(|| files.names.lock())?;
                Some(Locked(&files.names))
            }
        };
        Ok(ExclusiveOrder { _names: names, _queued: queued, _threads: threads })
    }

    #[cfg(target_os = "linux")]
    fn sharing(&self) -> MutexGuard<'_, usize> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Shared<'_> {
    fn drop(&mut self) {
        let Some(files) = &self.lock.files else { return };
        let mut sharing = self.lock.sharing();
        *sharing = sharing.saturating_sub(1);
        if *sharing == 0 {
            release(&files.names);
        }
    }
}

/// Unlocking with flock(2) does not fail; if it did, all others would wait forever, and their changes would be refused.
fn release(file: &File) {
    drop(file.unlock());
}

fn retry(mut lock: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}
