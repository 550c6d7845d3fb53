//! A `/dev` with the devices that every program expects, and with terminals and shared memory of its own.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use portcullis_sandbox::Stage;
use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat, symlinkat};
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

/// Copies of the host's devices.
pub(super) struct Prepared(Vec<Device>);

/// A copy of a device, or of a directory of devices.
struct Device {
    path: PathBuf,
    copy: OwnedFd,
    is_directory: bool,
}

/// Copies the devices that every program expects, and the `given` ones. Skips those that the host does not have, and
/// files that are not devices.
pub(super) fn prepare(given: &[PathBuf]) -> Result<Prepared, Failure> {
    let mut nodes = Vec::new();
    // Devices on a read-only mount can be used, but root cannot change their modes, which are the machine's.
    let attributes = Attributes::NO_SETUID | Attributes::NO_EXEC | Attributes::READ_ONLY;
    for path in NODES.map(|name| Path::new(DEV).join(name)).iter().chain(given) {
        match open(path, OFlags::empty()) {
            Ok(node) => {
                let status = fstat(&node).during_at(Stage::OpenPlace, path)?;
                let kind = FileType::from_raw_mode(status.st_mode);
                let is_directory = kind == FileType::Directory;
                if !is_directory && kind != FileType::CharacterDevice {
                    continue;
                }
                let copy = copy_opened(&node).during_at(Stage::CopyMounts, path)?;
                add_attributes(&copy, Reach::Tree, attributes).during_at(Stage::MountAttributes, path)?;
                nodes.push(Device { path: path.clone(), copy, is_directory });
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).during_at(Stage::OpenPlace, path),
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
    for Device { path, copy, .. } in &nodes.0 {
        attach(copy, path).during_at(Stage::AttachMount, path)?;
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
    for device in &nodes.0 {
        make_mount_point(&root, device)?;
    }
    for name in ["pts", "shm"] {
        mkdirat(&root, name, Mode::from_raw_mode(0o755))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &root, name)?;
    }
    Ok(root)
}

/// Makes a name to mount a device on, and the directories around it.
fn make_mount_point(root: &OwnedFd, device: &Device) -> io::Result<()> {
    let name = device.path.strip_prefix(DEV).map_err(|_| Errno::INVAL)?;
    let mut around: Vec<&Path> =
        name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    around.reverse();
    if device.is_directory {
        around.push(name);
    }
    for directory in around {
        match mkdirat(root, directory, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    if !device.is_directory {
        drop(openat(root, name, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR)?);
    }
    Ok(())
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
