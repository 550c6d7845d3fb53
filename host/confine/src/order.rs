//! A lock that puts changes of names into one order, across threads and processes.
//!
//! A change of a name is judged first and made then. In between nobody else may rename a directory on the way to it,
//! nor make another part of a repository beside it: each of two changes would be judged without the other. So whoever
//! changes a name takes this lock before the judgement and keeps it until the change is made: shared for a change that
//! stands for itself, alone for one on which other judgements depend. The brokers of all sandboxes and the host, for
//! its tools, take the same lock.
//!
//! Two files that commands cannot reach are locked with flock(2), so the kernel lets go of the lock of a process that
//! dies. The second file is a queue: flock(2) lets readers overtake a waiting writer for ever.
//!
//! A third file is a record of what brokers have to know of one another's changes. It is begun anew when nobody uses it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::RwLockReadGuard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

/// The order in which names are changed, shared by all sandboxes and tools that open the same directory.
#[derive(Debug, Clone)]
pub struct NameOrder(Arc<Order>);

#[derive(Debug)]
struct Order {
    lock: Lock,
    /// Locked by everybody who uses it, together.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "kept open for its lock"))]
    record: File,
    /// The number of this session in the record.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no brokers"))]
    session: u64,
}

/// What a broker is given of an order.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct OrderFiles {
    pub(crate) names: std::os::fd::OwnedFd,
    pub(crate) queue: std::os::fd::OwnedFd,
    pub(crate) record: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl OrderFiles {
    /// The files as they are sent.
    pub(crate) fn into_list(self) -> [std::os::fd::OwnedFd; 3] {
        [self.names, self.queue, self.record]
    }

    /// The files as they were sent; none where none were.
    pub(crate) fn from_list(given: Vec<std::os::fd::OwnedFd>) -> io::Result<Option<Self>> {
        if given.is_empty() {
            return Ok(None);
        }
        let wrong_count = |_| io::ErrorKind::InvalidData;
        let [names, queue, record] = <[_; 3]>::try_from(given).map_err(wrong_count)?;
        Ok(Some(Self { names, queue, record }))
    }
}

/// What a session writes into the record when it begins: an entry of no length.
pub(crate) const BEGUN: [u8; 4] = [0; 4];

/// Names stay as they are until this is dropped.
#[derive(Debug)]
pub struct Exclusive<'a> {
    _held: Alone<'a>,
}

impl NameOrder {
    /// Opens the order that is kept in `directory`, which is made if it is not there.
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
        Ok(Self(Arc::new(Order { lock, record, session })))
    }

    /// Waits until nobody changes a name, and keeps it so.
    ///
    /// # Errors
    /// The system's; nothing may be changed then.
    pub fn exclusive(&self) -> io::Result<Exclusive<'_>> {
        Ok(Exclusive { _held: self.0.lock.alone()? })
    }

    /// Returns the files, opened once more: what is locked through them excludes this process as well.
    #[cfg(target_os = "linux")]
    pub(crate) fn files(&self) -> io::Result<OrderFiles> {
        use std::os::fd::AsRawFd as _;
        let Some(LockFiles { names, queue }) = &self.0.lock.files else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        // By its entry in /proc it is the same file, whatever its name means by now.
        let again = |file: &File, append: bool| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            OpenOptions::new().read(true).write(true).append(append).open(path)
        };
        let (names, queue) = (again(names, false)?.into(), again(&queue, false)?.into());
        Ok(OrderFiles { names, queue, record: again(&self.0.record, true)?.into() })
    }

    /// The number of this session in the record.
    #[cfg(target_os = "linux")]
    pub(crate) fn session(&self) -> u64 {
        self.0.session
    }
}

/// Takes a number for a session in the record, which is begun anew if nobody else uses it. The caller has the lock.
fn begin_session(record: &File) -> io::Result<u64> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    if record.try_lock().is_ok() {
        record.set_len(0)?;
    }
    // Nobody takes it alone meanwhile, who would need the lock on names.
    retry(|| record.lock_shared())?;
    let mut end = record;
    let session = end.seek(SeekFrom::End(0))?;
    end.write_all(&BEGUN)?;
    Ok(session)
}

impl PartialEq for NameOrder {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for NameOrder {}

/// The lock as one process has it.
#[derive(Debug)]
pub(crate) struct Lock {
    threads: RwLock<()>,
    /// None where no other process takes part.
    files: Option<LockFiles>,
    /// How many threads share the lock of the file.
    #[cfg(target_os = "linux")]
    sharing: Mutex<usize>,
}

#[derive(Debug)]
struct LockFiles {
    names: File,
    /// Locked by whoever is about to lock `names`; also a lock for the threads of this process.
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

/// The first place in the queue.
#[derive(Debug)]
struct Queued<'a>(MutexGuard<'a, File>);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        release(&self.0);
    }
}

/// The lock, shared with others who change names.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    lock: &'a Lock,
    _threads: RwLockReadGuard<'a, ()>,
}

/// The lock, with nobody else.
#[derive(Debug)]
pub(crate) struct Alone<'a> {
    // In the order in which they are let go of: readers find `names` free when they are first in the queue.
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

    /// The lock whose files another process has opened for this one.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(files: Option<[std::os::fd::OwnedFd; 2]>) -> Self {
        Self::new(files.map(|[names, queue]| LockFiles::new(names.into(), queue.into())))
    }

    /// Takes the lock together with others.
    #[cfg(target_os = "linux")]
    pub(crate) fn shared(&self) -> io::Result<Shared<'_>> {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files {
            // A writer of another process keeps its place until it is done, so nothing below waits. The count is not
            // locked while this waits: who lets go of the lock needs it.
            let _queued = files.stand_in_queue()?;
            let mut sharing = self.sharing();
            if *sharing == 0 {
                retry(|| files.names.lock_shared())?;
            }
            *sharing += 1;
        }
        Ok(Shared { lock: self, _threads: threads })
    }

    /// Takes the lock alone.
    pub(crate) fn alone(&self) -> io::Result<Alone<'_>> {
        let threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
        let queued = self.files.as_ref().map(LockFiles::stand_in_queue).transpose()?;
        let names = match &self.files {
            None => None,
            Some(files) => {
                retry(|| files.names.lock())?;
                Some(Locked(&files.names))
            }
        };
        Ok(Alone { _names: names, _queued: queued, _threads: threads })
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

/// flock(2) takes a lock away without fail; were it to fail, all would wait for ever, and be refused what they want.
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
