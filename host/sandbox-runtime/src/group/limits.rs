//! Converts limits to the values of a group's files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use portcullis_sandbox::{Controller, Limits};
use portcullis_syscall_broker::threads;
use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::{Errno, write};

/// Memory that a group counts in addition to that of commands. The allowance ensures that the keeper's own check, which
/// measures commands alone and reports the limit, triggers first.
const OWN_BYTES: u64 = 64 << 20;
/// Room for the keeper, and an init for each command.
const OWN_PROCESSES: u64 = 64;

/// The limits that a group enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    memory: Option<u64>,
    processes: Option<u64>,
}

impl Bounds {
    /// Returns the limits for all commands together; `None` if there are no such limits.
    pub(super) fn for_all_commands(limits: Limits) -> Option<Self> {
        let processes = limits.processes.map(|limit| {
            let own = OWN_PROCESSES.saturating_add(threads());
            limit.saturating_add(own)
        });
        let memory = limits.memory_bytes.map(|limit| limit.saturating_add(OWN_BYTES));
        (memory.is_some() || processes.is_some()).then_some(Self { memory, processes })
    }

    /// Writes the limits to the files of the group, for the controllers that it has.
    pub(super) fn put_on(self, group: BorrowedFd<'_>, controllers: &[Controller]) -> io::Result<()> {
        let has = |controller| controllers.contains(&controller);
        if let Some(bytes) = self.memory.filter(|_| has(Controller::Memory)) {
            set(group, "memory.max", bytes)?;
            // Swapped pages are not counted by `memory.max`. A kernel may be built without swap accounting.
            match set(group, "memory.swap.max", 0) {
                Err(Errno::NOENT) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(number) = self.processes.filter(|_| has(Controller::Processes)) {
            set(group, "pids.max", number)?;
        }
        if let Some(bytes) = self.memory.filter(|_| has(Controller::HugePages)) {
            for file in huge_page_files(group)? {
                set(group, &file, bytes)?;
            }
        }
        Ok(())
    }
}

/// Returns one pair of files for each page size: for used pages, and for reserved ones (`rsvd`).
fn huge_page_files(group: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in Dir::read_from(group)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("hugetlb.") && name.ends_with(".max") {
            files.push(name);
        }
    }
    Ok(files)
}

fn set(group: BorrowedFd<'_>, file: &str, value: u64) -> rustix::io::Result<()> {
    put(group, file, &value.to_string())
}

/// Writes a value to a file of a group, with one write(2).
pub(super) fn put(group: impl AsFd, file: &str, value: &str) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat(group, file, flags, Mode::empty())?;
    write(file, value.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    const LIMITS: Limits = Limits {
        open_files: Some(1),
        processes: Some(100),
        file_bytes: Some(1),
        memory_bytes: Some(1 << 30),
        data_bytes: None,
        cpu_seconds: None,
    };

    #[test]
    fn only_what_a_group_can_keep_is_asked_of_it() {
        assert_eq!(Bounds::for_all_commands(Limits { open_files: Some(1), ..Limits::default() }), None);
        let bounds = Bounds::for_all_commands(LIMITS).expect("bounds");
        assert_eq!(bounds.memory, Some((1 << 30) + OWN_BYTES));
        assert!(bounds.processes.is_some_and(|number| (100 + OWN_PROCESSES..1000).contains(&number)));
        let most = Limits { processes: Some(u64::MAX), ..Limits::default() };
        assert_eq!(Bounds::for_all_commands(most).and_then(|bounds| bounds.processes), Some(u64::MAX));
    }

    /// The files are imitated: the kernels that tests run on give these controllers to version 1.
    #[test]
    fn every_file_gets_its_value() {
        let place = tempfile::tempdir().expect("a directory");
        let files =
            ["memory.max", "pids.max", "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max", "hugetlb.2MB.current"];
        for file in files {
            fs::write(place.path().join(file), "").expect("a file");
        }
        let group = File::open(place.path()).expect("opened");
        let bounds = Bounds::for_all_commands(LIMITS).expect("bounds");
        let read = |file: &str| fs::read_to_string(place.path().join(file)).expect("readable");
        bounds.put_on(group.as_fd(), &[Controller::Processes]).expect("put");
        assert_eq!(
            (read("memory.max"), read("pids.max")),
            (String::new(), bounds.processes.unwrap_or(0).to_string())
        );
        // Also without accounting of swap.
        bounds.put_on(group.as_fd(), &Controller::ALL).expect("put");
        let memory = ((1_u64 << 30) + OWN_BYTES).to_string();
        for (file, value) in [
            ("memory.max", memory.as_str()),
            ("hugetlb.2MB.max", &memory),
            ("hugetlb.2MB.rsvd.max", &memory),
            ("hugetlb.2MB.current", ""),
        ] {
            assert_eq!(read(file), value, "{file}");
        }
        fs::write(place.path().join("memory.swap.max"), "max").expect("a file");
        bounds.put_on(group.as_fd(), &Controller::ALL).expect("put");
        assert!(read("memory.swap.max").starts_with('0'));
        // Any other missing file is an error.
        fs::remove_file(place.path().join("memory.max")).expect("removed");
        assert!(bounds.put_on(group.as_fd(), &Controller::ALL).is_err());
    }
}
