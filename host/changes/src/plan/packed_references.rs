//! References that the user has packed since. Git takes a loose reference before a packed one, so a former loose one would
//! hide the newer one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Planner;
use super::repositories::REFERENCES;
use super::step::{Act, Step, Why};
use super::version::{Origin, Version};
use crate::state::State;

/// The file in which git packs references: one a line, after its object.
const PACKED: &str = "packed-refs";

/// The packed references of repositories in which the user has changed them since.
pub(super) struct Packed(BTreeMap<PathBuf, Text>);

/// A file of packed references; `None` if it is too long to be read.
type Text = Option<Vec<u8>>;

impl Planner<'_> {
    /// Returns the packed references that the user has changed since, and that the plan leaves, of these repositories.
    pub(super) fn packed_since<'p>(
        &self,
        repositories: impl Iterator<Item = &'p PathBuf>,
        (steps, start): (&[Step], usize),
    ) -> io::Result<Packed> {
        let changed: BTreeSet<&Path> =
            steps.iter().filter(|step| !step.is_left()).map(|step| step.path.as_path()).collect();
        let mut packed = BTreeMap::new();
        for repository in repositories {
            let path = repository.join(PACKED);
            let Some(real) = self.real(&path).filter(|_| !changed.contains(path.as_path())) else { continue };
            let state = self.world.look(&real)?;
            let State::File(file) = &state else { continue };
            let text = self.world.text(&real, file)?;
            let version = Version { real: Some(real), ..Version::of(state, Origin::Disk) };
            if self.is_of_user(&version, start)? {
                packed.insert(repository.clone(), text);
            }
        }
        Ok(Packed(packed))
    }
}

impl Packed {
    /// Returns a step; if it would hide a reference that the user has packed, one that puts the former one beside instead.
    pub(super) fn or_left(&self, step: Step, repository: &Path) -> Step {
        if let Act::Restore(former @ State::File(_)) = &step.act
            && self.has(&step, repository)
        {
            let act = Act::Leave { why: Why::Changed, beside: Some(former.clone()) };
            return Step { act, ..step };
        }
        step
    }

    fn has(&self, step: &Step, repository: &Path) -> bool {
        let is_loose = step.now.as_ref().is_none_or(|now| !now.is_absent());
        let (Some(text), Ok(name)) = (self.0.get(repository), step.path.strip_prefix(repository)) else {
            return false;
        };
        if is_loose || !name.starts_with(REFERENCES) {
            return false;
        }
        let end = [b" ", name.as_os_str().as_bytes()].concat();
        let has_line = |text: &Vec<u8>| text.split(|byte| *byte == b'\n').any(|line| line.ends_with(&end));
        text.as_ref().is_none_or(has_line)
    }
}
