//! Notices edits in the folder of a policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::folder::Project;
use super::source::{MADE_ELSEWHERE, files};

/// Time between two looks at the files: short enough for a person.
const PAUSE: Duration = Duration::from_millis(200);

/// The files of a policy, as they were last seen.
#[derive(Debug)]
pub struct Edits {
    folder: PathBuf,
    seen: BTreeMap<PathBuf, Option<(SystemTime, u64)>>,
}

impl Edits {
    /// Looks at the manifest, the source and the cases in a folder.
    #[must_use]
    pub fn since_now(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), seen: look(folder) }
    }

    /// Waits until a file has changed since the last look, and until an editor has written all of its files.
    pub fn wait(&mut self) {
        loop {
            let now = look(&self.folder);
            let is_quiet = now == self.seen;
            self.seen = now;
            if !is_quiet {
                break;
            }
            sleep(PAUSE);
        }
        loop {
            sleep(PAUSE);
            let now = look(&self.folder);
            if now == self.seen {
                return;
            }
            self.seen = now;
        }
    }
}

/// Returns time and length of each file. What cannot be read has none: that is for the build to report.
fn look(folder: &Path) -> BTreeMap<PathBuf, Option<(SystemTime, u64)>> {
    let source = Project::open(folder).and_then(|project| project.source()).ok();
    let folders = std::iter::once(folder).chain(source.as_deref());
    folders
        .flat_map(|folder| {
            let names = files(folder).unwrap_or_default();
            names.into_values().chain([folder.join(MADE_ELSEWHERE)])
        })
        .map(|file| {
            let metadata = fs::metadata(&file).ok();
            let seen = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
            (file, seen)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn an_edit_is_noticed_and_what_a_build_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("build")).unwrap();
        fs::write(at("policy.js"), "1").unwrap();
        let mut edits = Edits::since_now(folder.path());
        let (sender, noticed) = mpsc::channel();
        let waiting = thread::spawn(move || {
            for _ in 0..2 {
                edits.wait();
                sender.send(()).unwrap();
            }
        });
        fs::write(at("build/x.wasm"), "built").unwrap();
        noticed.recv_timeout(5 * PAUSE).unwrap_err();
        fs::write(at("policy.js"), "22").unwrap();
        noticed.recv_timeout(Duration::from_secs(30)).unwrap();
        fs::remove_file(at("policy.js")).unwrap();
        noticed.recv_timeout(Duration::from_secs(30)).unwrap();
        waiting.join().unwrap();
    }
}
