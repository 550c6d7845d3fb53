//! The access that a plan gives at each path, for sandboxes without mounts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Access;
use crate::plan::{MountStep, Plan, Writable};

/// The places of a plan under their names on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    all: BTreeMap<PathBuf, Access>,
    /// The session's temporary directory, where rules over names do not apply.
    temp: PathBuf,
}

impl Places {
    /// Reads the places from a plan; the session's temporary directory stays at its path, and the host's is hidden.
    pub fn from_plan(plan: &Plan) -> Self {
        let mut places = Self { all: BTreeMap::new(), temp: "/tmp".into() };
        for step in plan.steps() {
            match step {
                MountStep::Show { path, writable: Writable::Yes } => places.add(path, Access::ReadWrite),
                MountStep::Show { path, writable: Writable::No } => places.add(path, Access::ReadOnly),
                MountStep::HideDirectory { path, .. } | MountStep::HideFile { path } => {
                    places.add(path, Access::Hidden)
                }
                MountStep::Devices { given } => {
                    places.add(Path::new("/dev"), Access::Hidden);
                    given.iter().for_each(|device| places.add(device, Access::ReadOnly));
                }
                MountStep::Processes => places.add(Path::new("/proc"), Access::Hidden),
                MountStep::Temp { directory } => {
                    places.temp.clone_from(directory);
                    places.add(Path::new("/tmp"), Access::Hidden);
                    places.add(directory, Access::ReadWrite);
                }
                // The resolver configuration does not matter without a network.
                MountStep::Prepare { .. }
                | MountStep::Pin { .. }
                | MountStep::Resolver { .. }
                | MountStep::Own { .. } => {}
            }
        }
        places
    }

    fn add(&mut self, path: &Path, access: Access) {
        self.all.entry(path.to_owned()).and_modify(|known| *known = access.min(*known)).or_insert(access);
    }

    /// Returns the access at a path: that of the deepest place that contains it.
    pub fn access(&self, path: &Path) -> Access {
        path.ancestors().find_map(|above| self.all.get(above)).copied().unwrap_or(Access::ReadOnly)
    }

    /// Returns the session's temporary directory.
    pub fn temp(&self) -> &Path {
        &self.temp
    }

    /// Returns every place with its access.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, Access)> {
        self.all.iter().map(|(path, access)| (path.as_path(), *access))
    }

    /// Returns true if a place begins at exactly this path.
    pub fn begins_at(&self, path: &Path) -> bool {
        self.all.contains_key(path)
    }

    /// Returns true if a place begins at or below this path: it must keep its name then, as a mount point would.
    pub fn is_pinned(&self, path: &Path) -> bool {
        self.all.range(path.to_owned()..).next().is_some_and(|(first, _)| first.starts_with(path))
    }

    /// Returns true if something is hidden below a path.
    pub fn hides_below(&self, path: &Path) -> bool {
        let mut below = self.all.range(path.to_owned()..).take_while(|(place, _)| place.starts_with(path));
        below.any(|(place, access)| *access == Access::Hidden && place != path)
    }

    /// Returns true if something is hidden inside a writable place: Landlock rules only add rights, so they cannot hide
    /// it.
    pub fn hides_in_writable(&self) -> bool {
        self.iter().any(|(path, access)| {
            let around = path.parent().map_or(Access::ReadOnly, |parent| self.access(parent));
            access == Access::Hidden && around == Access::ReadWrite
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, PathAccess, PathKind, Profile};

    fn places(wanted: &[(&str, Access)]) -> Places {
        let places = wanted.iter().map(|(path, access)| PathAccess { path: path.into(), access: *access });
        let profile = Profile {
            places: places.collect(),
            temp: "/var/t".into(),
            own: Vec::new(),
            closed: Vec::new(),
            devices: vec!["/dev/kvm".into()],
            hostname: "x".into(),
            limits: Limits::default(),
            acting: None,
            names: None,
            order: None,
        };
        Places::from_plan(&Plan::new(&profile, &|_| PathKind::Directory).expect("a plan"))
    }

    #[test]
    fn the_deepest_place_counts() {
        let places = places(&[
            ("/home", Access::Hidden),
            ("/home/u/w", Access::ReadWrite),
            ("/home/u/w/.git/hooks", Access::ReadOnly),
        ]);
        for (path, access) in [
            ("/etc/passwd", Access::ReadOnly),
            ("/home/u/.ssh", Access::Hidden),
            ("/home/u/w/new", Access::ReadWrite),
            ("/home/u/w/.git/hooks/x", Access::ReadOnly),
            ("/tmp/x", Access::Hidden),
            ("/var/t/x", Access::ReadWrite),
            ("/proc/1/environ", Access::Hidden),
            ("/dev/pts/0", Access::Hidden),
            ("/dev/kvm", Access::ReadOnly),
            ("/run/docker.sock", Access::Hidden),
        ] {
            assert_eq!(places.access(Path::new(path)), access, "{path}");
        }
        assert_eq!(places.temp(), Path::new("/var/t"));
        assert!(!places.hides_in_writable());
    }

    #[test]
    fn what_holds_a_place_keeps_its_name() {
        let places = places(&[("/w", Access::ReadWrite), ("/w/a/b", Access::Hidden)]);
        for (path, is_pinned) in [("/w/a", true), ("/w/a/b", true), ("/w/a/b/c", false), ("/w/a-", false)] {
            assert_eq!(places.is_pinned(Path::new(path)), is_pinned, "{path}");
        }
        assert!(places.hides_below(Path::new("/w/a")) && !places.hides_below(Path::new("/w/a/b")));
        assert!(places.hides_in_writable());
    }
}
