//! Lists a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use portcullis_decision::request::PathKind;
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::FileError;
use crate::operation::{Entry, Limits, Listing};
use crate::system::kernel::{self, Descriptors, Status, failure};
use crate::system::located::{Located, Target};
use crate::system::read::require_ordinary;

/// Lists the located directory.
pub(crate) fn directory(
    descriptors: &Descriptors,
    located: &Located,
    limits: Limits,
    keep: &mut dyn FnMut(&Path, PathKind) -> bool,
) -> Result<Listing, FileError> {
    let Target::Opened(opened) = &located.target else {
        return Err(FileError::NotADirectory { path: located.text.clone() });
    };
    if located.kind != PathKind::Directory {
        return Err(FileError::NotADirectory { path: located.text.clone() });
    }
    require_ordinary(located, opened)?;
    let failed = |errno| failure("list", &located.canonical, errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let directory = descriptors.reopen(opened, flags).map_err(failed)?;
    let mut listing = Listing::default();
    for name in Dir::read_from(&directory).map_err(failed)? {
        let name = name.map_err(failed)?;
        let file_name = OsStr::from_bytes(name.file_name().to_bytes());
        if file_name == "." || file_name == ".." {
            continue;
        }
        let mut kind = kernel::kind(name.file_type());
        if name.file_type() == FileType::Unknown {
            // Some file systems do not report the type.
            kind = match Status::of_name(&directory, file_name) {
                Ok(status) => status.kind,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(failed(errno)),
            };
        }
        if !keep(&located.canonical.join(file_name), kind) {
            continue;
        }
        if listing.entries.len() == limits.entries {
            listing.truncated = true;
            break;
        }
        listing.entries.push(Entry { name: file_name.to_owned(), kind });
    }
    Ok(listing)
}
