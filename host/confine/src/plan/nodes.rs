//! From places to mounts: one node for each place whose state differs from the tree it lies in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Opening, PathKind, Step, Writable};
use crate::{Access, HIDDEN_UNLESS_SHOWN, PlanError, Profile};

/// The sandbox puts its own there.
const OWN: [&str; 2] = ["/dev", "/proc"];
const TEMP: &str = "/tmp";
/// What programs read to find the name service; the second is where that is a link to under Windows. Elsewhere it is a
/// plain file, or a link to something that is hidden, and what programs do without it suits the sandbox.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/mnt/wsl/resolv.conf"];

/// A path whose state differs from that of the tree around it.
pub(super) struct Node {
    path: PathBuf,
    state: State,
    /// The node in whose tree this one lies; none for the system itself.
    parent: Option<usize>,
    kind: PathKind,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    Hidden,
    ReadOnly,
    ReadWrite,
    /// A writable directory from elsewhere: nothing of what lies below on the host is seen.
    Temp(PathBuf),
    /// A file of the sandbox's own.
    Resolver,
}

impl State {
    /// Whether a place below has to be given a name to be mounted on.
    fn covers(&self) -> bool {
        match self {
            Self::Hidden | Self::Temp(_) => true,
            Self::ReadOnly | Self::ReadWrite | Self::Resolver => false,
        }
    }

    /// Whether a place inside needs no mount of its own for this access.
    fn gives(&self, access: Access) -> bool {
        match (self, access) {
            // What only takes away has nothing to take where all is hidden, or where another directory is seen.
            (Self::Hidden | Self::Temp(_), Access::Hidden | Access::Unwritable)
            | (Self::ReadOnly, Access::Unwritable | Access::ReadOnly)
            | (Self::ReadWrite, Access::ReadWrite) => true,
            (Self::Resolver, _)
            | (Self::Hidden | Self::Temp(_), Access::ReadOnly | Access::ReadWrite)
            | (Self::ReadOnly, Access::Hidden | Access::ReadWrite)
            | (Self::ReadWrite, Access::Hidden | Access::Unwritable | Access::ReadOnly) => false,
        }
    }
}

/// Returns the nodes, every one after the node it lies in.
pub(super) fn collect(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<Vec<Node>, PlanError> {
    // Paths compare by components, so what lies around a place comes before it.
    let wanted = wanted(profile)?;
    let mut nodes = Nodes::default();
    nodes.push(Path::new(TEMP), temp(profile, kind)?, PathKind::Directory);
    for (path, access) in wanted {
        nodes.add(&path, access, kind)?;
    }
    for path in RESOLVERS.map(Path::new).into_iter().filter(|path| kind(path) == PathKind::File) {
        nodes.add_resolver(path);
    }
    Ok(nodes.all)
}

/// The nodes so far.
#[derive(Default)]
struct Nodes {
    all: Vec<Node>,
    /// Where the node of a path stands. Plain paths are alike only byte by byte.
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
            Access::Hidden => State::Hidden,
            Access::Unwritable | Access::ReadOnly => State::ReadOnly,
            Access::ReadWrite => State::ReadWrite,
        };
        self.push(path, state, kind);
        Ok(())
    }

    /// Where the file is in sight it is the sandbox's own: a search list of the host's would make other names of those
    /// that programs ask for, and every name has an address.
    fn add_resolver(&mut self, path: &Path) {
        if !self.state_around(path).covers() {
            self.push(path, State::Resolver, PathKind::File);
        }
    }

    fn push(&mut self, path: &Path, state: State, kind: PathKind) {
        let parent = self.around(path);
        self.places.insert(path.into(), self.all.len());
        self.all.push(Node { path: path.to_owned(), state, parent, kind });
    }

    /// The deepest node whose path leads to this one.
    fn around(&self, path: &Path) -> Option<usize> {
        path.ancestors().find_map(|above| self.places.get(above.as_os_str())).copied()
    }

    fn state_around(&self, path: &Path) -> &State {
        self.around(path).and_then(|index| self.all.get(index)).map_or(&State::ReadOnly, |node| &node.state)
    }
}

fn wanted(profile: &Profile) -> Result<BTreeMap<PathBuf, Access>, PlanError> {
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
    // Compared as bytes, because paths compare equal with `//`, `/.` and a slash at the end.
    let plain = rebuilt.as_os_str() == path.as_os_str();
    if plain && path.is_absolute() && !path.as_os_str().as_bytes().contains(&0) {
        return Ok(());
    }
    Err(PlanError::NotPlain { path: path.to_owned() })
}

fn temp(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<State, PlanError> {
    check_plain(&profile.temp)?;
    for path in [&profile.temp, Path::new(TEMP)] {
        if kind(path) != PathKind::Directory {
            return Err(PlanError::Temp { path: path.to_owned() });
        }
    }
    let is_the_hosts = profile.temp == Path::new(TEMP);
    Ok(if is_the_hosts { State::ReadWrite } else { State::Temp(profile.temp.clone()) })
}

/// Returns the steps for these nodes.
pub(super) fn steps(nodes: &[Node]) -> Vec<Step> {
    let mut first = Vec::new();
    let mut mounts = vec![Step::Devices, Step::Processes];
    for (index, node) in nodes.iter().enumerate() {
        let openings = if node.state.covers() { openings(nodes, index) } else { Vec::new() };
        mounts.push(match &node.state {
            State::Hidden if node.kind == PathKind::Directory => {
                Step::HideDirectory { path: node.path.clone(), openings }
            }
            State::Hidden => Step::HideFile { path: node.path.clone() },
            State::ReadOnly => Step::Show { path: node.path.clone(), writable: Writable::No },
            State::ReadWrite => Step::Show { path: node.path.clone(), writable: Writable::Yes },
            State::Resolver => Step::Resolver { path: node.path.clone() },
            State::Temp(directory) => {
                if !openings.is_empty() {
                    first.push(Step::Prepare { directory: directory.clone(), openings });
                }
                Step::Temp { directory: directory.clone() }
            }
        });
    }
    first.extend(pins(nodes));
    first.extend(mounts);
    first
}

fn openings(nodes: &[Node], around: usize) -> Vec<Opening> {
    let Some(parent) = nodes.get(around) else { return Vec::new() };
    let inside = nodes.iter().filter(|node| node.parent == Some(around));
    inside
        .filter_map(|node| {
            let path = node.path.strip_prefix(&parent.path).ok()?.to_owned();
            Some(Opening { path, kind: node.kind })
        })
        .collect()
}

/// Returns the directories between a writable tree and what is protected in it, shallow first.
fn pins(nodes: &[Node]) -> Vec<Step> {
    let mut paths = BTreeSet::new();
    for node in nodes {
        let Some(parent) = node.parent.and_then(|index| nodes.get(index)) else { continue };
        let root = match &parent.state {
            State::ReadWrite => &parent.path,
            // The directories made in it can be renamed through `/tmp`, but are mounted on elsewhere.
            State::Temp(directory) => directory,
            State::Hidden | State::ReadOnly | State::Resolver => continue,
        };
        let Ok(below) = node.path.strip_prefix(&parent.path) else { continue };
        paths.extend(
            below.ancestors().skip(1).filter(|way| !way.as_os_str().is_empty()).map(|way| root.join(way)),
        );
    }
    paths.into_iter().map(|path| Step::Pin { path }).collect()
}
