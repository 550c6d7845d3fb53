//! Where the audit log is sent: the files that name collectors, and the process that sends while a session runs.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context as _, bail};
use portcullis_export::Destination;
use portcullis_packs::{StoreError, read_text};

use crate::process_env::{OWN_PROGRAM, ProcessEnv};
use crate::streams::complain;

/// The arguments of the process that sends while a session runs.
const IN_BACKGROUND: [&str; 3] = ["audit", "export", "--background"];
/// Name of a file with collectors.
const FILE: &str = "export.toml";
/// The directory of the machine's settings.
const MACHINE: &str = "/etc/portcullis";
/// The largest file with collectors, in bytes.
const FILE_MAX: usize = 64 << 10;

/// Returns the files that name collectors: the machine's and the user's.
#[must_use]
pub fn files(agent_directory: &Path) -> [PathBuf; 2] {
    [Path::new(MACHINE).join(FILE), agent_directory.join("sandbox").join(FILE)]
}

/// Returns the directory with how far each collector has received the log.
#[must_use]
pub fn state(around: &ProcessEnv) -> PathBuf {
    around.state.join("export")
}

/// Reads the collectors, the machine's first. A file with a mistake gives an error and does not hide the other's.
#[must_use]
pub fn destinations(agent_directory: &Path) -> (Vec<Destination>, Vec<anyhow::Error>) {
    destinations_of(&files(agent_directory))
}

fn destinations_of(files: &[PathBuf]) -> (Vec<Destination>, Vec<anyhow::Error>) {
    let (mut found, mut errors): (Vec<Destination>, _) = (Vec::new(), Vec::new());
    for file in files {
        let read = read_file(file).and_then(|destinations| {
            let taken = destinations.iter().find(|one| found.iter().any(|other| other.name == one.name));
            if let Some(taken) = taken {
                bail!("the machine's file already has a destination `{}`; choose another name", taken.name);
            }
            Ok(destinations)
        });
        match read.with_context(|| format!("no records go to the collectors in `{}`", file.display())) {
            Ok(destinations) => found.extend(destinations),
            Err(error) => errors.push(error),
        }
    }
    (found, errors)
}

fn read_file(file: &Path) -> anyhow::Result<Vec<Destination>> {
    match read_text(file, FILE_MAX) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        text => Ok(portcullis_export::parse(&text?)?),
    }
}

/// The process that sends the log while a session runs. When this is dropped, it sends the remaining records and ends.
#[derive(Debug)]
pub(crate) struct InBackground {
    _until_this_closes: ChildStdin,
}

impl InBackground {
    /// Starts one if collectors are named. Decisions do not depend on it, so a failure is only told.
    pub(crate) fn start(around: &ProcessEnv) -> Option<Self> {
        let (destinations, errors) = destinations(&around.agent_directory);
        for error in &errors {
            complain(error);
        }
        if destinations.is_empty() {
            return None;
        }
        let mut process = Command::new(OWN_PROGRAM);
        // Not in the group of the terminal, whose keys are for the session.
        process.args(IN_BACKGROUND).process_group(0).current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match process.spawn().context("starting the process that sends the audit log to collectors") {
            Ok(child) => child.stdin.map(|stdin| Self { _until_this_closes: stdin }),
            Err(error) => {
                complain(&error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[[destination]]\nname = \"team\"\nformat = \"journald\"\n";

    #[test]
    fn a_mistake_in_one_file_does_not_hide_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["machine", "user"].map(|name| directory.path().join(name));
        let names = || {
            let (found, errors) = destinations_of(&files);
            (found.into_iter().map(|one| one.name).collect::<Vec<_>>(), errors)
        };
        assert!(names().0.is_empty() && names().1.is_empty(), "no file is no mistake");
        let [machine, user] = &files;
        std::fs::write(machine, ONE).unwrap();
        std::fs::write(user, "[[destination]]\nname = 5\n").unwrap();
        let (found, errors) = names();
        assert_eq!((found.as_slice(), errors.len()), (["team".to_owned()].as_slice(), 1));
        let text = format!("{:#}", errors[0]);
        assert!(text.contains("/user`") && text.contains("line 2"), "{text}");
        // The user cannot take the machine's name.
        std::fs::write(user, ONE).unwrap();
        let (found, errors) = names();
        assert_eq!((found.len(), errors.len()), (1, 1));
        assert!(format!("{:#}", errors[0]).contains("choose another name"));
        std::fs::write(user, ONE.replace("team", "mine")).unwrap();
        assert_eq!(names().0, ["team", "mine"]);
    }
}
