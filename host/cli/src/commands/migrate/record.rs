//! What a migration changed: recorded before each change, so that it can be taken back.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_settings::{Disk as _, RealDisk};
use serde::{Deserialize, Serialize};

/// The record, in the state directory.
const FILE: &str = "migration.json";
/// The end of the name of a copy.
const COPY: &str = "before-portcullis";

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub(crate) enum Made {
    /// A file was written.
    Wrote {
        /// The file.
        file: PathBuf,
        /// The copy of the earlier text; `None` if there was no file.
        copy: Option<PathBuf>,
        /// The new text.
        text: String,
    },
    /// A file or directory was moved.
    Moved {
        /// The earlier path.
        from: PathBuf,
        /// The new one.
        to: PathBuf,
    },
    /// The extension of this program was installed, where none was.
    Installed {
        /// Its directory.
        place: PathBuf,
    },
}

/// The record of a migration.
#[derive(Debug)]
pub(crate) struct Record {
    file: PathBuf,
    changes: Vec<Made>,
}

impl Record {
    /// Opens the record: an earlier one is continued.
    pub(crate) fn open(state: &Path) -> anyhow::Result<Self> {
        let file = state.join(FILE);
        let changes = match fs::read(&file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).with_context(|| format!("reading `{}`", file.display()))?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| format!("reading `{}`", file.display())),
        };
        Ok(Self { file, changes })
    }

    /// Returns what was changed, in order.
    pub(crate) fn changes(&self) -> &[Made] {
        &self.changes
    }

    /// Writes a file, with a copy of its earlier text beside it.
    pub(crate) fn write(
        &mut self,
        file: &Path,
        text: &str,
        write: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let copy = match RealDisk.read(file) {
            Ok(earlier) => {
                let copy = free_name(file);
                // A name that appears meanwhile, such as a link, is not written through.
                let written = fs::OpenOptions::new().write(true).create_new(true).open(&copy);
                let written = written.and_then(|mut copy| copy.write_all(&earlier));
                written.with_context(|| format!("copying `{}`", file.display()))?;
                Some(copy)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("reading `{}`", file.display())),
        };
        self.note(Made::Wrote { file: file.to_owned(), copy, text: text.to_owned() })?;
        write()
    }

    /// Moves a file or directory.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let parent = to.parent().context("a place to move to has a parent")?;
        fs::create_dir_all(parent).with_context(|| format!("making `{}`", parent.display()))?;
        self.note(Made::Moved { from: from.to_owned(), to: to.to_owned() })?;
        fs::rename(from, to).with_context(|| format!("moving `{}`", from.display()))
    }

    /// Notes a change that follows.
    pub(crate) fn note(&mut self, made: Made) -> anyhow::Result<()> {
        self.changes.push(made);
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        let writing = || format!("writing `{}`", self.file.display());
        if let Some(parent) = self.file.parent() {
            fs::create_dir_all(parent).with_context(writing)?;
        }
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, serde_json::to_vec_pretty(&self.changes)?).with_context(writing)?;
        fs::rename(&fresh, &self.file).with_context(writing)
    }

    /// Takes everything back, the newest change first. Returns what could not be taken back, and why.
    pub(crate) fn undo(
        mut self,
        remove: impl Fn(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        let mut kept = Vec::new();
        while let Some(made) = self.changes.last() {
            match take_back(made, &remove) {
                Ok(None) => {}
                Ok(Some(why)) => kept.push(why),
                Err(error) => {
                    return Err(error.context("nothing more was taken back; run it again when this is fixed"));
                }
            }
            self.changes.pop();
            self.save()?;
        }
        fs::remove_file(&self.file).with_context(|| format!("removing `{}`", self.file.display()))?;
        Ok(kept)
    }
}

/// Takes one change back. Returns the reason if it stays.
fn take_back(made: &Made, remove: impl Fn(&Path) -> anyhow::Result<()>) -> anyhow::Result<Option<String>> {
    match made {
        Made::Wrote { file, copy, text } => {
            let now = fs::read(file).ok();
            let earlier = copy.as_ref().map(|copy| (copy, fs::read(copy).ok()));
            if now.as_deref() != Some(text.as_bytes()) {
                // It was never written, or was taken back already.
                let is_earlier = earlier.as_ref().map_or(now.is_none(), |(_, earlier)| *earlier == now);
                let why = match &earlier {
                    Some((copy, _)) => format!("its earlier text is in `{}`", copy.display()),
                    None => "there was no such file before".to_owned(),
                };
                let text = format!("`{}` has changed since, and stays: {why}", file.display());
                return Ok((!is_earlier).then_some(text));
            }
            match earlier {
                Some((copy, _)) => {
                    fs::rename(copy, file).with_context(|| format!("putting `{}` back", file.display()))?
                }
                None => fs::remove_file(file).with_context(|| format!("removing `{}`", file.display()))?,
            }
            Ok(None)
        }
        Made::Moved { from, to } => {
            if to.symlink_metadata().is_err() {
                let is_back = from.symlink_metadata().is_ok();
                return Ok((!is_back).then(|| format!("`{}` is gone", to.display())));
            }
            if from.symlink_metadata().is_ok() {
                return Ok(Some(format!(
                    "`{}` is there again; the earlier one is `{}`",
                    from.display(),
                    to.display()
                )));
            }
            fs::rename(to, from).with_context(|| format!("moving `{}` back", to.display()))?;
            Ok(None)
        }
        Made::Installed { place } => {
            if place.symlink_metadata().is_ok() {
                remove(place)?;
            }
            Ok(None)
        }
    }
}

/// Returns a name beside a file that no file has.
fn free_name(file: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{COPY}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        file.with_file_name(name)
    };
    (1..).map(name).find(|copy| copy.symlink_metadata().is_err()).unwrap_or_else(|| name(0))
}

/// Fails if a file or directory cannot be written, so that nothing is done by halves.
pub(crate) fn ensure_writable(path: &Path) -> anyhow::Result<()> {
    let there = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(path);
    match rustix::fs::access(there, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => bail!("`{}` cannot be written: {error}; nothing was changed", there.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        top: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self { top: tempfile::tempdir().unwrap() }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.top.path().join(name)
        }

        fn record(&self) -> Record {
            Record::open(&self.at("state")).unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            let file = self.at(name);
            self.record().write(&file, text, || Ok(fs::write(&file, text)?)).unwrap();
        }

        fn undo(&self) -> Vec<String> {
            self.record().undo(|place| Ok(fs::remove_dir_all(place)?)).unwrap()
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.at(name)).ok()
        }
    }

    #[test]
    fn everything_is_as_it_was() {
        let world = World::new();
        fs::write(world.at("old"), "before").unwrap();
        fs::create_dir_all(world.at("extensions/one")).unwrap();
        world.write("old", "after");
        world.write("fresh", "new");
        world.write("old", "after that");
        world.record().rename(&world.at("extensions/one"), &world.at("aside/one")).unwrap();
        fs::create_dir(world.at("ours")).unwrap();
        world.record().note(Made::Installed { place: world.at("ours") }).unwrap();
        assert_eq!(world.text("old.before-portcullis").as_deref(), Some("before"));
        assert_eq!(world.text("old.before-portcullis-2").as_deref(), Some("after"));
        assert_eq!(world.undo(), [""; 0]);
        assert_eq!((world.text("old").as_deref(), world.text("fresh")), (Some("before"), None));
        assert!(world.at("extensions/one").is_dir() && !world.at("ours").exists());
        assert!(!world.at("state").join(FILE).exists() && !world.at("old.before-portcullis").exists());
    }

    #[test]
    fn what_was_changed_since_stays() {
        let world = World::new();
        fs::write(world.at("old"), "before").unwrap();
        world.write("old", "after");
        fs::write(world.at("old"), "edited").unwrap();
        let kept = world.undo();
        assert!(matches!(kept.as_slice(), [one] if one.contains("old.before-portcullis")), "{kept:?}");
        assert_eq!(world.text("old").as_deref(), Some("edited"));
        assert_eq!(world.text("old.before-portcullis").as_deref(), Some("before"));
    }

    #[test]
    fn a_change_that_was_not_made_is_no_fault() {
        let world = World::new();
        fs::write(world.at("old"), "before").unwrap();
        let mut record = world.record();
        assert!(record.write(&world.at("old"), "after", || bail!("no space")).is_err());
        assert_eq!(world.undo(), [""; 0]);
        assert_eq!(world.text("old").as_deref(), Some("before"));
    }
}
