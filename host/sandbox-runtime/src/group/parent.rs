//! Finds the directory in which a group may be created.
//!
//! A group that contains processes itself cannot give controllers to its child groups (except the root group, which has
//! no file `cgroup.type`). So the new group is not created below the group of this program, which also contains pi and
//! others, but beside it, in a directory above.

use std::fs;
use std::path::{Component, Path, PathBuf};

use portcullis_sandbox::{Controller, NoGroup, decode_mount_path};
use rustix::fs::{Access, CWD, FsWord, Mode, OFlags, access, fstatfs, openat};

/// A directory in which a group can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupParent {
    pub(super) path: PathBuf,
    /// The controllers of groups created there, once [`GroupParent::missing`] are enabled.
    pub(super) controllers: Vec<Controller>,
    /// The controllers that must be enabled first.
    pub(super) missing: Vec<Controller>,
}

/// The properties of this program's group or of an ancestor.
#[derive(Debug, Clone, Default)]
struct Candidate {
    path: PathBuf,
    /// The controllers of the group.
    available: Vec<Controller>,
    /// The controllers enabled for its child groups.
    on: Vec<Controller>,
    /// Whether this user may create child groups and move processes into them.
    is_ours: bool,
    /// Whether this user may enable controllers for child groups.
    may_switch: bool,
    /// Whether processes in it prevent it from giving controllers to child groups.
    is_occupied: bool,
}

/// Returns why a group with all needed controllers cannot be created; `None` if it should work.
pub(crate) fn outlook() -> Option<NoGroup> {
    match find() {
        Ok(place) if Controller::NEEDED.iter().all(|needed| place.controllers.contains(needed)) => None,
        Ok(_) => Some(NoGroup::NoControllers),
        Err(why) => Some(why),
    }
}

/// Finds the place with the most controllers, the nearest among equals.
pub(super) fn find() -> Result<GroupParent, NoGroup> {
    let text = |file| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let found = locate(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
    let (mount, own) = found.into_iter().find(|(_, own)| is_version_2(own)).ok_or(NoGroup::NotMounted)?;
    let above = own.ancestors().take_while(|path| path.starts_with(&mount));
    choose(&above.map(Candidate::look_at).collect::<Vec<_>>())
}

fn is_version_2(path: &Path) -> bool {
    /// `CGROUP2_SUPER_MAGIC` of linux/magic.h.
    const MAGIC: FsWord = 0x6367_7270;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty());
    opened.and_then(fstatfs).is_ok_and(|system| system.f_type == MAGIC)
}

/// Returns the mount points of cgroup v2, each with this process's own group below it: see proc_pid_mountinfo(5) and
/// cgroups(7).
fn locate(mounts: &str, groups: &str) -> Vec<(PathBuf, PathBuf)> {
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::")) else { return Vec::new() };
    // A group outside of the cgroup namespace begins with `/..`; a removed one is marked so.
    let is_plain =
        Path::new(own).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !is_plain || own.ends_with(" (deleted)") {
        return Vec::new();
    }
    let mounts = mounts.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3).map(decode_mount_path);
        let (root, target) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(&root).ok()?;
        (system.split(' ').next() == Some("cgroup2")).then(|| {
            let own = if below.as_os_str().is_empty() { target.clone() } else { target.join(below) };
            (target, own)
        })
    });
    mounts.collect()
}

impl Candidate {
    fn look_at(path: &Path) -> Self {
        let controllers = |file: &str| {
            let text = fs::read_to_string(path.join(file)).unwrap_or_default();
            let is_there = |one: &Controller| text.split_ascii_whitespace().any(|word| word == one.name());
            Controller::ALL.into_iter().filter(is_there).collect()
        };
        let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
        let is_root = !path.join("cgroup.type").exists();
        // An unreadable file means that the group contains at least threads.
        let is_empty = || fs::read(path.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty());
        Self {
            path: path.to_owned(),
            available: controllers("cgroup.controllers"),
            on: controllers("cgroup.subtree_control"),
            is_ours: may_write(path) && may_write(&path.join("cgroup.procs")),
            may_switch: may_write(&path.join("cgroup.subtree_control")),
            is_occupied: !is_root && !is_empty(),
        }
    }

    fn place(&self) -> Option<GroupParent> {
        let has = |one: &Controller| {
            self.on.contains(one) || (self.may_switch && !self.is_occupied && self.available.contains(one))
        };
        let controllers: Vec<Controller> = Controller::ALL.into_iter().filter(has).collect();
        let missing = controllers.iter().filter(|one| !self.on.contains(one)).copied().collect();
        (self.is_ours && !controllers.is_empty()).then(|| GroupParent {
            path: self.path.clone(),
            controllers,
            missing,
        })
    }

    fn has_some_needed(&self) -> bool {
        Controller::NEEDED.iter().any(|needed| self.available.contains(needed))
    }
}

/// Chooses among the groups from the own one upwards, or returns why there is none.
fn choose(candidates: &[Candidate]) -> Result<GroupParent, NoGroup> {
    let needed =
        |place: &GroupParent| Controller::NEEDED.iter().filter(|one| place.controllers.contains(one)).count();
    let mut best: Option<GroupParent> = None;
    for place in candidates.iter().filter_map(Candidate::place) {
        let gives = |place: &GroupParent| (needed(place), place.controllers.len());
        if best.as_ref().is_none_or(|best| gives(&place) > gives(best)) {
            best = Some(place);
        }
    }
    best.ok_or_else(|| why(candidates))
}

fn why(candidates: &[Candidate]) -> NoGroup {
    let mut of_use = candidates.iter().filter(|one| one.has_some_needed());
    let Some(nearest) = of_use.clone().next() else { return NoGroup::NoControllers };
    match of_use.find(|one| one.is_ours && one.is_occupied) {
        Some(occupied) => NoGroup::Occupied(occupied.path.clone()),
        None => NoGroup::NotDelegated(nearest.path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use Controller::{HugePages, Memory, Processes};

    use super::*;

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let line = |root: &str, target: &str, system: &str| {
            format!("30 23 0:26 {root} {target} rw - {system} x rw\n")
        };
        let usual = line("/", "/sys/fs/cgroup", "cgroup2");
        let found = |mounts: &str, own: &str| {
            let found = locate(mounts, &format!("1:name=systemd:/x\n0::{own}\n"));
            found
                .into_iter()
                .map(|(mount, own)| format!("{} {}", mount.display(), own.display()))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&usual, "/user.slice/a b"), ["/sys/fs/cgroup /sys/fs/cgroup/user.slice/a b"]);
        assert_eq!(found(&usual, "/"), ["/sys/fs/cgroup /sys/fs/cgroup"]);
        let hybrid =
            line("/", "/sys/fs/cgroup/unified", "cgroup2") + &line("/", "/sys/fs/cgroup/pids", "cgroup");
        assert_eq!(found(&hybrid, "/"), ["/sys/fs/cgroup/unified /sys/fs/cgroup/unified"]);
        let part = line("/machine", "/mnt/with\\040blank", "cgroup2");
        assert_eq!(found(&part, "/machine/one"), ["/mnt/with blank /mnt/with blank/one"]);
        for other in ["/machines", "/", "/../outside", "/machine/../up", "/machine/gone (deleted)"] {
            assert!(found(&part, other).is_empty(), "{other}");
        }
        assert!(locate(&usual, "1:name=systemd:/x\n").is_empty(), "version 1 only");
    }

    fn group(path: &str) -> Candidate {
        Candidate { path: path.into(), ..Candidate::default() }
    }

    fn delegated(path: &str, available: &[Controller], on: &[Controller]) -> Candidate {
        let (available, on) = (available.to_vec(), on.to_vec());
        Candidate { available, on, is_ours: true, may_switch: true, ..group(path) }
    }

    fn own(path: &str, available: &[Controller]) -> Candidate {
        Candidate { is_occupied: true, ..delegated(path, available, &[]) }
    }

    #[track_caller]
    fn check(candidates: &[Candidate], path: &str, controllers: &[Controller], missing: &[Controller]) {
        let (controllers, missing) = (controllers.to_vec(), missing.to_vec());
        assert_eq!(choose(candidates), Ok(GroupParent { path: path.into(), controllers, missing }));
    }

    #[test]
    fn a_group_is_made_beside_the_own_one() {
        let both = &[Memory, Processes];
        // A scope below a user's own service manager.
        let slice = delegated("/u/app.slice", both, both);
        let manager = delegated("/u", both, both);
        let users = Candidate { available: both.to_vec(), on: both.to_vec(), ..group("/") };
        check(
            &[own("/u/app.slice/pi.scope", both), slice.clone(), manager.clone(), users.clone()],
            "/u/app.slice",
            both,
            &[],
        );
        // Missing controllers are enabled where that is allowed.
        let bare = delegated("/u/app.slice", both, &[]);
        check(&[own("/u/app.slice/pi.scope", both), bare.clone()], "/u/app.slice", both, both);
        let fixed = Candidate { may_switch: false, ..bare };
        check(&[own("/u/app.slice/pi.scope", both), fixed, manager], "/u", both, &[]);
        // The place with more controllers wins, and the nearest among equals.
        let pids = delegated("/u/a", &[Processes, HugePages], &[Processes]);
        check(&[own("/u/a/b", both), pids.clone(), slice.clone()], "/u/app.slice", both, &[]);
        check(&[own("/u/a/b", both), pids.clone(), users], "/u/a", &[Processes, HugePages], &[HugePages]);
        // Only the root group can enable controllers with processes in it.
        let root = Candidate { is_occupied: false, ..own("/", &[HugePages]) };
        check(&[root], "/", &[HugePages], &[HugePages]);
    }

    #[test]
    fn without_a_place_it_is_said_why() {
        let both = &[Memory, Processes];
        let foreign = |path| Candidate { available: both.to_vec(), on: both.to_vec(), ..group(path) };
        let none = delegated("/u", &[], &[]);
        for (candidates, expected) in [
            (vec![], NoGroup::NoControllers),
            (vec![own("/u/a", &[]), none], NoGroup::NoControllers),
            (vec![foreign("/s/x.scope"), foreign("/s")], NoGroup::NotDelegated("/s/x.scope".into())),
            // A container, or a service with delegation, with all processes in one group.
            (vec![own("/", both)], NoGroup::Occupied("/".into())),
            (vec![own("/s/x.service", both), foreign("/s")], NoGroup::Occupied("/s/x.service".into())),
        ] {
            assert_eq!(choose(&candidates), Err(expected.clone()), "{candidates:?}");
            assert!(expected.remedy().is_some());
        }
    }

    #[test]
    fn this_machine_is_looked_at() {
        // On any machine the result is an existing place, or a reason.
        match find() {
            Ok(place) => assert!(is_version_2(&place.path) && !place.controllers.is_empty(), "{place:?}"),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
}
