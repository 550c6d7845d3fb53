//! Finds processes, mounts and files that a test run leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Directories in which tests make temporary ones.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// How the names of the tests' temporary directories begin; the second is the default of the crate `tempfile`.
const NAMES: [&str; 2] = ["portcullis", ".tmp"];
/// Where copies of programs are that an ordinary user can run, and how their names begin (`tests/it/src/reach.rs`).
const COPIES_IN: [&str; 2] = ["/opt", "/var/tmp"];
const COPIES: &str = "portcullis-it-tools";
/// How the line of a control group begins.
const GROUP: &str = "control group ";
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// How deep control groups are searched.
const DEPTH: usize = 8;
/// The time that ending processes may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The processes, mounts, control groups and temporary directories that a test run can make, each as a line of text.
#[derive(Debug)]
pub(super) struct Traces {
    target: PathBuf,
    found: BTreeSet<String>,
}

impl Traces {
    /// Returns the traces that are on the machine already. Processes are those of programs in `target`.
    pub(super) fn before(target: &Path) -> Self {
        Self { target: target.to_owned(), found: traces(target) }
    }

    /// Removes the copies of programs that the tests share, and checks that there are no other traces, after waiting
    /// for processes that are ending.
    ///
    /// # Errors
    ///
    /// Returns the new ones.
    pub(super) fn check(&self) -> Result<()> {
        for place in COPIES_IN.map(Path::new) {
            for name in entries(place).iter().filter(|name| name.starts_with(COPIES)) {
                fs::remove_dir_all(place.join(name)).with_context(|| format!("removing `{name}`"))?;
            }
        }
        // The next session would remove the groups of hosts that were killed.
        for group in self.new_ones().iter().filter_map(|line| line.strip_prefix(GROUP)) {
            // One that is in use stays, and is named below.
            let _in_use = fs::remove_dir(group);
        }
        let start = Instant::now();
        loop {
            let left = self.new_ones();
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("the tests left behind:\n  {}", left.join("\n  "));
            }
            sleep(Duration::from_millis(200));
        }
    }

    fn new_ones(&self) -> Vec<String> {
        traces(&self.target).difference(&self.found).cloned().collect()
    }
}

fn traces(target: &Path) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = processes(target).into_iter().collect();
    found.extend(mounts());
    groups(Path::new(CONTROL_GROUPS), DEPTH, &mut found);
    for directory in TEMPORARY.map(Path::new) {
        let names =
            entries(directory).into_iter().filter(|name| NAMES.iter().any(|start| name.starts_with(start)));
        found.extend(names.map(|name| format!("{}", directory.join(name).display())));
    }
    found
}

/// Returns the names in a directory; none if it cannot be listed.
fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the processes other than this one that run a program below `target`.
fn processes(target: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let pids = entries(Path::new("/proc")).into_iter().filter(|name| *name != own);
    let running = pids.filter_map(|pid| {
        let program = fs::read_link(Path::new("/proc").join(&pid).join("exe")).ok()?;
        program.starts_with(target).then(|| format!("process {pid}: {}", program.display()))
    });
    running.collect()
}

fn mounts() -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let temporary = points.filter(|point| TEMPORARY.iter().any(|top| Path::new(point).starts_with(top)));
    temporary.map(|point| format!("mount {point}")).collect()
}

/// Adds the control groups of the product below `group`.
fn groups(group: &Path, depth: usize, found: &mut BTreeSet<String>) {
    for name in entries(group) {
        let inner = group.join(&name);
        if !inner.is_dir() || inner.is_symlink() {
            continue;
        }
        if name.starts_with("portcullis-") {
            found.insert(format!("{GROUP}{}", inner.display()));
        }
        if depth > 0 {
            groups(&inner, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_left_is_named() -> Result<()> {
        let before = traces(Path::new("/nothing/there"));
        let made = format!("/tmp/portcullis-xtask-{}", std::process::id());
        fs::create_dir(&made)?;
        let after = traces(Path::new("/nothing/there"));
        fs::remove_dir(&made)?;
        assert!(after.difference(&before).any(|line| *line == made));
        Ok(())
    }

    #[test]
    fn a_process_that_is_left_is_named() -> Result<()> {
        let target = std::env::temp_dir().join(format!("xtask-{}", std::process::id()));
        fs::create_dir(&target)?;
        fs::copy("/bin/sleep", target.join("sleep"))?;
        let mut child = std::process::Command::new(target.join("sleep")).arg("60").spawn()?;
        let name = format!("process {}: ", child.id());
        let seen = processes(&target);
        child.kill()?;
        child.wait()?;
        let left = processes(&target);
        fs::remove_dir_all(&target)?;
        assert!(matches!(seen.as_slice(), [one] if one.starts_with(&name)), "{seen:?}");
        assert!(left.is_empty(), "{left:?}");
        Ok(())
    }
}
