//! From places to mounts: one node for each place whose state differs from the tree around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::step::{MountStep, Opening, PathKind, Writable};
use crate::{Access, HIDDEN_UNLESS_SHOWN, OwnSource, PlanError, Profile};

/// Paths at which the sandbox mounts its own file systems.
const OWN: [&str; 2] = ["/dev", "/proc"];
const TEMP: &str = "/tmp";
/// Files in which programs look up the name server; under Windows (WSL) the first is a link to the second. On other
/// systems it is a plain file, or a link to a hidden target; programs' defaults for a missing file suit the sandbox.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/mnt/wsl/resolv.conf"];
/// The file of names that need no name server. Names in the host's file are resolved by the host like all others, so
/// that they are judged as names, not as addresses.
const HOSTS: &str = "/etc/hosts";

/// A path whose state differs from that of the tree around it.
pub(super) struct Node {
    path: PathBuf,
    state: NodeState,
    /// The node whose tree contains this one; `None` for the system itself.
    parent: Option<usize>,
    kind: PathKind,
}

#[derive(Clone, PartialEq, Eq)]
enum NodeState {
    Hidden,
    /// A directory that cannot be entered, unless a place below it is shown.
    Closed,
    ReadOnly,
    ReadWrite,
    /// A writable directory from elsewhere: the host's files below this path are not visible.
    Temp(PathBuf),
    /// Like [`NodeState::Temp`], or layered over the existing files.
    Own(OwnSource),
    /// A file of the sandbox's own.
    Resolver,
}

impl NodeState {
    /// True if a place below needs a mount point to be created.
    fn covers(&self) -> bool {
        match self {
            Self::Hidden | Self::Closed | Self::Temp(_) | Self::Own(OwnSource::Plain(_)) => true,
            Self::ReadOnly
            | Self::ReadWrite
            | Self::Resolver
            | Self::Own(OwnSource::Layered { .. } | OwnSource::Branch { .. }) => false,
        }
    }

    /// True if a place inside with this access needs no mount of its own.
    fn gives(&self, access: Access) -> bool {
        match (self, access) {
            // Accesses that only restrict have no effect where all is hidden, or where another directory is shown.
            (
                Self::Hidden | Self::Closed | Self::Temp(_) | Self::Own(OwnSource::Plain(_)),
                Access::Hidden | Access::Unwritable,
            )
            | (Self::ReadOnly, Access::Unwritable | Access::ReadOnly)
            | (Self::ReadWrite, Access::ReadWrite) => true,
            (Self::Resolver | Self::Own(OwnSource::Layered { .. } | OwnSource::Branch { .. }), _)
            | (
                Self::Hidden | Self::Closed | Self::Temp(_) | Self::Own(OwnSource::Plain(_)),
                Access::ReadOnly | Access::ReadWrite,
            )
            | (Self::ReadOnly, Access::Hidden | Access::ReadWrite)
            | (Self::ReadWrite, Access::Hidden | Access::Unwritable | Access::ReadOnly) => false,
        }
    }
}

/// Returns the nodes, each after the node that contains it.
pub(super) fn collect(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<Vec<Node>, PlanError> {
    // Paths compare by components, so a parent sorts before its children.
    let wanted = wanted(profile)?;
    let mut nodes = Nodes::default();
    nodes.push(Path::new(TEMP), temp(profile, kind)?, PathKind::Directory);
    for (path, wanted) in wanted {
        match wanted {
            Wanted::Access(access) => nodes.add(&path, access, kind)?,
            Wanted::Own(source) => nodes.add_own(&path, source, kind),
            Wanted::Closed => nodes.add_closed(&path, kind),
        }
    }
    for path in RESOLVERS
        .map(Path::new)
        .into_iter()
        .chain([Path::new(HOSTS)])
        .filter(|path| kind(path) == PathKind::File)
    {
        nodes.add_resolver(path);
    }
    Ok(nodes.all)
}

/// The nodes collected so far.
#[derive(Default)]
struct Nodes {
    all: Vec<Node>,
    /// The index of the node of a path. Plain paths are equal only if they are equal as bytes.
    places: HashMap<OsString, usize>,
}

impl Nodes {
    fn add(
        &mut self,
        path: &Path,
        access: Access,
        kind: &dyn Fn(&Path) -> PathKind,
    ) -> Result<(), PlanError> {
        let kind = kind(path);
        if kind == PathKind::Link {
            return Err(PlanError::Link { path: path.to_owned() });
        }
        if self.state_around(path).gives(access) {
            return Ok(());
        }
        if kind == PathKind::Missing {
            return match access {
                Access::ReadWrite => Err(PlanError::Missing { path: path.to_owned() }),
                Access::Hidden | Access::Unwritable | Access::ReadOnly => Ok(()),
            };
        }
        let state = match access {
            Access::Hidden => NodeState::Hidden,
            Access::Unwritable | Access::ReadOnly => NodeState::ReadOnly,
            Access::ReadWrite => NodeState::ReadWrite,
        };
        self.push(path, state, kind);
        Ok(())
    }

    /// Adds a place of the sandbox's own, where there is a name to mount it on.
    fn add_own(&mut self, path: &Path, source: OwnSource, kind: &dyn Fn(&Path) -> PathKind) {
        let shown = match &source {
            OwnSource::Plain(source) => kind(source),
            OwnSource::Layered { .. } | OwnSource::Branch { .. } => PathKind::Directory,
        };
        let is_mountable = matches!(shown, PathKind::Directory | PathKind::File);
        if is_mountable && (self.state_around(path).covers() || kind(path) == shown) {
            self.push(path, NodeState::Own(source), shown);
        }
    }

    /// Adds a directory that cannot be entered, where the names around it are the sandbox's own.
    fn add_closed(&mut self, path: &Path, kind: &dyn Fn(&Path) -> PathKind) {
        let around = self.state_around(path);
        if around.covers() && *around != NodeState::Closed && kind(path) == PathKind::Directory {
            self.push(path, NodeState::Closed, PathKind::Directory);
        }
    }

    /// Adds the sandbox's own resolver configuration, or file of names, where the file is visible: a search list of the host's would
    /// extend the names that programs ask for, and in the sandbox every name has an address.
    fn add_resolver(&mut self, path: &Path) {
        if !self.state_around(path).covers() {
            self.push(path, NodeState::Resolver, PathKind::File);
        }
    }

    fn push(&mut self, path: &Path, state: NodeState, kind: PathKind) {
        let parent = self.around(path);
        self.places.insert(path.into(), self.all.len());
        self.all.push(Node { path: path.to_owned(), state, parent, kind });
    }

    /// Returns the deepest node that contains this path.
    fn around(&self, path: &Path) -> Option<usize> {
        path.ancestors().find_map(|above| self.places.get(above.as_os_str())).copied()
    }

    fn state_around(&self, path: &Path) -> &NodeState {
        self.around(path)
            .and_then(|index| self.all.get(index))
            .map_or(&NodeState::ReadOnly, |node| &node.state)
    }
}

/// The wanted state of a path.
enum Wanted {
    Access(Access),
    Own(OwnSource),
    Closed,
}

fn wanted(profile: &Profile) -> Result<BTreeMap<PathBuf, Wanted>, PlanError> {
    let mut wanted: BTreeMap<PathBuf, Access> = BTreeMap::new();
    for place in &profile.places {
        check_plain(&place.path)?;
        let path = place.path.clone();
        if path == Path::new("/") && place.access == Access::ReadOnly {
            continue;
        }
        if is_reserved(&path, place.access) {
            return Err(PlanError::Reserved { path });
        }
        wanted.entry(path).and_modify(|access| *access = place.access.min(*access)).or_insert(place.access);
    }
    for path in HIDDEN_UNLESS_SHOWN {
        let access = wanted.entry(path.into()).or_insert(Access::Hidden);
        if *access == Access::Unwritable {
            *access = Access::Hidden;
        }
    }
    let mut wanted: BTreeMap<PathBuf, Wanted> =
        wanted.into_iter().map(|(path, access)| (path, Wanted::Access(access))).collect();
    for place in &profile.own {
        check_plain(&place.path)?;
        if is_reserved(&place.path, Access::ReadWrite) {
            return Err(PlanError::Reserved { path: place.path.clone() });
        }
        wanted.insert(place.path.clone(), Wanted::Own(place.source.clone()));
    }
    for path in &profile.closed {
        check_plain(path)?;
        wanted.entry(path.clone()).or_insert(Wanted::Closed);
    }
    Ok(wanted)
}

fn is_reserved(path: &Path, access: Access) -> bool {
    path == Path::new("/")
        || path == Path::new(TEMP)
        || OWN.iter().any(|own| path.starts_with(own))
        || (access == Access::ReadWrite && path.starts_with("/sys"))
}

fn check_plain(path: &Path) -> Result<(), PlanError> {
    let rebuilt: PathBuf = path
        .components()
        .filter(|component| matches!(component, Component::RootDir | Component::Normal(_)))
        .collect();
    // Compared as bytes, because `Path` comparison ignores `//`, `/.` and a trailing slash.
    let plain = rebuilt.as_os_str() == path.as_os_str();
    if plain && path.is_absolute() && !path.as_os_str().as_bytes().contains(&0) {
        return Ok(());
    }
    Err(PlanError::NotPlain { path: path.to_owned() })
}

fn temp(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<NodeState, PlanError> {
    check_plain(&profile.temp)?;
    for path in [&profile.temp, Path::new(TEMP)] {
        if kind(path) != PathKind::Directory {
            return Err(PlanError::Temp { path: path.to_owned() });
        }
    }
    let is_the_hosts = profile.temp == Path::new(TEMP);
    Ok(if is_the_hosts { NodeState::ReadWrite } else { NodeState::Temp(profile.temp.clone()) })
}

/// Returns the steps for these nodes, with these devices.
pub(super) fn steps(nodes: &[Node], given: &[PathBuf]) -> Vec<MountStep> {
    let mut first = Vec::new();
    let mut mounts = vec![MountStep::Devices { given: given.to_owned() }, MountStep::Processes];
    for (index, node) in nodes.iter().enumerate().filter(|(index, _)| !is_closed(nodes, *index)) {
        let openings = if node.state.covers() { openings(nodes, index) } else { Vec::new() };
        mounts.push(match &node.state {
            NodeState::Hidden | NodeState::Closed if node.kind == PathKind::Directory => {
                MountStep::HideDirectory { path: node.path.clone(), openings }
            }
            NodeState::Hidden | NodeState::Closed => MountStep::HideFile { path: node.path.clone() },
            NodeState::ReadOnly => MountStep::Show { path: node.path.clone(), writable: Writable::No },
            NodeState::ReadWrite => MountStep::Show { path: node.path.clone(), writable: Writable::Yes },
            NodeState::Resolver => MountStep::Resolver { path: node.path.clone() },
            NodeState::Own(source) => {
                if let (OwnSource::Plain(directory), false) = (source, openings.is_empty()) {
                    first.push(MountStep::Prepare { directory: directory.clone(), openings });
                }
                MountStep::Own { path: node.path.clone(), source: source.clone() }
            }
            NodeState::Temp(directory) => {
                if !openings.is_empty() {
                    first.push(MountStep::Prepare { directory: directory.clone(), openings });
                }
                MountStep::Temp { directory: directory.clone() }
            }
        });
    }
    first.extend(pins(nodes));
    first.extend(mounts);
    first
}

fn openings(nodes: &[Node], around: usize) -> Vec<Opening> {
    let Some(parent) = nodes.get(around) else { return Vec::new() };
    let inside = nodes.iter().enumerate().filter(|(_, node)| node.parent == Some(around));
    inside
        .filter_map(|(index, node)| {
            let path = node.path.strip_prefix(&parent.path).ok()?.to_owned();
            Some(Opening { path, kind: node.kind, is_closed: is_closed(nodes, index) })
        })
        .collect()
}

/// Returns true for a closed directory in which nothing is shown: it is a name, and nothing is mounted on it.
fn is_closed(nodes: &[Node], index: usize) -> bool {
    nodes.get(index).is_some_and(|node| node.state == NodeState::Closed)
        && !nodes.iter().any(|node| node.parent == Some(index))
}

/// Returns the directories between a writable tree and its protected places, shallow first.
fn pins(nodes: &[Node]) -> Vec<MountStep> {
    let mut paths = BTreeSet::new();
    for node in nodes {
        let Some(parent) = node.parent.and_then(|index| nodes.get(index)) else { continue };
        let root = match &parent.state {
            NodeState::ReadWrite => &parent.path,
            // Directories created in it can be renamed through `/tmp`, but the mounts are elsewhere.
            NodeState::Temp(directory) | NodeState::Own(OwnSource::Plain(directory)) => directory,
            NodeState::Hidden
            | NodeState::Closed
            | NodeState::ReadOnly
            | NodeState::Resolver
            // A directory that is in the machine's layer cannot be renamed in an overlay.
            | NodeState::Own(OwnSource::Layered { .. } | OwnSource::Branch { .. }) => continue,
        };
        let Ok(below) = node.path.strip_prefix(&parent.path) else { continue };
        paths.extend(
            below.ancestors().skip(1).filter(|way| !way.as_os_str().is_empty()).map(|way| root.join(way)),
        );
    }
    paths.into_iter().map(|path| MountStep::Pin { path }).collect()
}
