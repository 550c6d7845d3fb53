//! Files that root creates for other users.

use std::os::fd::AsFd;

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

use super::status::Status;
use super::system::give;

/// Gives a file that root has just created to the owner of its directory.
///
/// Root acts there for that user, who could not access the file otherwise.
pub(crate) fn hand_over(made: impl AsFd, directory: impl AsFd) -> Result<(), Errno> {
    let (own, around) = (Status::read(&made)?, Status::read(directory)?);
    if own.owner != ROOT || around.owner == ROOT {
        return Ok(());
    }
    give(made, Uid::from_raw(around.owner), Gid::from_raw(around.group))
}

const ROOT: u32 = 0;
