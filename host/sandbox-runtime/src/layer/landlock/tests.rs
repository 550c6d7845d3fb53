//! The rules by themselves, without mounts and namespaces: a thread restricts itself and tries accesses.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use portcullis_sandbox::{Access, Limits, PathAccess, PathKind, Profile};
use portcullis_sys::landlock::restrict_self;
use rustix::fs::{AtFlags, CWD, Mode, linkat, mknodat};
use tempfile::TempDir;

use super::*;

/// Creates a directory with `work`, which is writable, and `other`, which is not.
fn place() -> TempDir {
    let place =
        tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp").expect("a directory");
    for directory in ["work/a", "work/b", "other"] {
        fs::create_dir_all(place.path().join(directory)).expect("a directory");
        fs::write(place.path().join(directory).join("file"), "content").expect("a file");
    }
    place
}

fn plan(place: &Path) -> Plan {
    let profile = Profile {
        places: vec![PathAccess { path: place.join("work"), access: Access::ReadWrite }],
        temp: "/tmp".into(),
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "box".into(),
        limits: Limits::default(),
        names: None,
        order: None,
        acting: None,
    };
    Plan::new(&profile, &PathKind::on_disk).expect("a plan")
}

/// Runs a closure in a thread under the rules of a command without standard streams of its own.
fn under_rules<T: Send>(place: &Path, version: u32, run: impl FnOnce() -> T + Send) -> T {
    let landlock = Landlock::prepare(&plan(place), &[], version).expect("rules");
    let null = || OwnedFd::from(File::open("/dev/null").expect("/dev/null"));
    let rules = landlock.for_command(&[null(), null(), null()]).expect("rules");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_no_new_privs(true).expect("no new privileges");
            restrict_self(&rules).expect("restricted");
            run()
        });
        thread.join().expect("no panic")
    })
}

/// Returns the newest version of this kernel; fails in CI if it has none.
fn version_here() -> Option<u32> {
    let version = usable_version();
    assert!(version.is_some() || std::env::var_os("CI").is_none(), "this kernel has no Landlock");
    version
}

type NameAccess = fn(PathBuf) -> std::io::Result<()>;

/// Attempts to change a directory that contains `file`.
const CHANGES: [(&str, NameAccess); 11] = [
    ("create", |at| File::create(at.join("new")).map(drop)),
    ("append", |at| OpenOptions::new().append(true).open(at.join("file")).map(drop)),
    ("truncate", |at| OpenOptions::new().write(true).truncate(true).open(at.join("file")).map(drop)),
    ("directory", |at| fs::create_dir(at.join("d"))),
    ("link", |at| symlink("/", at.join("l"))),
    ("pipe", |at| Ok(mknodat(CWD, at.join("p"), FileType::Fifo, Mode::RUSR, 0)?)),
    ("socket", |at| UnixListener::bind(at.join("s")).map(drop)),
    ("hard link", |at| fs::hard_link(at.join("file"), at.join("h"))),
    ("unnamed", |at| {
        let flags = libc::O_TMPFILE;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(&at)?;
        let name = format!("/proc/thread-self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        Ok(linkat(CWD, name, CWD, at.join("t"), AtFlags::SYMLINK_FOLLOW)?)
    }),
    ("rename", |at| fs::rename(at.join("file"), at.join("renamed"))),
    ("remove", |at| fs::remove_file(at.join("renamed")).or_else(|_| fs::remove_file(at.join("file")))),
];

#[test]
fn what_is_not_given_cannot_be_changed_with_no_mount_at_all() {
    let Some(version) = version_here() else { return };
    let place = place();
    let other = place.path().join("other");
    let inside = under_rules(place.path(), version, || CHANGES.map(|(_, change)| change(other.clone())));
    for ((name, change), inside) in CHANGES.iter().zip(inside) {
        let error = inside.expect_err(name);
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{name}: {error}");
        change(other.clone()).unwrap_or_else(|error| panic!("control: {name}: {error}"));
    }
}

#[test]
fn what_is_given_can_be_changed() {
    let Some(version) = version_here() else { return };
    let place = place();
    let work = place.path().join("work");
    for version in FIRST_USABLE_VERSION..=version {
        let at = work.join(version.to_string());
        fs::create_dir(&at).expect("a directory");
        fs::write(at.join("file"), "content").expect("a file");
        for (name, result) in
            under_rules(place.path(), version, || CHANGES.map(|(name, change)| (name, change(at.clone()))))
        {
            result.unwrap_or_else(|error| panic!("{name} with version {version}: {error}"));
        }
    }
}

#[test]
fn files_move_inside_a_place_and_not_out_of_it() {
    let Some(version) = version_here() else { return };
    let place = place();
    let path = |below: &str| place.path().join(below);
    under_rules(place.path(), version, || {
        fs::rename(path("work/a/file"), path("work/b/moved")).expect("moved inside");
        fs::rename(path("work/a"), path("work/b/a")).expect("moved inside");
        assert!(fs::rename(path("work/b/moved"), path("other/moved")).is_err());
        assert!(fs::rename(path("other/file"), path("work/file")).is_err());
        assert!(fs::hard_link(path("other/file"), path("work/file")).is_err());
    });
    fs::rename(path("work/b/moved"), path("other/moved")).expect("control");
}

#[test]
fn everything_can_be_read_and_executed() {
    let Some(version) = version_here() else { return };
    let place = place();
    under_rules(place.path(), version, || {
        assert_eq!(fs::read_to_string(place.path().join("other/file")).expect("read"), "content");
        assert!(fs::read_dir("/etc").expect("listed").count() > 0);
        assert!(std::process::Command::new("/bin/true").status().expect("executed").success());
        fs::write("/dev/null", "x").expect("written");
    });
}

#[test]
fn a_file_at_standard_output_is_given_for_what_it_is_open_for() {
    let place = place();
    let path = place.path().join("other/file");
    let rights = |options: &mut OpenOptions| {
        rights_of(&OwnedFd::from(options.open(&path).expect("opened"))).expect("known")
    };
    let writes = |rights: Option<Rights>| rights.map(|rights| rights & Rights::WRITE_FILE);
    assert_eq!(writes(rights(OpenOptions::new().read(true))), Some(Rights::NONE));
    assert_eq!(writes(rights(OpenOptions::new().append(true))), Some(Rights::WRITE_FILE));
    assert_eq!(writes(rights(OpenOptions::new().read(true).write(true))), Some(Rights::WRITE_FILE));
    assert_eq!(rights(OpenOptions::new().read(true).custom_flags(libc::O_PATH)), None);
    let (pipe, _other) = std::io::pipe().expect("a pipe");
    for of_no_concern in
        [pipe.into(), File::open("/dev/null").expect("it").into(), File::open("/").expect("it").into()]
    {
        assert_eq!(rights_of(&of_no_concern).expect("known"), None);
    }
}
