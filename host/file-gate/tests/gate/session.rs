//! A test directory with a sandbox around it, made of mounts only.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use portcullis_decision::request::FileOperation;
use portcullis_file_gate::{
    FileContent, Gate, Limits, Purpose, RootView, View, Views, WriteOptions, Written,
};
use rustix::fs::OFlags;

use crate::kit::{self, Failure, TestDir, writing};
use portcullis_each_user::cannot_run;

/// A script that makes the mounts of the sandbox; `$1` is the test directory.
///
/// It hides `secret` and `p/masked`, makes `readonly` read-only, mounts another file on `p/bound` and mounts `temp` on
/// `/tmp`.
const MOUNTS: &str = r#"
set -e
mount -t tmpfs -o mode=755,ro tmpfs "$1/secret"
mount --bind "$1/empty" "$1/p/masked"
mount --bind "$1/readonly" "$1/readonly"
mount -o remount,bind,ro "$1/readonly"
mount --bind "$1/other" "$1/p/bound"
mount --bind "$1/temp" /tmp
echo ready
exec cat
"#;

/// A process with its own mounts, and a handle to its root.
pub(crate) struct MountProcess {
    child: Mutex<Child>,
    pub(crate) root: File,
}

/// The root handle that the gate gets.
struct KeptRoot(Arc<MountProcess>);

impl RootView for KeptRoot {
    fn root(&self) -> io::Result<BorrowedFd<'_>> {
        match self.0.child.lock().expect("not poisoned").try_wait()? {
            None => Ok(self.0.root.as_fd()),
            Some(status) => Err(io::Error::other(format!("the keeper ended: {status}"))),
        }
    }
}

impl MountProcess {
    pub(crate) fn end(&self) {
        let mut child = self.child.lock().expect("not poisoned");
        drop(child.kill());
        drop(child.wait());
    }
}

impl Drop for MountProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// A test directory with a sandbox around it.
pub(crate) struct Session {
    pub(crate) place: TestDir,
    pub(crate) keeper: Arc<MountProcess>,
    pub(crate) gate: Gate,
}

impl Session {
    /// Starts a session; returns `None` if the system does not allow mounts.
    pub(crate) fn start() -> Option<Self> {
        let place = TestDir::new();
        for directory in ["readonly", "temp"] {
            fs::create_dir(place.path(directory)).expect("a directory");
        }
        for file in ["p/masked", "p/bound", "p/f", "readonly/f", "other"] {
            place.put(file, file);
        }
        place.put("empty", "");
        fs::set_permissions(place.path("empty"), Permissions::from_mode(0o000)).expect("set");
        let keeper = Arc::new(keeper(&place.path(""))?);
        let root = Box::new(KeptRoot(Arc::clone(&keeper)));
        let views = Views::Session { root, is_own: Box::new(|path| path.starts_with("/tmp")) };
        let gate = Gate::new(views).expect("a gate");
        Some(Self { place, keeper, gate })
    }

    pub(crate) fn read(&self, path: &Path) -> Result<FileContent, Failure> {
        let located = self.gate.locate(path, Purpose::Existing)?;
        assert_eq!(located.view(), View::Session);
        let permit = kit::permit_below(Path::new("/"), &located, FileOperation::Read).expect("allowed");
        Ok(self.gate.read(located, permit, Limits::default())?)
    }

    pub(crate) fn write(&self, path: &Path, content: &str) -> Result<Written, Failure> {
        let located = self.gate.locate(path, Purpose::ForWriting)?;
        let permit = kit::permit_below(Path::new("/"), &located, writing(content)).expect("allowed");
        Ok(self.gate.write(located, permit, content.as_bytes(), WriteOptions::default())?)
    }
}

fn keeper(place: &Path) -> Option<MountProcess> {
    let arguments: &[&str] =
        if kit::is_root() { &["--mount"] } else { &["--user", "--map-root-user", "--mount"] };
    let child = Command::new("unshare")
        .args(arguments)
        .args(["sh", "-c", MOUNTS, "sh"])
        .arg(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            cannot_run(&format!("the program unshare ({error})"));
            return None;
        }
    };
    let mut ready = [0; 6];
    let output = child.stdout.as_mut().expect("a pipe");
    if output.read_exact(&mut ready).is_err() {
        drop(child.wait());
        cannot_run("mounts in a namespace of one's own");
        return None;
    }
    let path = format!("/proc/{}/root", child.id());
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let flags = i32::try_from(flags.bits()).expect("flags are small");
    let root = File::options().read(true).custom_flags(flags).open(path).expect("the root");
    Some(MountProcess { child: Mutex::new(child), root })
}
