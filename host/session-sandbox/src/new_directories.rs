//! Directories outside the project that a command is going to create.
//!
//! A command sees only directories that exist when it starts. So the host creates such a directory itself, after the
//! user has allowed it, and removes it again if it is still empty after the command.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use portcullis_file_gate::HostDirectory;

/// A directory that was made for a command.
#[derive(Debug)]
pub struct NewDirectory {
    holder: HostDirectory,
    name: OsString,
}

impl NewDirectory {
    /// Makes it. `path` is canonical.
    ///
    /// # Errors
    /// The kernel's, as when the name exists, or a directory above it does not.
    pub fn make(path: &Path) -> io::Result<Self> {
        let (Some(holder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let holder = HostDirectory::open(holder).ok_or(io::ErrorKind::NotFound)?;
        holder.make_directory(name)?;
        Ok(Self { holder, name: name.to_owned() })
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // One that is not empty stays.
        drop(self.holder.remove_directory(&self.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_empty_is_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        let [empty, used] = ["empty", "used"].map(|name| top.join(name));
        let made = [&empty, &used].map(|path| NewDirectory::make(path).unwrap());
        std::fs::write(used.join("f"), "x").unwrap();
        assert!(NewDirectory::make(&used).is_err());
        drop(made);
        assert!(!empty.exists() && used.join("f").exists());
        std::os::unix::fs::symlink(&used, top.join("link")).unwrap();
        assert!(NewDirectory::make(&top.join("link/new")).is_err(), "a link above it");
    }
}
