use std::path::Path;

use Access::{Hidden, ReadOnly, ReadWrite, Unwritable};
use insta::assert_snapshot;

use super::{PathKind, Plan};
use crate::{Access, Limits, OwnPlace, OwnSource, PathAccess, PlanError, Profile};

fn profile(places: &[(&str, Access)]) -> Profile {
    let places = places.iter().map(|&(path, access)| PathAccess { path: path.into(), access }).collect();
    let (temp, hostname, limits) = ("/var/t".into(), "box".into(), Limits::default());
    Profile {
        places,
        temp,
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname,
        limits,
        acting: None,
        names: None,
        order: None,
    }
}

/// A machine on which the name of a file tells its kind.
fn kind(path: &Path) -> PathKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match () {
        () if name.starts_with("no") || name == "resolv.conf" => PathKind::Missing,
        () if name.starts_with("link") => PathKind::Link,
        () if name.contains('.') && !name.starts_with('.') => PathKind::File,
        () if path.starts_with("/sys") => PathKind::Missing,
        () => PathKind::Directory,
    }
}

fn plan(places: &[(&str, Access)]) -> String {
    Plan::new(&profile(places), &kind).expect("a usable profile").to_string()
}

fn refusal(places: &[(&str, Access)]) -> PlanError {
    Plan::new(&profile(places), &kind).expect_err("not a usable profile")
}

#[test]
fn nothing_wanted_still_hides_run_and_gives_a_private_tmp() {
    assert_snapshot!(plan(&[]), @r"
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /run
    ");
}

#[test]
fn the_name_service_is_the_sandboxs_own_where_its_file_is_in_sight() {
    let check = |places: &[(&str, Access)]| {
        let kind = |path: &Path| if path.ends_with("resolv.conf") { PathKind::File } else { kind(path) };
        Plan::new(&profile(places), &kind).expect("a usable profile").to_string()
    };
    assert_snapshot!(check(&[("/mnt", Hidden)]), @r"
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /mnt
    hide /run
    resolver /etc/resolv.conf
    ");
    // A hidden one stays hidden, and in a writable directory the mount still protects it.
    assert_snapshot!(check(&[("/etc/resolv.conf", Hidden), ("/mnt", ReadWrite)]), @r"
    pin /mnt/wsl
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide file /etc/resolv.conf
    writable /mnt
    hide /run
    resolver /mnt/wsl/resolv.conf
    ");
}

#[test]
fn a_workspace_inside_closed_homes() {
    let places = [
        ("/home", Hidden),
        ("/home/u/p", ReadWrite),
        ("/home/u/p/.git/hooks", ReadOnly),
        ("/home/u/.pi", ReadOnly),
        ("/home/u/.pi/auth.json", Hidden),
        ("/home/u/.pi/deep", Hidden),
        ("/home/u/.pi/deep/in/here", ReadWrite),
    ];
    assert_snapshot!(plan(&places), @r"
    pin /home/u/p/.git
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /home with u/.pi, u/p
    read-only /home/u/.pi
    hide file /home/u/.pi/auth.json
    hide /home/u/.pi/deep with in/here
    writable /home/u/.pi/deep/in/here
    writable /home/u/p
    read-only /home/u/p/.git/hooks
    hide /run
    ");
}

#[test]
fn the_order_of_places_does_not_matter() {
    let mut places = [("/a", Hidden), ("/a/b/c", ReadWrite), ("/a/b/c/d/e", Hidden), ("/a-b", ReadWrite)];
    let forward = plan(&places);
    places.reverse();
    assert_eq!(plan(&places), forward);
    assert_snapshot!(forward, @r"
    pin /a/b/c/d
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /a with b/c
    writable /a/b/c
    hide /a/b/c/d/e
    writable /a-b
    hide /run
    ");
}

#[test]
fn no_mount_where_nothing_changes() {
    let places = [
        ("/", ReadOnly),
        ("/usr", ReadOnly),
        ("/w", ReadWrite),
        ("/w/x", ReadWrite),
        ("/h", Hidden),
        ("/h/h", Hidden),
        ("/tmp/hidden", Hidden),
    ];
    assert_snapshot!(plan(&places), @r"
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /h
    hide /run
    writable /w
    ");
}

#[test]
fn the_stricter_of_two_for_one_path_counts() {
    assert_eq!(plan(&[("/a", ReadWrite), ("/a", Hidden)]), plan(&[("/a", Hidden)]));
    assert_eq!(plan(&[("/a", Hidden), ("/a", ReadWrite)]), plan(&[("/a", Hidden)]));
}

#[test]
fn a_workspace_below_tmp_is_shown_in_the_private_one() {
    assert_snapshot!(plan(&[("/tmp/a/b/p", ReadWrite), ("/tmp/a/b/p/s.key", Hidden), ("/tmp/r", ReadOnly)]), @r"
    prepare /var/t with a/b/p, r
    pin /var/t/a
    pin /var/t/a/b
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /run
    writable /tmp/a/b/p
    hide file /tmp/a/b/p/s.key
    read-only /tmp/r
    ");
}

#[test]
fn the_hosts_tmp_can_be_shown_and_hidden_in() {
    let wanted =
        Profile { temp: "/tmp".into(), ..profile(&[("/tmp/a/s.key", Hidden), ("/tmp/w", ReadWrite)]) };
    assert_snapshot!(Plan::new(&wanted, &kind).expect("a usable profile"), @r"
    pin /tmp/a
    devices /dev
    processes /proc
    writable /tmp
    hide /run
    hide file /tmp/a/s.key
    ");
}

#[test]
fn closed_directories_keep_their_names_where_the_rest_is_hidden() {
    let home = OwnPlace { path: "/home/u".into(), source: OwnSource::Plain("/var/homes/u".into()) };
    let places = [("/home", Hidden), ("/home/u/work/p", ReadWrite), ("/home/u/data/shown", ReadOnly)];
    let closed =
        ["/home/v", "/home/u/Documents", "/home/u/data", "/home/u/nothing", "/home/u/f.txt", "/srv/x"];
    let wanted = Profile { own: vec![home], closed: closed.map(Into::into).to_vec(), ..profile(&places) };
    assert_snapshot!(Plan::new(&wanted, &kind).expect("a usable profile"), @r"
    prepare /var/homes/u with Documents (closed), data, work/p
    pin /var/homes/u/work
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /home with u, v (closed)
    own /home/u from /var/homes/u
    hide /home/u/data with shown
    read-only /home/u/data/shown
    writable /home/u/work/p
    hide /run
    ");
}

#[test]
fn run_can_be_opened_in_part() {
    assert_snapshot!(plan(&[("/run/tool", ReadOnly)]), @r"
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /run with tool
    read-only /run/tool
    ");
}

#[test]
fn what_only_takes_away_shows_nothing() {
    let nothing = plan(&[]);
    for path in
        ["/run", "/run/user", "/run/user/1000/bus", "/tmp/x", "/tmp/x/y", "/sys/kernel/debug/x", "/usr"]
    {
        for access in [Hidden, Unwritable] {
            if (path, access) != ("/usr", Hidden) {
                assert_eq!(plan(&[(path, access)]), nothing, "{path} {access:?}");
            }
        }
    }
    // Beside a shown place, and below it, it only restricts.
    assert_snapshot!(
        plan(&[("/run", Unwritable), ("/run/tool", ReadWrite), ("/run/tool/d", Unwritable), ("/run/x", Unwritable),
            ("/tmp/a", ReadWrite), ("/tmp/a/b", Unwritable), ("/tmp/c", Unwritable)]),
        @r"
    prepare /var/t with a
    devices /dev
    processes /proc
    temp /tmp from /var/t
    hide /run with tool
    writable /run/tool
    read-only /run/tool/d
    writable /tmp/a
    read-only /tmp/a/b
    "
    );
    assert_eq!(plan(&[("/w", ReadWrite), ("/w", Unwritable)]), nothing);
}

#[test]
fn what_does_not_exist_is_left_out_unless_it_is_to_be_written() {
    assert_eq!(plan(&[("/no", Hidden), ("/none", ReadOnly)]), plan(&[]));
    assert!(matches!(refusal(&[("/no", ReadWrite)]), PlanError::Missing { .. }));
    assert_eq!(plan(&[("/w", ReadWrite), ("/w/no", ReadWrite)]), plan(&[("/w", ReadWrite)]));
}

#[test]
fn paths_that_are_not_plain_are_refused() {
    for path in ["a", "", "./a", "/a/../b", "/a/./b", "/a//b", "/a/", "/a\0b", "//a"] {
        assert!(matches!(refusal(&[(path, Hidden)]), PlanError::NotPlain { .. }), "{path:?}");
    }
}

#[test]
fn links_are_refused() {
    for access in [Hidden, ReadOnly, ReadWrite] {
        assert!(matches!(refusal(&[("/link", access)]), PlanError::Link { .. }));
    }
}

#[test]
fn the_sandboxs_own_places_are_refused() {
    for (path, access) in [
        ("/", ReadWrite),
        ("/", Hidden),
        ("/tmp", Hidden),
        ("/tmp", ReadWrite),
        ("/dev", ReadOnly),
        ("/dev/shm", ReadWrite),
        ("/proc/sys", ReadWrite),
        ("/sys/kernel", ReadWrite),
    ] {
        assert!(matches!(refusal(&[(path, access)]), PlanError::Reserved { .. }), "{path}");
    }
}

#[test]
fn the_temporary_directory_must_be_there() {
    let wanted = Profile { temp: "/no".into(), ..profile(&[]) };
    assert!(matches!(Plan::new(&wanted, &kind), Err(PlanError::Temp { .. })));
}
