//! A `/dev` with the devices that every program expects, and with terminals and shared memory of its own.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use portcullis_sandbox::Stage;
use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::io::{self, Errno};
use rustix::mount::MountAttrFlags;

use super::failure::{During, Failure};
use super::mount_calls::{attach, copy_opened, new_filesystem, open};

const DEV: &str = "/dev";
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Copies of the host's devices, each with its path.
pub(super) struct Prepared(Vec<(PathBuf, OwnedFd)>);

/// Copies the devices; one that the host does not have is left out.
pub(super) fn prepare() -> Result<Prepared, Failure> {
    let mut nodes = Vec::new();
    for path in NODES.map(|name| Path::new(DEV).join(name)) {
        match open(&path, OFlags::empty()) {
            Ok(node) => {
                let copy = copy_opened(&node).during_at(Stage::CopyMounts, &path)?;
                add_attributes(&copy, Reach::One, Attributes::NO_SETUID | Attributes::NO_EXEC)
                    .during_at(Stage::MountAttributes, &path)?;
                nodes.push((path, copy));
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).during_at(Stage::OpenPlace, &path),
        }
    }
    Ok(Prepared(nodes))
}

/// Mounts the new `/dev` with its devices and file systems.
///
/// Shared memory counts as memory but belongs to no process, so it gets the same limit by its size.
pub(super) fn enforce(nodes: &Prepared, memory_bytes: Option<u64>) -> Result<(), Failure> {
    let dev = Path::new(DEV);
    let no_programs = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = directory(nodes, no_programs).during_at(Stage::NewFilesystem, dev)?;
    attach(&root, dev).during_at(Stage::AttachMount, dev)?;
    for (path, node) in &nodes.0 {
        attach(node, path).during_at(Stage::AttachMount, path)?;
    }
    let terminals = [("ptmxmode", "0666"), ("mode", "0620")];
    mount("devpts", &terminals, no_programs, &dev.join("pts"))?;
    let shared = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let size = memory_bytes.map_or_else(|| "50%".to_owned(), |bytes| bytes.to_string());
    mount("tmpfs", &[("mode", "1777"), ("size", &size)], shared, &dev.join("shm"))?;
    add_attributes(&root, Reach::One, Attributes::READ_ONLY).during_at(Stage::MountAttributes, dev)
}

/// Creates the directory with mode 0755: with 1777 the kernel would refuse `> /dev/null` to ordinary users
/// (fs.protected_regular).
fn directory(nodes: &Prepared, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let root = new_filesystem("tmpfs", &[("mode", "0755"), ("size", "64k")], attributes)?;
    for name in nodes.0.iter().filter_map(|(path, _)| path.file_name()) {
        drop(openat(&root, name, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR)?);
    }
    for name in ["pts", "shm"] {
        mkdirat(&root, name, Mode::from_raw_mode(0o755))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &root, name)?;
    }
    Ok(root)
}

fn mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
    target: &Path,
) -> Result<(), Failure> {
    let filesystem = new_filesystem(kind, options, attributes).during_at(Stage::NewFilesystem, target)?;
    attach(&filesystem, target).during_at(Stage::AttachMount, target)
}
