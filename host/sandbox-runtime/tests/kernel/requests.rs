//! Requests to file systems: ioctl(2) is many calls under one number.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_sandbox::Owner;

use crate::kit::Session;
use crate::{Test, cannot_run, exists, names};

pub(crate) const TESTS: &[Test] = &[
    ("requests::attributes_stay_as_they_are", attributes_stay_as_they_are),
    ("requests::nobody_waits_for_a_lease", nobody_waits_for_a_lease),
    ("requests::subvolumes_and_snapshots_make_no_names", subvolumes_and_snapshots_make_no_names),
];

fn attributes_stay_as_they_are() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    let ask = "sysopen(F, q(file), 0) or die; $f = pack(q(q), 0); ioctl(F, 0x80086601, $f) or die";
    session.allows(&format!("perl -e '{ask}'"));
    // The request of chattr(1); it changes nothing.
    session.refuses(&format!("perl -e '{ask}; ioctl(F, 0x40086602, $f) or die'"));
}

fn nobody_waits_for_a_lease() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    // The kernel gives no lease for a file that is also open elsewhere, as in a program that another test starts at
    // that moment. So each process makes a file of its own.
    session.refuses("perl -e 'open(F, q(>>), qq(leased.$$)) or die; fcntl(F, 1024, 1) or die'");
}

/// With BTRFS_IOC_SUBVOL_CREATE and BTRFS_IOC_SNAP_CREATE: any user can make names so, without the calls for it.
const MAKE: &str = "perl -e 'sysopen(D, \".\", 0) or die; $a = pack(\"q a4088\", 0, \"s\"); \
                    ioctl(D, 0x5000940e, $a) or die' && echo evil > s/tasks.json";
const COPY: &str = "perl -e 'sysopen(D, \".\", 0) or die; sysopen(S, \"s\", 0) or die; \
                    $a = pack(\"q a4088\", fileno(S), \".vscode\"); ioctl(D, 0x50009401, $a) or die'";

fn subvolumes_and_snapshots_make_no_names() {
    if !rustix::process::geteuid().is_root() {
        // Only root can mount; below, root acts as an ordinary user.
        return;
    }
    if !exists("/usr/bin/perl") || Command::new("mkfs.btrfs").arg("--version").output().is_err() {
        return cannot_run("perl (package perl-base) and mkfs.btrfs (package btrfs-progs)");
    }
    for owner in [None, Some(Owner { uid: 1234, gid: 4321 })] {
        let mut mounted = None;
        let session = Session::with(|place, wanted| {
            mounted = mount(place);
            wanted.names = Some(names::rules("refuse .vscode"));
            wanted.acting = owner;
            for name in ["work", "temp"] {
                let (uid, gid) = owner.map_or((0, 0), |owner| (owner.uid, owner.gid));
                chown(place.join(name), Some(uid), Some(gid)).expect("given away");
            }
        });
        let Some(_mounted) = mounted else { return cannot_run("a loop device, and btrfs in the kernel") };
        session.sh("mkdir .vscode").assert_fails();
        session.sh(MAKE).assert_fails();
        // An existing subvolume of another user.
        assert!(session.control(MAKE), "control: a subvolume");
        let uid = owner.map(|owner| owner.uid);
        chown(session.path("work/s"), uid, None).expect("given away");
        session.sh(COPY).assert_fails();
        assert!(!session.path("work/.vscode").exists());
        // Copies that share their content (reflinks) stay allowed.
        session.allows("echo content > a && cp --reflink=always a b && cmp a b");
        assert!(session.control(&format!("{COPY} && grep evil .vscode/tasks.json")), "control: a snapshot");
    }
}

/// A file system mounted at `work`, until this is dropped.
struct Mounted(PathBuf);

fn mount(place: &Path) -> Option<Mounted> {
    let (image, at) = (place.join("image"), place.join("work"));
    fs::File::create(&image).and_then(|file| file.set_len(120 << 20)).expect("an image");
    let runs = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let is_mounted = runs(Command::new("mkfs.btrfs").arg("--quiet").arg(&image))
        && runs(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at));
    is_mounted.then(|| Mounted(at))
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).output());
    }
}
