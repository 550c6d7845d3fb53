//! The record of a migration's changes. Each is recorded before it is made, so that it can be undone.
//!
//! The record holds the earlier texts, and is in the state directory. The copies beside the files are for people only,
//! because an agent may have written them.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_settings::{Disk as _, RealDisk, replace_file};
use portcullis_settings_format::Change;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::take_over::project_file;

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
        /// The project that it lies in, if it is the project's own.
        project: Option<PathBuf>,
        /// The copy of the earlier text beside it.
        copy: Option<PathBuf>,
        /// The earlier text; `None` if there was no file.
        earlier: Option<String>,
        /// The new text.
        text: String,
        /// The item that was removed from a list, if that is the only change.
        dropped: Option<(String, Value)>,
    },
    /// A file or directory was moved.
    Moved {
        /// The earlier path.
        from: PathBuf,
        /// The new one.
        to: PathBuf,
    },
    /// The extension of this program was installed where there was none.
    Installed {
        /// Its directory.
        place: PathBuf,
    },
}

/// A file to write, with its details for the record.
#[derive(Debug)]
pub(crate) struct NewText<'a> {
    /// The file.
    pub(crate) file: &'a Path,
    /// See [`Made::Wrote`].
    pub(crate) project: Option<&'a Path>,
    /// The expected current text of the file; a different one is an error.
    pub(crate) earlier: Option<&'a [u8]>,
    /// The new text.
    pub(crate) text: &'a str,
    /// See [`Made::Wrote`].
    pub(crate) dropped: Option<(String, Value)>,
}

/// The record of a migration. It is locked against other processes.
#[derive(Debug)]
pub(crate) struct Record {
    file: PathBuf,
    changes: Vec<Made>,
    _lock: fs::File,
}

impl Record {
    /// Opens the record: an earlier one is continued.
    pub(crate) fn open(state: &Path) -> anyhow::Result<Self> {
        let file = state.join(FILE);
        let reading = || format!("reading `{}`", file.display());
        let lock = lock(state).with_context(|| format!("locking `{}`", file.display()))?;
        let changes = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(reading)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(reading),
        };
        Ok(Self { file, changes, _lock: lock })
    }

    /// Returns what was changed, in order.
    pub(crate) fn changes(&self) -> &[Made] {
        &self.changes
    }

    /// Writes a file, with a copy of its earlier text beside it.
    pub(crate) fn write(
        &mut self,
        new: NewText<'_>,
        write: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let NewText { file, project, earlier, text, dropped } = new;
        let reading = || format!("reading `{}`", file.display());
        let now = match RealDisk.read(file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(reading),
        };
        if now.as_deref() != earlier {
            bail!("`{}` has changed in the meantime; run it again", file.display());
        }
        let earlier = now.map(String::from_utf8).transpose().with_context(reading)?;
        let copy = earlier.as_deref().map(|earlier| copy(file, project, earlier)).transpose()?;
        self.note(Made::Wrote {
            file: file.to_owned(),
            project: project.map(Path::to_owned),
            copy,
            earlier,
            text: text.to_owned(),
            dropped,
        })?;
        write()
    }

    /// Renames an extension to a hidden name in the same directory: pi does not load it, and agents cannot write there.
    pub(crate) fn hide(&mut self, from: &Path) -> anyhow::Result<()> {
        let mut name = std::ffi::OsString::from(".");
        name.push(from.file_name().context("an extension has a name")?);
        let to = free_name(&from.with_file_name(name));
        self.note(Made::Moved { from: from.to_owned(), to: to.clone() })?;
        fs::rename(from, &to).with_context(|| format!("moving `{}`", from.display()))
    }

    /// Records a change before it is made.
    pub(crate) fn note(&mut self, made: Made) -> anyhow::Result<()> {
        self.changes.push(made);
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        // The earlier texts may contain passwords of proxies, so other users must not read the record.
        let writing = || format!("writing `{}`", self.file.display());
        let fresh = self.file.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).with_context(writing)?;
        file.write_all(&serde_json::to_vec_pretty(&self.changes)?).with_context(writing)?;
        file.sync_all().with_context(writing)?;
        fs::rename(&fresh, &self.file).with_context(writing)
    }

    /// Undoes all changes, the newest first. Returns those that could not be undone, and why.
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

/// Locks the record, or fails if another process holds it.
fn lock(state: &Path) -> std::io::Result<fs::File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(state.join("migration.lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::Error(error)) => Err(error),
        Err(fs::TryLockError::WouldBlock) => {
            Err(std::io::Error::other("another `portcullis migrate` is running"))
        }
    }
}

/// Writes a copy beside a file. Only the user can read it, because the text may contain passwords.
fn copy(file: &Path, project: Option<&Path>, text: &str) -> anyhow::Result<PathBuf> {
    let copy = free_name(file);
    let copying = || format!("copying `{}`", file.display());
    match project {
        Some(project) => project_file::replace(project, &copy, Some(text)).with_context(copying)?,
        None => {
            // If a link appears at this name in the meantime, it is not followed.
            let mut options = fs::OpenOptions::new();
            let written = options.write(true).create_new(true).mode(0o600).open(&copy);
            written.and_then(|mut copy| copy.write_all(text.as_bytes())).with_context(copying)?;
        }
    }
    Ok(copy)
}

/// Undoes one change. Returns the reason if it cannot.
fn take_back(made: &Made, remove: impl Fn(&Path) -> anyhow::Result<()>) -> anyhow::Result<Option<String>> {
    match made {
        Made::Wrote { file, project, copy, earlier, text, dropped } => {
            let now = RealDisk.read(file).ok();
            let is = |text: Option<&str>| now.as_deref() == text.map(str::as_bytes);
            if is(earlier.as_deref()) {
                // It was never written, or is already undone.
                forget(copy.as_deref(), earlier.as_deref());
                return Ok(None);
            }
            let restored = match (is(Some(text)), dropped, &now) {
                (true, ..) => earlier.clone(),
                (false, Some((list, value)), Some(now)) => put_in(now, list, value),
                _ => None,
            };
            if restored.is_none() && !is(Some(text)) {
                let why = match copy {
                    Some(copy) => format!("its earlier text is in `{}`", copy.display()),
                    None => "there was no such file before".to_owned(),
                };
                return Ok(Some(format!("`{}` has changed since, and stays: {why}", file.display())));
            }
            restore(file, project.as_deref(), restored.as_deref())
                .with_context(|| format!("putting `{}` back", file.display()))?;
            forget(copy.as_deref(), earlier.as_deref());
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

/// Returns a text with an item put back into a list, or `None` if the list is gone.
fn put_in(now: &[u8], list: &str, value: &Value) -> Option<String> {
    Change::Append(vec![list.to_owned()], value.clone()).apply(std::str::from_utf8(now).ok()?).ok()
}

fn restore(file: &Path, project: Option<&Path>, text: Option<&str>) -> anyhow::Result<()> {
    match (project, text) {
        (Some(project), text) => project_file::replace(project, file, text),
        (None, Some(text)) => Ok(replace_file(file, text.as_bytes())?),
        (None, None) => Ok(fs::remove_file(file)?),
    }
}

/// Removes a copy after its text was restored.
fn forget(copy: Option<&Path>, earlier: Option<&str>) {
    let Some((copy, earlier)) = copy.zip(earlier) else { return };
    let is_plain = copy.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if is_plain && RealDisk.read(copy).is_ok_and(|bytes| bytes == earlier.as_bytes()) {
        // A copy that stays does no harm.
        let _stays = fs::remove_file(copy);
    }
}

/// Returns an unused name beside a file.
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

/// Fails if a file or directory cannot be written, so that the migration changes everything or nothing.
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
            let (file, earlier) = (self.at(name), fs::read(self.at(name)).ok());
            let new =
                NewText { file: &file, project: None, earlier: earlier.as_deref(), text, dropped: None };
            self.record().write(new, || Ok(replace_file(&file, text.as_bytes())?)).unwrap();
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
        world.record().hide(&world.at("extensions/one")).unwrap();
        assert!(world.at("extensions/.one.before-portcullis").is_dir());
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
        let file = world.at("old");
        let new = |earlier| NewText { file: &file, project: None, earlier, text: "after", dropped: None };
        let mut record = world.record();
        assert!(record.write(new(Some(b"other")), || Ok(())).is_err(), "it is not what was planned with");
        assert!(record.write(new(Some(b"before")), || bail!("no space")).is_err());
        assert!(Record::open(&world.at("state")).is_err(), "two at once would lose changes");
        drop(record);
        assert_eq!(world.undo(), [""; 0]);
        assert_eq!(world.text("old").as_deref(), Some("before"));
    }

    /// An agent may write a copy beside the file; if it were restored, the agent would control pi.
    #[test]
    fn nothing_is_taken_from_the_copy() {
        let world = World::new();
        fs::write(world.at("old"), "before").unwrap();
        world.write("old", "after");
        fs::write(world.at("old.before-portcullis"), "evil").unwrap();
        assert_eq!(world.undo(), [""; 0]);
        assert_eq!(world.text("old").as_deref(), Some("before"));
        assert_eq!(world.text("old.before-portcullis").as_deref(), Some("evil"), "it is not ours any more");
    }

    #[test]
    fn a_link_stays_a_link_and_others_read_no_earlier_text() {
        use std::os::unix::fs::PermissionsExt as _;
        let world = World::new();
        fs::write(world.at("target"), "password").unwrap();
        std::os::unix::fs::symlink(world.at("target"), world.at("old")).unwrap();
        world.write("old", "after");
        assert_eq!(world.text("target").as_deref(), Some("after"));
        for name in ["state/migration.json", "old.before-portcullis"] {
            let mode = fs::metadata(world.at(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
        }
        assert_eq!(world.undo(), [""; 0]);
        assert!(world.at("old").is_symlink());
        assert_eq!(world.text("target").as_deref(), Some("password"));
    }

    /// pi changes its settings often; an extension must still be restored.
    #[test]
    fn an_item_comes_back_into_a_list_that_changed_since() {
        let world = World::new();
        let (before, after) = (r#"{ "packages": ["a", "old"] }"#, r#"{ "packages": ["a"] }"#);
        fs::write(world.at("s"), before).unwrap();
        let file = world.at("s");
        let dropped = Some(("packages".to_owned(), "old".into()));
        let new =
            NewText { file: &file, project: None, earlier: Some(before.as_bytes()), text: after, dropped };
        world.record().write(new, || Ok(replace_file(&file, after.as_bytes())?)).unwrap();
        fs::write(&file, r#"{ "theme": "dark", "packages": ["a", "b"] }"#).unwrap();
        assert_eq!(world.undo(), [""; 0]);
        let now: Value = serde_json::from_str(&world.text("s").unwrap()).unwrap();
        assert_eq!(now, serde_json::json!({ "theme": "dark", "packages": ["a", "b", "old"] }));
    }
}
