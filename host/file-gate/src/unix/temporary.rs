//! Temporary files that replace other files or take a free name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::operation::Inode;
use crate::system::kernel::{self, Descriptors, Directory, Status};

/// The longest list of names, and the longest value, of an extended attribute, see xattr(7).
const XATTR_MAX: usize = 64 * 1024;

/// How often an exchange is repeated to restore the right file while other processes exchange it too.
const EXCHANGES: usize = 16;

/// Held during an exchange.
///
/// Otherwise two writers of this process would take each other for other processes, and exchange the same names in
/// turns until one of them gives up.
static EXCHANGING: Mutex<()> = Mutex::new(());

/// The access control list of a file; part of it is also in the mode.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// A new file that will take a name.
///
/// If the file system supports it (`O_TMPFILE`), it has no name until it is complete, so that no other process can open
/// or replace it; otherwise it has a temporary name. It is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Temporary<'a> {
    directory: &'a Directory,
    descriptors: &'a Descriptors,
    /// The temporary name. Commands cannot use such a name (see `portcullis-exec-surface`).
    name: Option<String>,
    file: File,
    inode: Inode,
}

/// The owner, group and mode of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
}

impl Looks {
    /// Returns the attributes of a file after its content is replaced.
    ///
    /// Set-id bits are dropped, as the kernel does on a write, because they do not apply to unknown content.
    pub(crate) fn after_write(status: &Status) -> Self {
        Self { mode: status.mode & 0o1777, owner: status.owner, group: status.group }
    }
}

impl<'a> Temporary<'a> {
    /// Creates an empty file in `directory`.
    pub(crate) fn create(
        directory: &'a Directory,
        descriptors: &'a Descriptors,
        mode: u32,
    ) -> Result<Self, Errno> {
        let mode = kernel::mode(mode);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let unnamed = match kernel::UNNAMED {
            Some(unnamed) => rustix::fs::openat(directory, ".", flags | unnamed, mode),
            None => Err(Errno::NOTSUP),
        };
        let (file, name) = match unnamed {
            Ok(file) => (file, None),
            // Some file systems do not support O_TMPFILE, and kernels without it try to open the directory itself.
            Err(Errno::NOTSUP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                let name = random_name()?;
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                (rustix::fs::openat(directory, &name, flags, mode)?, Some(name))
            }
            Err(errno) => return Err(errno),
        };
        let mut temporary = Self {
            directory,
            descriptors,
            name,
            file: File::from(file),
            inode: Inode { device: (0, 0), number: 0 },
        };
        temporary.inode = temporary.status()?.identity.inode;
        Ok(temporary)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file to the owner of its directory, if root created it.
    pub(crate) fn hand_over(&self) -> Result<(), Errno> {
        kernel::hand_over(&self.file, self.directory)
    }

    pub(crate) fn status(&self) -> Result<Status, Errno> {
        Status::read(&self.file)
    }

    /// Copies the extended attributes of `original` and sets the owner, group and mode in `looks`.
    pub(crate) fn dress(&self, looks: Looks, original: impl AsFd) -> Result<(), Errno> {
        let now = self.status()?;
        if (now.owner, now.group) != (looks.owner, looks.group) {
            let owner = rustix::fs::Uid::from_raw(looks.owner);
            let group = rustix::fs::Gid::from_raw(looks.group);
            rustix::fs::fchown(&self.file, Some(owner), Some(group))?;
        }
        copy_attributes(original, &self.file)?;
        rustix::fs::fchmod(&self.file, kernel::mode(looks.mode))
    }

    /// Gives the file the name `name`, which must be free.
    pub(crate) fn install(mut self, name: &OsStr) -> Result<Status, Errno> {
        match self.name.take() {
            None => self.descriptors.link(self.file.as_fd(), self.directory, name)?,
            Some(own) => {
                if let Err(errno) = self.rename(&own, name, RenameFlags::NOREPLACE) {
                    self.name = Some(own);
                    return Err(errno);
                }
                // There is no rollback: the name was free, so no file was displaced.
                if !self.is_named(name)? {
                    return Err(Errno::BUSY);
                }
            }
        }
        self.status()
    }

    /// Exchanges this file with the file called `name`, if `is_expected` accepts that one.
    ///
    /// Returns the new state, or `None` after undoing the exchange. The displaced file is removed.
    pub(crate) fn exchange(
        mut self,
        name: &OsStr,
        is_expected: impl Fn(&Status) -> bool,
    ) -> Result<Option<Status>, Errno> {
        let _alone = EXCHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        let own = match self.name.take() {
            Some(own) => own,
            None => {
                let own = random_name()?;
                self.descriptors.link(self.file.as_fd(), self.directory, own.as_ref())?;
                own
            }
        };
        self.name = Some(own.clone());
        self.rename(&own, name, RenameFlags::EXCHANGE)?;
        let displaced = Status::of_name(self.directory, own.as_ref());
        if !displaced.as_ref().is_ok_and(&is_expected) {
            self.put_back(&own, name)?;
            return Ok(None);
        }
        if self.is_named(name)? {
            return self.status().map(Some);
        }
        // Another process replaced the file under the temporary name, or the installed file right afterwards; it is
        // unknown which. The original file is restored, and the other file stays under the temporary name.
        self.name = None;
        self.rename(&own, name, RenameFlags::EXCHANGE)?;
        Ok(None)
    }

    /// Undoes an exchange.
    ///
    /// If another process has put a third file in our place meanwhile, that file would come back here. Then exchange
    /// again, so that the newest file of others stays and only ours is removed.
    fn put_back(mut self, own: &str, name: &OsStr) -> Result<(), Errno> {
        // Until our own file is back, the temporary name may be the only name of a file of others.
        self.name = None;
        for _ in 0..EXCHANGES {
            match self.rename(own, name, RenameFlags::EXCHANGE) {
                Ok(()) => {}
                // Another process removed our file: the displaced file gets its name back, if that is still free.
                Err(Errno::NOENT) => match self.rename(own, name, RenameFlags::NOREPLACE) {
                    Err(Errno::EXIST) => continue,
                    result => return result,
                },
                Err(errno) => return Err(errno),
            }
            if self.is_named(own.as_ref())? {
                self.name = Some(own.to_owned());
                return Ok(());
            }
        }
        Err(Errno::BUSY)
    }

    /// Returns true if `name` is this file.
    fn is_named(&self, name: &OsStr) -> Result<bool, Errno> {
        match Status::of_name(self.directory, name) {
            Ok(status) => Ok(status.identity.inode == self.inode),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn rename(&self, own: &str, name: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(self.directory, own, self.directory, name, flags)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // A name that cannot be removed stays; the result of the operation is already known.
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

fn random_name() -> Result<String, Errno> {
    Ok(format!(".portcullis-{:016x}.tmp", kernel::random()?))
}

/// Copies the extended attributes that belong to the file rather than to its content.
fn copy_attributes(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    let names = match attribute_names(&from) {
        Err(Errno::NOTSUP) => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| belongs_to_file(name)) {
        let copied = value_of(&from, name)
            .and_then(|value| rustix::fs::fsetxattr(&to, name.as_slice(), &value, XattrFlags::empty()));
        match copied {
            // A security module sets its own labels.
            Err(_) if name.starts_with(b"security.") => {}
            result => result?,
        }
    }
    // A default ACL of the directory may have given the new file an ACL that the old one does not have.
    if !names.iter().any(|name| name == ACCESS_LIST.as_bytes()) {
        match rustix::fs::fremovexattr(&to, ACCESS_LIST) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn attribute_names(file: impl AsFd) -> Result<Vec<Vec<u8>>, Errno> {
    if rustix::fs::flistxattr_query(&file)? == 0 {
        return Ok(Vec::new());
    }
    let mut list = vec![0; XATTR_MAX];
    let length = rustix::fs::flistxattr(&file, list.as_mut_slice())?;
    list.truncate(length);
    Ok(list.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
}

fn value_of(file: impl AsFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; XATTR_MAX];
    let length = rustix::fs::fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}

/// Returns true for attributes that survive a change of content.
///
/// Capabilities and signatures apply only to the old content; `trusted.` belongs to the file system itself.
fn belongs_to_file(name: &[u8]) -> bool {
    let vouches: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
    !vouches.contains(&name) && !name.starts_with(b"trusted.")
}
