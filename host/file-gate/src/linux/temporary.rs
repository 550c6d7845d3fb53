//! A new file beside the one it will replace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::operation::Inode;
use crate::system::kernel::{self, Status};

/// Longest list of names and longest value of an extended attribute, see xattr(7).
const XATTR_MAX: usize = 64 * 1024;

/// How often two files are exchanged to get the right one back, when others do the same.
const EXCHANGES: usize = 16;

/// Held from an exchange to its end. Two writers of this process would otherwise take each other for strangers, and
/// exchange the same names in turns until one of them gives up.
static EXCHANGING: Mutex<()> = Mutex::new(());

/// The access control list of a file, which is also in its mode.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// A file under a name of its own, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: String,
    file: File,
    inode: Inode,
    remove: bool,
}

/// What a file has besides its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
}

impl Looks {
    /// The looks of a file whose content is replaced. Set-id bits are dropped, as the kernel does when
    /// someone else writes: nobody vouches for the new content.
    pub(crate) fn after_write(status: &Status) -> Self {
        Self { mode: status.mode & 0o1777, owner: status.owner, group: status.group }
    }
}

impl<'a> Temporary<'a> {
    /// Creates an empty file in `directory`.
    pub(crate) fn create(directory: &'a OwnedFd, mode: u32) -> Result<Self, Errno> {
        let name = random_name()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(mode))?;
        let status = Status::of(&file);
        let mut temporary = Self {
            directory,
            name,
            file: File::from(file),
            inode: Inode { device: (0, 0), number: 0 },
            remove: true,
        };
        temporary.inode = status?.identity.inode;
        Ok(temporary)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file to the owner of its directory, where root made it.
    pub(crate) fn hand_over(&self) -> Result<(), Errno> {
        kernel::hand_over(&self.file, self.directory)
    }

    pub(crate) fn status(&self) -> Result<Status, Errno> {
        Status::of(&self.file)
    }

    /// Takes over owner, mode and extended attributes of `original`.
    pub(crate) fn dress(&self, looks: Looks, original: impl AsFd) -> Result<(), Errno> {
        let now = self.status()?;
        if (now.owner, now.group) != (looks.owner, looks.group) {
            let owner = rustix::fs::Uid::from_raw(looks.owner);
            let group = rustix::fs::Gid::from_raw(looks.group);
            rustix::fs::fchown(&self.file, Some(owner), Some(group))?;
        }
        copy_attributes(original, &self.file)?;
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(looks.mode))
    }

    /// Gives the file the name `name`, which must be free.
    pub(crate) fn install(mut self, name: &OsStr) -> Result<Status, Errno> {
        self.rename(name, RenameFlags::NOREPLACE)?;
        self.remove = false;
        self.status()
    }

    /// Exchanges the names of this file and of what is called `name`, if the latter is as `is_expected`
    /// wants it; returns whether it was. What was displaced is removed.
    pub(crate) fn exchange(
        self,
        name: &OsStr,
        is_expected: impl Fn(&Status) -> bool,
    ) -> Result<Option<Status>, Errno> {
        let _alone = EXCHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        self.rename(name, RenameFlags::EXCHANGE)?;
        let displaced = Status::of_name(self.directory, self.name.as_ref());
        if displaced.as_ref().is_ok_and(&is_expected) {
            return self.status().map(Some);
        }
        self.put_back(name)?;
        Ok(None)
    }

    /// Undoes an exchange. When someone put a third file in our place meanwhile, it would come back here;
    /// then it is exchanged again, so that the newest file of others stays and only ours is removed.
    fn put_back(mut self, name: &OsStr) -> Result<(), Errno> {
        // Until our own file is back, the temporary name is someone else's only one.
        self.remove = false;
        for _ in 0..EXCHANGES {
            match self.rename(name, RenameFlags::EXCHANGE) {
                Ok(()) => {}
                // Someone removed ours: what was displaced gets its name back, if it is still free.
                Err(Errno::NOENT) => match self.rename(name, RenameFlags::NOREPLACE) {
                    Err(Errno::EXIST) => continue,
                    result => return result,
                },
                Err(errno) => return Err(errno),
            }
            let back = Status::of_name(self.directory, self.name.as_ref())?;
            if back.identity.inode == self.inode {
                self.remove = true;
                return Ok(());
            }
        }
        Err(Errno::BUSY)
    }

    fn rename(&self, name: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(self.directory, &self.name, self.directory, name, flags)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.remove {
            // Nothing can be done about a name that cannot be removed, and the result is known already.
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn random_name() -> Result<String, Errno> {
    let mut random = [0; 8];
    // So few bytes are never given in part, see getrandom(2).
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!(".portcullis-{:016x}.tmp", u64::from_ne_bytes(random)))
}

/// Copies the extended attributes that belong to a file rather than to its content.
fn copy_attributes(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    let names = match attribute_names(&from) {
        Err(Errno::NOTSUP) => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| belongs_to_file(name)) {
        let copied = value_of(&from, name)
            .and_then(|value| rustix::fs::fsetxattr(&to, name.as_slice(), &value, XattrFlags::empty()));
        match copied {
            // A label of a security module is set by the module itself.
            Err(_) if name.starts_with(b"security.") => {}
            result => result?,
        }
    }
    // A default list of the directory may have given the new file one that the old one does not have.
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

/// Capabilities and signatures vouch for the old content; `trusted.` is the file system's own.
fn belongs_to_file(name: &[u8]) -> bool {
    let vouches: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
    !vouches.contains(&name) && !name.starts_with(b"trusted.")
}
