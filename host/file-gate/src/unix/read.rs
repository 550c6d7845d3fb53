//! Reads whole files.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use portcullis_decision::request::PathKind;
use rustix::fs::OFlags;

use crate::FileError;
use crate::operation::{FileContent, Limits};
use crate::system::kernel::{self, Descriptors, Handle, Status, failure};
use crate::system::located::Located;

/// Reads the located file.
pub(crate) fn whole(
    descriptors: &Descriptors,
    located: &Located,
    limits: Limits,
) -> Result<FileContent, FileError> {
    let Some(file) = located.file() else {
        return Err(FileError::NotFound { path: located.text.clone() });
    };
    require_file(located, file)?;
    let failed = |errno| failure("read", &located.canonical, errno);
    let file = descriptors.reopen(file, OFlags::RDONLY).map_err(failed)?;
    // Taken before the content is read, so that a change during the read is noticed later.
    let identity = Status::read(&file).map_err(failed)?.identity;
    let bytes = content(located, file, identity.size, limits.bytes)?;
    Ok(FileContent { bytes, identity })
}

/// Fails with a specific error if it is not a regular file.
pub(crate) fn require_file(located: &Located, file: &Handle) -> Result<(), FileError> {
    let path = || located.text.clone();
    match located.kind {
        PathKind::File => {}
        PathKind::Directory => return Err(FileError::IsDirectory { path: path() }),
        PathKind::Missing => return Err(FileError::NotFound { path: path() }),
        PathKind::Symlink | PathKind::Other => return Err(FileError::NotAFile { path: path() }),
    }
    require_ordinary(located, file)
}

/// Fails if the file is an interface of the kernel.
pub(crate) fn require_ordinary(located: &Located, file: &Handle) -> Result<(), FileError> {
    if located.on_disk {
        return Ok(());
    }
    match kernel::is_kernel_interface(file.volume()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(FileError::Special { path: located.text.clone() }),
        Err(errno) => Err(failure("look at", &located.canonical, errno)),
    }
}

fn content(located: &Located, file: OwnedFd, size: u64, limit: u64) -> Result<Vec<u8>, FileError> {
    let too_large = || FileError::TooLarge { path: located.text.clone(), limit };
    if size > limit {
        return Err(too_large());
    }
    // One byte more than expected, so that the end is detected without another call; never more than the limit, even if
    // the file grows.
    let capacity = usize::try_from(size.saturating_add(1)).map_err(|_| too_large())?;
    let mut bytes = Vec::with_capacity(capacity);
    let read = File::from(file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Io { doing: "read", path: located.text.clone(), source })?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) { Ok(bytes) } else { Err(too_large()) }
}
