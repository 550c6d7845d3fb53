//! The sandbox's own directories that replace the machine's, besides the session's temporary directory.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::path_text;
use crate::rules::tops::Tops;

/// Names in a home directory, besides those that begin with a dot, in which tools keep their state.
const STATE: [&str; 4] = ["go", "nltk_data", "perl5", "scikit_learn_data"];

/// Directories of the sandbox's own. Paths are as commands and tools see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnPlaces {
    /// Directories of the session, such as `/var/tmp`.
    pub directories: Vec<PathBuf>,
    /// The private home, if there is one.
    pub home: Option<OwnHome>,
}

/// A home directory in which the state of tools is the project's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnHome {
    /// The home directory.
    pub path: PathBuf,
    /// Paths in the state of tools that are the machine's.
    pub machine: Tops,
    /// Paths in those that are the project's own again: caches in toolchains.
    pub caches: Tops,
}

/// The owner of a path in a home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHome<'a> {
    /// State of tools, the project's own, from this path on.
    Own(&'a Path),
    /// The machine's, from this path on.
    Machine(&'a Path),
}

impl OwnHome {
    /// Returns a private home at `path`, without paths of the machine so far.
    #[must_use]
    pub fn new(path: PathBuf, caches: Tops) -> Self {
        Self { path, machine: Tops::default(), caches }
    }

    /// Returns true if a path is, or lies in, one of the names in which tools keep their state.
    #[must_use]
    pub fn is_state(&self, path: &Path) -> bool {
        let name = path.strip_prefix(&self.path).ok().and_then(|below| below.iter().next());
        name.is_some_and(is_state)
    }

    /// Returns the owner of a path below the home; `None` if it is not state of tools.
    pub(super) fn find<'a>(&'a self, path: &'a Path) -> Option<InHome<'a>> {
        if !self.is_state(path) {
            return None;
        }
        let state = path.ancestors().find(|above| above.parent() == Some(&self.path)).unwrap_or(path);
        Some(match (self.machine.innermost(path), self.caches.innermost(path)) {
            // Both hold the path, so the longer one lies in the other.
            (Some(top), cache) if cache.is_none_or(|cache| cache != top && top.starts_with(cache)) => {
                InHome::Machine(top)
            }
            (_, Some(top)) => InHome::Own(top),
            (_, None) => InHome::Own(state),
        })
    }

    /// Notes that rules name these paths, which are the machine's therefore, and open some for writing.
    fn leave<'a>(&mut self, named: impl Iterator<Item = &'a Path>, written: &[&Path]) {
        let named: HashSet<&Path> = named.filter(|path| self.is_state(path)).collect();
        let is_left =
            |cache: &Path| named.contains(cache) || written.iter().any(|top| cache.starts_with(top));
        self.caches.retain(|cache| !is_left(cache));
        self.machine.extend(named.into_iter().map(Path::to_owned));
    }
}

impl OwnPlaces {
    /// Returns the places without those that rules give to the machine: `opened` are the paths that rules open, each
    /// with whether it is for writing, and `named` all that rules name.
    pub(super) fn without<'a>(
        mut self,
        opened: &[(&Path, bool)],
        named: impl Iterator<Item = &'a Path>,
        is_closed: impl Fn(&Path) -> bool,
    ) -> Self {
        self.directories
            .retain(|directory| directory.is_absolute() && !opened.iter().any(|(path, _)| path == directory));
        self.home = self.home.filter(|home| {
            is_closed(&home.path) && !opened.iter().any(|(opened, _)| home.path.starts_with(opened))
        });
        if let Some(home) = &mut self.home {
            let written: Vec<&Path> =
                opened.iter().filter(|(_, is_written)| *is_written).map(|(path, _)| *path).collect();
            home.leave(named, &written);
        }
        self
    }
}

fn is_state(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") || STATE.iter().any(|known| name == *known)
}

/// The places as text, for another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnData {
    directories: Vec<String>,
    home: Option<[Vec<String>; 3]>,
}

impl OwnData {
    pub(super) fn from_places(own: &OwnPlaces) -> Self {
        let texts =
            |paths: std::slice::Iter<'_, PathBuf>| paths.map(|path| path_text::encode(path)).collect();
        let home = own.home.as_ref().map(|home| {
            let path = std::slice::from_ref(&home.path).iter();
            [texts(path), texts(home.machine.iter()), texts(home.caches.iter())]
        });
        Self { directories: texts(own.directories.iter()), home }
    }

    /// Returns the places, or the text that is not a path.
    pub(super) fn places(self) -> Result<OwnPlaces, String> {
        let path = |text: String| path_text::decode(&text).ok_or(text);
        let paths = |texts: Vec<String>| texts.into_iter().map(path).collect::<Result<Vec<_>, _>>();
        let home = match self.home {
            None => None,
            Some([home, machine, caches]) => Some(OwnHome {
                path: paths(home)?.pop().ok_or_else(String::new)?,
                machine: paths(machine)?.into_iter().collect(),
                caches: paths(caches)?.into_iter().collect(),
            }),
        };
        Ok(OwnPlaces { directories: paths(self.directories)?, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_tools_is_what_has_a_dot_or_is_known() {
        let mut home = OwnHome::new("/home/u".into(), Tops::from_iter(["/home/u/.cargo/registry".into()]));
        home.leave(
            ["/home/u/.cargo", "/home/u/.cargo/registry/src", "/home/u/x", "/etc"].map(Path::new).into_iter(),
            &[],
        );
        let at = |path: &'static str| home.find(Path::new(path));
        let own = |top: &'static str| Some(InHome::Own(Path::new(top)));
        let machine = |top: &'static str| Some(InHome::Machine(Path::new(top)));
        assert_eq!(at("/home/u"), None);
        assert_eq!(at("/home/u/Documents/.x"), None);
        assert_eq!(at("/home/v/.npm"), None);
        assert_eq!(at("/home/u/.npm/_cacache/x"), own("/home/u/.npm"));
        assert_eq!(at("/home/u/go"), own("/home/u/go"));
        assert_eq!(at("/home/u/.cargo/bin/x"), machine("/home/u/.cargo"));
        assert_eq!(at("/home/u/.cargo/registry/index"), own("/home/u/.cargo/registry"));
        assert_eq!(at("/home/u/.cargo/registry/src/x"), machine("/home/u/.cargo/registry/src"));
        assert_eq!(
            OwnData::from_places(&OwnPlaces { directories: vec![], home: Some(home.clone()) })
                .places()
                .unwrap()
                .home,
            Some(home)
        );
    }
}
