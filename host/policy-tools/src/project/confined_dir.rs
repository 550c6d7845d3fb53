//! The folder of a policy, opened as a directory handle.
//!
//! An agent may have written all files in it, so reads do not leave the enclosing repository, and writes do not follow
//! links.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use portcullis_bootstrap::process_env::ProcessEnv;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
#[cfg(target_os = "linux")]
use rustix::fs::{ResolveFlags, openat2};
use rustix::io::Errno;

/// Size limit of a text file in a pack.
pub(crate) const TEXT_MAX: u64 = 512 << 10;
/// Number of retries of openat2: it fails with EAGAIN if a rename races with a `..` in the path.
#[cfg(target_os = "linux")]
const TRIES: usize = 16;

/// The folder of a policy, and the repository around it.
#[derive(Debug)]
pub(crate) struct ConfinedDir {
    /// The repository around the folder, or the folder itself.
    top: PathBuf,
    held: OwnedFd,
    /// The folder's path inside it.
    folder: PathBuf,
}

impl ConfinedDir {
    /// Opens a folder.
    pub(crate) fn around(folder: &Path) -> anyhow::Result<Self> {
        let context = || format!("opening the folder `{}`", folder.display());
        let canonical = folder.canonicalize().with_context(context)?;
        let homes = ProcessEnv::read()?.homes();
        let homes: Vec<PathBuf> = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
        let holds_home = |place: &Path| homes.iter().any(|home| home.starts_with(place));
        let mut around = canonical.ancestors().take_while(|place| !holds_home(place));
        let repository = around.find(|place| place.join(".git").symlink_metadata().is_ok());
        let top = repository.unwrap_or(&canonical).to_owned();
        let held =
            openat(CWD, &top, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).with_context(context)?;
        let folder = canonical.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        Ok(Self { top, held, folder })
    }

    /// Reads a text file, or returns `None` if it does not exist.
    pub(crate) fn text_if_there(&self, name: &Path) -> anyhow::Result<Option<String>> {
        let context = || format!("reading `{}`", self.shown(name).display());
        let file = match self.open(name, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened.map_err(|error| self.explain(error)).with_context(context)?),
        };
        ensure!(file.metadata().with_context(context)?.is_file(), "{}: it is no plain file", context());
        let mut bytes = Vec::new();
        let _size = file.take(TEXT_MAX + 1).read_to_end(&mut bytes).with_context(context)?;
        if bytes.len() as u64 > TEXT_MAX {
            bail!("`{}` is larger than 512 KiB", self.shown(name).display());
        }
        String::from_utf8(bytes).with_context(context).map(Some)
    }

    /// Reads a text file.
    pub(crate) fn text(&self, name: &Path) -> anyhow::Result<String> {
        let missing = || format!("reading `{}`: there is no such file", self.shown(name).display());
        self.text_if_there(name)?.with_context(missing)
    }

    /// Returns the names in a folder, sorted.
    pub(crate) fn names(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        let context = || format!("listing `{}`", self.shown(folder).display());
        let opened = self
            .open(folder, OFlags::DIRECTORY)
            .map_err(|error| self.explain(error))
            .with_context(context)?;
        let mut names = Vec::new();
        for entry in Dir::new(opened).with_context(context)? {
            let name = entry.with_context(context)?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Checks that a folder lies in the repository, and returns its path.
    pub(crate) fn inside(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let opened = self.open(folder, OFlags::DIRECTORY).map_err(|error| self.explain(error));
        let _held =
            opened.with_context(|| format!("opening the folder `{}`", self.shown(folder).display()))?;
        Ok(self.shown(folder))
    }

    /// Creates a file unless the name exists, even as a dangling link.
    pub(crate) fn add(&self, folder: &Path, name: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let context = || format!("writing `{}`", self.shown(folder).join(name).display());
        let (holder, last) = self.make(folder, name).with_context(context)?;
        match create(&holder, &last, bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done.with_context(context),
        }
    }

    /// Replaces a file atomically.
    pub(crate) fn replace(&self, name: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let context = || format!("writing `{}`", self.shown(name).display());
        let (holder, last) = self.make(Path::new(""), name).with_context(context)?;
        let part = last.with_extension("wasm.part");
        let _rest_of_a_build_that_was_ended = unlinkat(&holder, &part, AtFlags::empty());
        let written =
            create(&holder, &part, bytes).and_then(|()| Ok(renameat(&holder, &part, &holder, &last)?));
        if written.is_err() {
            let _nothing_more_to_do = unlinkat(&holder, &part, AtFlags::empty());
        }
        written.with_context(context)
    }

    /// Creates the folders of `name` below `folder` without following links.
    ///
    /// Returns the last folder, and the name in it.
    fn make(&self, folder: &Path, name: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let mut holder = self.open(folder, OFlags::DIRECTORY)?;
        let last = name.file_name().map(PathBuf::from).ok_or(Errno::INVAL)?;
        for component in name.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = component else { return Err(Errno::INVAL.into()) };
            match mkdirat(&holder, part, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            holder = openat(&holder, part, how, Mode::empty())?;
        }
        Ok((holder, last))
    }

    fn open(&self, name: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
        let path = self.folder.join(name);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let how = how | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        beneath(&self.held, path, how)
    }

    fn explain(&self, error: Errno) -> anyhow::Error {
        if error == Errno::XDEV {
            return anyhow::anyhow!("it leads out of `{}`, whose files these are", self.top.display());
        }
        io::Error::from(error).into()
    }

    fn shown(&self, name: &Path) -> PathBuf {
        self.top.join(&self.folder).join(name)
    }
}

fn create(holder: &OwnedFd, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let how = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    File::from(openat(holder, name, how, mode)?).write_all(bytes)
}

/// Opens a path below a directory. Links inside are followed, but not out of it.
#[cfg(target_os = "linux")]
fn beneath(top: &OwnedFd, path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        opened = openat2(top, path, how, Mode::empty(), within);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    opened
}

/// Opens a path name by name, without following links, on systems without such a system call.
#[cfg(not(target_os = "linux"))]
fn beneath(top: &OwnedFd, path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut holder = openat(top, ".", step, Mode::empty())?;
    let mut names = path.components().filter(|part| *part != Component::CurDir).peekable();
    while let Some(part) = names.next() {
        let Component::Normal(name) = part else { return Err(Errno::XDEV) };
        let is_last = names.peek().is_none();
        holder = openat(&holder, name, if is_last { how | OFlags::NOFOLLOW } else { step }, Mode::empty())?;
    }
    Ok(holder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns a repository with a policy in it, and a secret beside it.
    fn place() -> (tempfile::TempDir, ConfinedDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("r/policy")).expect("made");
        fs::create_dir_all(at("r/.git")).expect("made");
        fs::write(at("secret"), "hunter2").expect("written");
        fs::write(at("r/shared.json"), "{}").expect("written");
        let bounds = ConfinedDir::around(&at("r/policy")).expect("opened");
        (directory, bounds)
    }

    #[test]
    fn nothing_outside_the_repository_is_read() {
        let (directory, bounds) = place();
        let policy = directory.path().join("r/policy");
        let secret = directory.path().join("secret");
        symlink(&secret, policy.join("README.md")).expect("a link");
        symlink("../../secret", policy.join("LICENSE")).expect("a link");
        symlink("../..", policy.join("out")).expect("a link");
        for name in ["README.md", "LICENSE", "out/secret", "../../secret", "/etc/hostname"] {
            let refused = bounds.text_if_there(Path::new(name)).expect_err(name);
            assert!(format!("{refused:#}").contains("leads out of"), "{name}: {refused:#}");
        }
        assert!(bounds.names(Path::new("out")).is_err() && bounds.inside(Path::new("../..")).is_err());
        // The controls: files inside can be read, also through a link, and beside the folder.
        symlink("../shared.json", policy.join("schema.json")).expect("a link");
        assert_eq!(bounds.text(Path::new("schema.json")).expect("read"), "{}");
        assert_eq!(bounds.text(Path::new("../shared.json")).expect("read"), "{}");
        assert_eq!(bounds.text_if_there(Path::new("none")).expect("looked"), None);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (directory, bounds) = place();
        let at = |path: &str| directory.path().join(path);
        let secret = || fs::read_to_string(at("secret")).expect("read");
        fs::create_dir(at("r/policy/build")).expect("made");
        for name in ["x.wasm", "x.wasm.part"] {
            symlink(at("secret"), at("r/policy/build").join(name)).expect("a link");
        }
        bounds.replace(Path::new("build/x.wasm"), b"new").expect("written");
        assert_eq!(secret(), "hunter2");
        assert_eq!(fs::read_to_string(at("r/policy/build/x.wasm")).expect("read"), "new");

        symlink(at("new"), at("r/policy/helper")).expect("a link");
        bounds.add(Path::new(""), Path::new("helper"), b"text").expect("left");
        bounds.add(Path::new(""), Path::new("own/helper"), b"text").expect("written");
        assert!(!at("new").exists() && at("r/policy/own/helper").exists());

        symlink(directory.path(), at("r/policy/away")).expect("a link");
        assert!(bounds.replace(Path::new("away/secret"), b"new").is_err());
        assert!(bounds.add(Path::new("away"), Path::new("other"), b"new").is_err());
        assert!(bounds.add(Path::new(""), Path::new("away/other"), b"new").is_err());
        assert_eq!((secret().as_str(), at("other").exists()), ("hunter2", false));
    }
}
