//! Which files are visible and writable.

use std::fs;
use std::os::unix::fs::symlink;

use portcullis_sandbox::{Access, PathAccess, Stage};
use portcullis_sandbox_runtime::{Confinement, StartError};

use crate::Test;
use crate::kit::{self, Session};

pub(crate) const TESTS: &[Test] = &[
    ("files::the_workspace_is_writable", the_workspace_is_writable),
    ("files::the_rest_is_read_only", the_rest_is_read_only),
    ("files::hidden_places_are_not_seen", hidden_places_are_not_seen),
    ("files::hidden_places_cannot_be_written", hidden_places_cannot_be_written),
    ("files::a_hidden_file_cannot_be_opened", a_hidden_file_cannot_be_opened),
    ("files::places_inside_hidden_ones_are_seen", places_inside_hidden_ones_are_seen),
    ("files::places_nest_to_any_depth", places_nest_to_any_depth),
    ("files::protected_names_cannot_be_moved_away", protected_names_cannot_be_moved_away),
    ("files::tmp_is_private", tmp_is_private),
    ("files::a_workspace_below_tmp_is_at_its_path", a_workspace_below_tmp_is_at_its_path),
    ("files::a_file_to_write_is_written_in_place", a_file_to_write_is_written_in_place),
    ("files::shared_memory_is_private", shared_memory_is_private),
    ("files::devices_are_few", devices_are_few),
    ("files::proc_and_sys_are_read_only", proc_and_sys_are_read_only),
    ("files::run_is_hidden", run_is_hidden),
    ("files::links_in_a_place_are_refused", links_in_a_place_are_refused),
    ("files::a_place_of_somebody_else_is_refused_to_root", a_place_of_somebody_else_is_refused_to_root),
    ("files::names_of_any_bytes_work", names_of_any_bytes_work),
    ("files::the_view_shows_the_same_files", the_view_shows_the_same_files),
];

fn the_workspace_is_writable() {
    let session = Session::new();
    session.allows("echo new > new && mkdir d && mv new d/moved && rm file && ln -s d l && cat l/moved");
    assert_eq!(fs::read_to_string(session.path("work/d/moved")).expect("written through"), "new\n");
    assert!(!session.path("work/file").exists());
}

fn the_rest_is_read_only() {
    let session = Session::new();
    session.refuses("echo x > ../outside");
    session.refuses("ln -sfn .. o && echo x > o/through-a-link");
    session.refuses("mkdir $P/new");
    session.refuses("rm $P/home/open/file");
    fs::write(session.path("other"), "content").expect("a file");
    session.refuses("echo x >> $P/other");
    session.refuses("chmod 600 $P/other");
    session.refuses("touch -d 2000-01-01 $P/other");
    assert!(!session.path("work/through-a-link").exists());
    session.allows("test -r $P/other && ls /usr/bin > /dev/null");
    session.sh("echo x > /usr/bin/portcullis-test").assert_fails();
    session.sh("echo x > /portcullis-test").assert_fails();
}

fn hidden_places_are_not_seen() {
    let session = Session::new();
    session.refuses("cat $P/secret/key");
    session.refuses("ln -sf $P/secret/key l && cat l");
    session.refuses("ls $P/home/closed");
    session.refuses("test -n \"$(ls -A $P/secret)\"");
    session.refuses("cat /proc/self/root$P/secret/key");
    session.refuses("cat /proc/self/cwd/../secret/key");
    session.sh("ls -A $P/secret").assert(0, "");
}

fn hidden_places_cannot_be_written() {
    let session = Session::new();
    session.refuses("echo x > $P/secret/new");
    session.refuses("mkdir $P/home/new");
    session.refuses("rm -r $P/secret");
}

fn a_hidden_file_cannot_be_opened() {
    let session = Session::with(|place, wanted| {
        wanted.places.push(PathAccess { path: place.join("work/file"), access: Access::Hidden });
    });
    session.refuses("cat file");
    session.refuses("echo x >> file");
    session.refuses("chmod 644 file");
    session.sh("mv file other").assert_fails();
    session.sh("rm -f file").assert_fails();
    session.refuses("ln file other");
    session.allows("cat sub/file");
}

fn places_inside_hidden_ones_are_seen() {
    let session = Session::new();
    session.sh("ls -A $P/home; cat $P/home/open/deep/file").assert(0, "open\ncontent");
    session.refuses("echo x > $P/home/open/new");
}

fn places_nest_to_any_depth() {
    let session = Session::with(|place, wanted| {
        for (path, access) in [
            ("home/open/deep", Access::Hidden),
            ("home/open/deep/a/b", Access::ReadWrite),
            ("home/open/deep/a/b/c", Access::ReadOnly),
            ("home/open/deep/a/b/c/d", Access::ReadWrite),
            ("home/open/deep/a/b/c/d/e", Access::Hidden),
        ] {
            fs::create_dir_all(place.join(path)).expect("a directory");
            wanted.places.push(PathAccess { path: place.join(path), access });
        }
        fs::write(place.join("home/open/deep/a/b/c/d/e/key"), "content").expect("a file");
    });
    session.sh("cd $P/home/open && ls -A deep deep/a").assert(0, "deep:\na\n\ndeep/a:\nb");
    session.allows("cd $P/home/open/deep/a/b && echo x > new && echo x > c/d/new");
    session.refuses("echo x > $P/home/open/deep/a/b/c/new");
    session.refuses("echo x > $P/home/open/deep/a/new");
    session.refuses("cat $P/home/open/deep/a/b/c/d/e/key");
    session.refuses("cat $P/home/open/deep/file");
}

fn protected_names_cannot_be_moved_away() {
    let session = Session::with(|place, wanted| {
        fs::create_dir_all(place.join("work/conf/inner/deep")).expect("a directory");
        wanted.places.push(PathAccess { path: place.join("work/conf/inner/deep"), access: Access::ReadOnly });
    });
    session.sh("mv conf c").assert_fails();
    session.sh("mv conf/inner conf/h").assert_fails();
    session.sh("mv conf/inner/deep conf/inner/d").assert_fails();
    session.sh("rm -rf conf/inner/deep").assert_fails();
    session.sh("echo x > conf/inner/deep/evil").assert_fails();
    session.allows("echo x > conf/inner/new && mv sub other");
    assert!(session.control("echo x > conf/inner/deep/evil && mv conf c"));
}

fn tmp_is_private() {
    let session = Session::new();
    let outside = tempfile::Builder::new().prefix("portcullis-test-").tempfile_in("/tmp").expect("a file");
    let name = outside.path().display();
    session.refuses(&format!("cat {name}"));
    session.allows("echo x > /tmp/new && mkdir -m 700 /tmp/d && echo y > /tmp/d/f && chmod +x /tmp/new");
    assert_eq!(fs::read_to_string(session.path("temp/d/f")).expect("it is the host's directory"), "y\n");
    session.sh("cat /tmp/d/f").assert(0, "y");
}

fn a_workspace_below_tmp_is_at_its_path() {
    let below = tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/tmp").expect("a directory");
    fs::create_dir_all(below.path().join("a/work")).expect("a directory");
    fs::write(below.path().join("a/file"), "content").expect("a file");
    fs::write(below.path().join("single"), "content").expect("a file");
    let session = Session::with(|_, wanted| {
        wanted.places.push(PathAccess { path: below.path().join("a/work"), access: Access::ReadWrite });
        wanted.places.push(PathAccess { path: below.path().join("single"), access: Access::ReadOnly });
    });
    let at = below.path().display();
    session.allows(&format!("cd {at}/a/work && echo x > new && cat {at}/single"));
    assert!(below.path().join("a/work/new").exists());
    session.refuses(&format!("cat {at}/a/file"));
    session.sh(&format!("mv {at}/a {at}/b")).assert_fails();
    session.sh(&format!("echo x > {at}/single")).assert_fails();
}

/// A file that is a place by itself is written in place and is not renamed, whatever is judged in directories.
fn a_file_to_write_is_written_in_place() {
    let below =
        tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp").expect("a directory");
    let file = below.path().join("single");
    fs::write(&file, "old").expect("a file");
    let session = Session::with(|_, wanted| {
        wanted.places.push(PathAccess { path: file.clone(), access: Access::ReadWrite });
    });
    let at = below.path().display();
    session.allows(&format!("echo x > {at}/single && echo y >> {at}/single && cat {at}/single"));
    assert_eq!(fs::read_to_string(&file).expect("what was written"), "x\ny\n");
    for attempt in
        ["echo z > {at}/beside", "rm {at}/single", "mv {at}/single {at}/other", "ln {at}/single {at}/other"]
    {
        session.sh(&attempt.replace("{at}", &at.to_string())).assert_fails();
    }
    assert_eq!(fs::read_dir(below.path()).expect("a directory").count(), 1);
    // Its other names are unknown.
    fs::hard_link(&file, below.path().join("other")).expect("a link");
    let session = Session::with(|_, wanted| {
        wanted.places.push(PathAccess { path: file.clone(), access: Access::ReadWrite });
    });
    session.sh(&format!("echo z > {at}/single")).assert_fails();
    assert_eq!(fs::read_to_string(&file).expect("what was written"), "x\ny\n");
}

fn shared_memory_is_private() {
    let session = Session::new();
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file");
    session.refuses(&format!("cat {}", outside.path().display()));
    session.allows("echo x > /dev/shm/x && cat /dev/shm/x");
}

fn devices_are_few() {
    let session = Session::new();
    session
        .sh("ls /dev | tr '\\n' ' '")
        .assert(0, "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero");
    session.allows(
        "echo x > /dev/null && head -c1 /dev/zero > /dev/stdout && head -c9 /dev/urandom > /dev/fd/1",
    );
    session.sh("echo x > /dev/full").assert_fails();
    session.sh("echo x > /dev/new").assert_fails();
    session.sh("mknod node c 1 3").assert_fails();
    if crate::exists("/usr/bin/script") {
        session.sh("script -qec 'tty; exit 4' /dev/null").assert(4, "/dev/pts/0");
    } else {
        crate::cannot_run("`script` for a terminal (package bsdutils)");
    }
}

fn proc_and_sys_are_read_only() {
    let session = Session::new();
    for file in [
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/fs/cgroup/cgroup.procs",
    ] {
        session.sh(&format!("echo 0 > {file}")).assert_fails();
    }
    assert!(session.control("echo 0 > /proc/self/oom_score_adj"), "control");
    for file in [
        "/proc/kcore",
        "/proc/kmsg",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/kallsyms",
        "/proc/kpagecount",
        "/proc/kpageflags",
        "/proc/kpagecgroup",
        "/proc/vmallocinfo",
        "/proc/slabinfo",
    ] {
        session.sh(&format!("test -n \"$(head -c9 {file} | tr -d '0\\000')\"")).assert_fails();
    }
    session.sh("find /sys/kernel/debug /sys/kernel/tracing -mindepth 1 2>/dev/null || true").assert(0, "");
    session.allows("grep -q . /proc/cpuinfo && grep -q . /proc/meminfo && test -d /sys/devices");
}

fn run_is_hidden() {
    let session = Session::new();
    session.sh("ls -A /run").assert(0, "");
    assert!(session.control("test -n \"$(ls -A /run)\""), "control");
}

fn links_in_a_place_are_refused() {
    let place = kit::make_place();
    symlink(place.path().join("home"), place.path().join("way")).expect("a link");
    let mut wanted = kit::profile(place.path());
    wanted.places.push(PathAccess { path: place.path().join("way/closed"), access: Access::ReadWrite });
    let error = Confinement::start(&kit::own_program(), &wanted).expect_err("a link on the way");
    let StartError::Refused { stage: Stage::OpenPlace, path: Some(path), source } = error else {
        panic!("{error:?}");
    };
    assert_eq!((path, source.raw_os_error()), (place.path().join("way/closed"), Some(libc::ELOOP)));
}

fn a_place_of_somebody_else_is_refused_to_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = kit::make_place();
    std::os::unix::fs::chown(place.path().join("work"), Some(portcullis_each_user::ORDINARY_USER), None)
        .expect("chown");
    let error = Confinement::start(&kit::own_program(), &kit::profile(place.path())).expect_err("foreign");
    assert!(matches!(error, StartError::ForeignOwner { .. }), "{error:?}");
}

fn names_of_any_bytes_work() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\n\"'*");
    let session = Session::with(|place, wanted| {
        fs::create_dir(place.join(odd)).expect("a directory");
        wanted.places.push(PathAccess { path: place.join(odd), access: Access::ReadWrite });
    });
    session.allows("cd \"$P\"/odd* && echo x > new");
    assert!(session.place.path().join(odd).join("new").exists());
}

fn the_view_shows_the_same_files() {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let session = Session::new();
    let view = session.confinement.view();
    let open = |path: std::path::PathBuf, flags| {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(view.root().expect("alive"), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve).map(drop)
    };
    use rustix::io::Errno;
    assert_eq!(open(session.path("work/file"), OFlags::RDWR), Ok(()));
    assert_eq!(open(session.path("secret/key"), OFlags::RDONLY), Err(Errno::NOENT));
    assert_eq!(open(session.path("home/open/file"), OFlags::RDONLY), Ok(()));
    assert_eq!(open(session.path("home/open/file"), OFlags::RDWR), Err(Errno::ROFS));
    session.allows("echo x > /tmp/seen");
    assert_eq!(open("/tmp/seen".into(), OFlags::RDONLY), Ok(()));
}
