//! The base: the answers where no rule matches.

use std::path::{Path, PathBuf};

use super::own_places::{InHome, OwnPlaces};
use super::ruling::{BaseRuling, Caller};
use crate::profile::FileRight;
use crate::verdict::Effect;

/// Directories of the machine that are invisible to commands unless an allowing rule, or a grant, names a path at or
/// below them: a rule on a parent directory does not open them.
pub const HIDDEN_BY_DEFAULT: [&str; 6] = [
    "/run",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
];

/// The answers where no rule has an opinion: commands see the file system read-only except closed regions, tools ask,
/// the workspace and the session's temporary directory are read-write. If regions are nested, the innermost counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base {
    /// Workspace roots, canonical.
    pub workspace: Vec<PathBuf>,
    /// The temporary directory as tools and commands see it.
    pub temp: PathBuf,
    /// Regions that are hidden from commands and that tools ask about (homes).
    pub closed: Vec<PathBuf>,
    /// Further directories that the sandbox has of its own.
    pub own: OwnPlaces,
}

/// A region that the base knows. Of two with the same top the greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    Closed,
    /// The project's own state of tools.
    Home,
    /// A directory of the session, besides the temporary one.
    Own,
    Temp,
    Workspace,
}

impl Region {
    /// Returns true if the machine has other files there, or none.
    fn is_of_the_sandbox(self) -> bool {
        match self {
            Self::Home | Self::Own | Self::Temp => true,
            Self::Closed | Self::Workspace => false,
        }
    }
}

impl Base {
    pub(super) fn file(&self, path: &Path, right: FileRight, caller: Caller) -> BaseRuling {
        let ruling = |effect, rule, reason| BaseRuling { effect, rule, reason };
        match (self.region(path), right, caller) {
            (Some(Region::Workspace), _, _) => {
                ruling(Effect::Allow, "base.workspace", "it lies in this project")
            }
            (Some(Region::Temp), _, _) => {
                ruling(Effect::Allow, "base.temp", "it lies in the session's temporary directory")
            }
            (Some(Region::Own), _, _) => {
                ruling(Effect::Allow, "base.own", "it lies in a directory of this session")
            }
            (Some(Region::Home), _, _) => ruling(
                Effect::Allow,
                "base.home",
                "it lies in the private home, where this project keeps the state of its tools",
            ),
            (Some(Region::Closed), _, _) => ruling(
                Effect::Ask,
                "base.closed",
                "it lies outside this project, in a directory that commands do not see",
            ),
            (None, FileRight::Read | FileRight::Execute, Caller::Command) => {
                ruling(Effect::Allow, "base.system", "commands see the system read-only")
            }
            (None, FileRight::Write, Caller::Command)
            | (None, FileRight::Read | FileRight::Write | FileRight::Execute, Caller::Tool) => {
                ruling(Effect::Ask, "base.outside", "it lies outside this project")
            }
        }
    }

    /// Returns true if both directories are in the same region, and no region begins below them.
    pub(super) fn is_alike_below(&self, one: &Path, other: &Path) -> bool {
        let home = self.own.home.iter();
        let home = home.flat_map(|home| [&home.path].into_iter().chain(&home.machine).chain(&home.caches));
        let tops: Vec<&PathBuf> = self.tops().map(|(_, top)| top).chain(home).collect();
        let begins_below = |directory: &Path| tops.iter().any(|top| top.starts_with(directory));
        self.region(one) == self.region(other) && !begins_below(one) && !begins_below(other)
    }

    pub(super) fn tops(&self) -> impl Iterator<Item = (Region, &PathBuf)> {
        let workspace = self.workspace.iter().map(|top| (Region::Workspace, top));
        let closed = self.closed.iter().map(|top| (Region::Closed, top));
        let own = self.own.directories.iter().map(|top| (Region::Own, top));
        workspace.chain(closed).chain([(Region::Temp, &self.temp)]).chain(own)
    }

    /// Returns the base with the `opened` paths below the temporary directory added to its closed regions. Those in a
    /// workspace are covered already.
    pub(super) fn with_shown_in_temp<'a>(mut self, opened: impl Iterator<Item = &'a Path>) -> Self {
        let is_below = |path: &Path| path.starts_with(&self.temp) && path != self.temp;
        let in_workspace = |path: &Path| self.workspace.iter().any(|top| path.starts_with(top));
        let shown: Vec<PathBuf> = opened
            .filter(|path| self.temp.is_absolute() && is_below(path) && !in_workspace(path))
            .map(Path::to_owned)
            .collect();
        if !shown.is_empty() {
            self.closed.extend(shown);
            self.closed.sort();
            self.closed.dedup();
        }
        self
    }

    /// Returns the base with the places of its own that rules leave to it: rules open `opened`, some for writing, and name
    /// `named`.
    pub(super) fn with_named<'a>(
        mut self,
        opened: &[(&Path, bool)],
        named: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let own = std::mem::take(&mut self.own);
        let has_temp = own.directories.contains(&self.temp);
        let mut own = own.without(opened, named, |home| self.region(home) == Some(Region::Closed));
        // A rule that names the temporary directory means the session's.
        if has_temp && !own.directories.contains(&self.temp) {
            own.directories.push(self.temp.clone());
        }
        Self { own, ..self }
    }

    /// Returns the directories of the sandbox's own.
    pub fn own_tops(&self) -> impl Iterator<Item = &PathBuf> {
        let home = self.own.home.iter().map(|home| &home.path);
        [&self.temp].into_iter().chain(&self.own.directories).chain(home)
    }

    /// Returns true if the path names a file of the sandbox's own, where the machine may have another one.
    #[must_use]
    pub fn is_own(&self, path: &Path) -> bool {
        let is_of_the_sandbox = self.region(path).is_some_and(Region::is_of_the_sandbox);
        is_of_the_sandbox && !self.is_shown_in_temp(path)
    }

    /// Returns true if `path` is below the temporary directory, but in a part of the machine that is shown there.
    pub(super) fn is_shown_in_temp(&self, path: &Path) -> bool {
        let is_inside = |top: &Path| top.starts_with(&self.temp) && top != self.temp;
        let is_the_machines = |region: Region| matches!(region, Region::Closed | Region::Workspace);
        path.starts_with(&self.temp)
            && self.top(path).is_some_and(|(region, top)| is_the_machines(region) && is_inside(top))
    }

    /// Returns the innermost region that contains `path`.
    fn region(&self, path: &Path) -> Option<Region> {
        self.top(path).map(|(region, _)| region)
    }

    fn top<'a>(&'a self, path: &'a Path) -> Option<(Region, &'a Path)> {
        // Every path starts with the empty path, which must not open anything.
        let holding = self.tops().filter(|(_, top)| top.is_absolute() && path.starts_with(top));
        let in_home = self.own.home.as_ref().and_then(|home| home.find(path)).map(|found| match found {
            InHome::Own(top) => (Region::Home, top),
            InHome::Machine(top) => (Region::Closed, top),
        });
        let holding = holding.map(|(region, top)| (region, top.as_path())).chain(in_home);
        holding.max_by_key(|(region, top)| (top.components().count(), *region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_region_holds() {
        let base = Base {
            workspace: vec!["/tmp/t/home/u/p".into(), "/home/v".into()],
            temp: "/tmp".into(),
            closed: vec!["/tmp/t/home".into(), "/home".into(), "/home/v".into()],
            own: OwnPlaces::default(),
        };
        for (path, region) in [
            ("/tmp/x", Some(Region::Temp)),
            ("/tmp/t/home/u/.ssh", Some(Region::Closed)),
            ("/tmp/t/home/u/p/a", Some(Region::Workspace)),
            ("/home/v/.bashrc", Some(Region::Workspace)),
            ("/home/w", Some(Region::Closed)),
            ("/etc", None),
        ] {
            assert_eq!(base.region(Path::new(path)), region, "{path}");
        }
        for (path, is_shown) in
            [("/tmp/x", false), ("/tmp/t/home/x", true), ("/tmp/t/home/u/p/a", true), ("/home/w", false)]
        {
            assert_eq!(base.is_shown_in_temp(Path::new(path)), is_shown, "{path}");
        }
        assert_eq!(Base::default().region(Path::new("/x")), None);
    }
}
