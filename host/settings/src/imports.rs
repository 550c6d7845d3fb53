//! Remembers which settings files of other sandboxes were taken over, and warns when one has changed since.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_settings_format::error::shown;
use portcullis_settings_format::{Origin, Position, Warning};
use serde_json::Value as Json;

use crate::bosun_lists::value_with_lists;
use crate::disk::Disk;
use crate::json_differences::differences;
use crate::places::{Places, canonical};
use crate::settings_text;

/// The file with the records, in the state directory.
const FILE: &str = "imports.json";

/// The number of differences that a warning names.
const MOST_NAMED: usize = 4;

/// A settings file that was taken over.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ImportRecord {
    /// The file.
    pub file: PathBuf,
    /// The command that takes it over again.
    pub command: String,
    /// The project whose own file it is; `None` for a file of the user.
    pub project: Option<PathBuf>,
    /// What it said.
    pub settings: Json,
}

/// Remembers a file that was taken over, in place of an earlier record of it.
///
/// # Errors
/// When the record cannot be written.
pub fn record_import(places: &Places, record: ImportRecord, disk: &dyn Disk) -> io::Result<()> {
    let mut records = records(places, disk);
    records.retain(|known| (&known.file, &known.project) != (&record.file, &record.project));
    records.push(record);
    save(places, &records)
}

fn save(places: &Places, records: &[ImportRecord]) -> io::Result<()> {
    let text = serde_json::to_string_pretty(records).map_err(io::Error::other)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&places.state_directory)?;
    let file = places.state_directory.join(FILE);
    let fresh = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    io::Write::write_all(&mut options.open(&fresh)?, text.as_bytes())?;
    std::fs::rename(&fresh, &file)
}

/// Forgets the files that were taken over by a command that begins with these words.
///
/// # Errors
/// When the records cannot be written.
pub fn forget_imports(places: &Places, command: &str, disk: &dyn Disk) -> io::Result<()> {
    let mut records = records(places, disk);
    let count = records.len();
    records.retain(|known| !known.command.starts_with(command));
    if records.len() == count { Ok(()) } else { save(places, &records) }
}

/// Returns the records; none if there are none that can be read.
fn records(places: &Places, disk: &dyn Disk) -> Vec<ImportRecord> {
    let bytes = disk.read(&places.state_directory.join(FILE));
    bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Returns a warning for each file that says something else now than when it was taken over.
pub(crate) fn changed(places: &Places, disk: &dyn Disk) -> Vec<Warning> {
    let is_meant =
        |record: &ImportRecord| record.project.as_ref().is_none_or(|project| *project == places.workspace);
    records(places, disk)
        .iter()
        .filter(|record| is_meant(record))
        .filter_map(|record| warning(record, disk))
        .collect()
}

fn warning(record: &ImportRecord, disk: &dyn Disk) -> Option<Warning> {
    let inside = record.project.as_ref().map(|project| {
        let project = canonical(project, disk)?;
        settings_text::stays_inside(&record.file, &project, disk)
    });
    if let Some(Err(_)) = inside {
        // What a link of an agent leads to is not shown.
        return None;
    }
    let text = match read(&record.file, disk) {
        // Who has taken it over may remove it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => format!("it was taken over, and cannot be read any more: {error}"),
        Ok(now) => {
            let found = differences(&record.settings, rules_of(&record.file, &now));
            let named: Vec<&str> = found.iter().take(MOST_NAMED).map(String::as_str).collect();
            let more = match found.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            if found.is_empty() {
                return None;
            }
            format!(
                "it has changed since it was taken over, and the change has no effect: {}{more}; \
                 `{}` takes it over",
                named.join("; "),
                shown(&record.command),
            )
        }
    };
    let origin =
        Origin { file: record.file.clone(), pointer: String::new(), at: Position { line: 1, column: 1 } };
    Some(Warning { text, origin })
}

/// Returns the part of a file that is about the sandbox: bosun's file has other tables, which may hold secrets.
fn rules_of<'a>(file: &Path, settings: &'a Json) -> &'a Json {
    if is_toml(file) { value_with_lists(settings).unwrap_or(settings) } else { settings }
}

fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

/// Reads a settings file of another sandbox: TOML by its name, else JSON.
fn read(file: &Path, disk: &dyn Disk) -> io::Result<Json> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let text = String::from_utf8(disk.read(file)?).map_err(|_| invalid("it is no text".to_owned()))?;
    if is_toml(file) {
        return toml::from_str(&text).map_err(|error| invalid(error.to_string()));
    }
    let document = portcullis_settings_format::json::read(&text)
        .map_err(|fault| invalid(portcullis_settings_format::fault::invalid(file, fault).to_string()))?;
    Ok(document.to_json())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::disk::RealDisk;

    const COMMAND: &str = "portcullis migrate --from bosun --apply --replace";

    struct World {
        _top: tempfile::TempDir,
        places: Places,
        file: PathBuf,
    }

    fn world(text: &str) -> World {
        let top = tempfile::tempdir().unwrap();
        let project = top.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let places = Places::usual(&project, &top.path().join("home"));
        let file = project.join("config.toml");
        std::fs::write(&file, text).unwrap();
        let settings = rules_of(&file, &read(&file, &RealDisk).unwrap()).clone();
        let record = ImportRecord {
            file: file.clone(),
            command: COMMAND.to_owned(),
            project: Some(project),
            settings,
        };
        record_import(&places, record, &RealDisk).unwrap();
        World { _top: top, places, file }
    }

    fn warned(world: &World) -> Vec<String> {
        changed(&world.places, &RealDisk).into_iter().map(|warning| warning.text).collect()
    }

    const BEFORE: &str = "[sandbox]\ndeny_read = [\".ssh\"]\nallow_write = [\"workspace\"]\n";

    #[test]
    fn a_change_says_what_and_what_to_do() {
        let world = world(BEFORE);
        assert_eq!(warned(&world), [""; 0], "nothing has changed");
        std::fs::write(&world.file, format!("[model]\nkey = 'hunter2'\n{BEFORE}")).unwrap();
        assert_eq!(warned(&world), [""; 0], "other tables are about other things");
        std::fs::write(&world.file, BEFORE.replace(".ssh\"", ".ssh\", \".aws\"").replace("workspace", "src"))
            .unwrap();
        let [text] = warned(&world).try_into().unwrap();
        for part in ["`deny_read` gained `.aws`", "gained `src`", "lost `workspace`", COMMAND] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        let settings = rules_of(&world.file, &read(&world.file, &RealDisk).unwrap()).clone();
        let record = ImportRecord {
            file: world.file.clone(),
            command: COMMAND.to_owned(),
            project: Some(world.places.workspace.clone()),
            settings,
        };
        record_import(&world.places, record, &RealDisk).unwrap();
        assert_eq!(warned(&world), [""; 0], "it was taken over again");
    }

    #[test]
    fn only_what_can_be_told_is_told() {
        let world = world(BEFORE);
        std::fs::write(&world.file, "[sandbox\n").unwrap();
        assert!(warned(&world)[0].contains("cannot be read any more"));
        let secret = world.places.home.with_file_name("secret.toml");
        std::fs::write(&secret, "key = 'hunter2'\n").unwrap();
        std::fs::remove_file(&world.file).unwrap();
        std::os::unix::fs::symlink(&secret, &world.file).unwrap();
        assert_eq!(warned(&world), [""; 0], "a link out of the project is not followed");
        std::fs::remove_file(&world.file).unwrap();
        assert_eq!(warned(&world), [""; 0]);
        std::fs::write(&world.file, BEFORE.replace("workspace", "src")).unwrap();
        let elsewhere = Places { workspace: world.places.home.clone(), ..world.places.clone() };
        assert_eq!(changed(&elsewhere, &RealDisk), [], "the file of another project");
        forget_imports(&world.places, "portcullis migrate", &RealDisk).unwrap();
        assert_eq!(warned(&world), [""; 0]);
    }

    #[test]
    fn records_that_cannot_be_read_are_none() {
        let world = world(BEFORE);
        std::fs::write(world.places.state_directory.join(FILE), "{ broken").unwrap();
        assert_eq!(changed(&world.places, &RealDisk), []);
        let record = ImportRecord {
            file: "/x".into(),
            command: COMMAND.to_owned(),
            project: None,
            settings: json!({}),
        };
        record_import(&world.places, record, &RealDisk).unwrap();
        assert_eq!(records(&world.places, &RealDisk).len(), 1);
    }
}
