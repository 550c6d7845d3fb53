//! Resource limits that the kernel enforces for each process.

use std::fs;
use std::os::unix::fs::MetadataExt;

use portcullis_sandbox::{IsolationMode, Limits, Stage};
use portcullis_sys::launch::Script;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit};
use rustix::system::uname;

/// Makes a command set its limits, never wider than those in force here, and disable core dumps.
pub(crate) fn prepare_for_command(script: &mut Script<'_>, limits: Limits, isolation: IsolationMode) {
    let processes = limits.processes.map(|limit| match isolation {
        IsolationMode::Namespaces => limit,
        // Without a user namespace it counts all processes of the user on the machine.
        IsolationMode::Landlock => limit.saturating_add(threads_of_user()),
    });
    let bounds = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, processes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Data, limits.data_bytes),
        (Resource::Cpu, limits.cpu_seconds),
    ];
    let bounds = bounds.into_iter().filter_map(|(resource, limit)| Some((resource, limit?)));
    for (resource, limit) in bounds.chain(shared(limits)) {
        // One second between the signal that reports this limit and the kernel's SIGKILL.
        let more = u64::from(resource == Resource::Cpu);
        let Rlimit { current, maximum } = tighter(getrlimit(resource), limit, limit.saturating_add(more));
        let number = |bound: Option<u64>| bound.unwrap_or(u64::MAX);
        script.limit(Stage::Limits.number(), resource as u32, number(current), number(maximum));
    }
}

/// Returns how many threads the user has on this machine.
fn threads_of_user() -> u64 {
    let own = geteuid().as_raw();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == own));
    let threads = processes.filter_map(|entry| entry.path().join("task").metadata().ok());
    // A directory has two links of its own, and `task` has one more per thread.
    threads.map(|tasks| tasks.nlink().saturating_sub(2).max(1)).sum()
}

/// Returns limits on resources that the kernel counts per user: a part is left to the user's other programs, and to the
/// host of this session.
fn shared(limits: Limits) -> impl Iterator<Item = (Resource, u64)> {
    let part =
        |resource: Resource, of: fn(u64) -> u64| getrlimit(resource).maximum.map(|all| (resource, of(all)));
    // The kernel limits descriptors in flight between processes to this number, for each sending process.
    let open_files =
        if limits.open_files.is_none() { part(Resource::Nofile, |all| all / 4 * 3) } else { None };
    let halves = [Resource::Sigpending, Resource::Msgqueue].map(|resource| part(resource, |all| all / 2));
    open_files.into_iter().chain(halves.into_iter().flatten())
}

/// Limits the inotify watches of the calling process's user namespace to half of the user's: the kernel counts for
/// both.
///
/// If the kernel's settings cannot be written, as in some containers, they stay unchanged.
pub(crate) fn bound_watching() {
    for (of_user, of_namespace) in WATCHING {
        let all = fs::read_to_string(of_user).ok().and_then(|text| text.trim().parse::<u64>().ok());
        if let Some(all) = all {
            let _unbounded = fs::write(of_namespace, (all / 2).to_string());
        }
    }
}

/// The machine's settings, and a user namespace's.
const WATCHING: [(&str, &str); 2] = [
    ("/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"),
    ("/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"),
];

/// Limits the number of processes and threads of the calling process's pid namespace, and returns whether the limit is
/// in force.
///
/// It sets the highest pid. The pids up to [`RESERVED`] are used only once, so that many are added.
pub(crate) fn bound_processes(limit: u64) -> bool {
    // Without a setting per namespace, root would change that of the whole machine.
    has_own_pid_max() && fs::write(PID_MAX, limit.saturating_add(RESERVED).to_string()).is_ok()
}

const PID_MAX: &str = "/proc/sys/kernel/pid_max";
/// `RESERVED_PIDS` of the kernel.
const RESERVED: u64 = 300;

/// Since Linux 6.14 every pid namespace has its own limit.
fn has_own_pid_max() -> bool {
    let release = uname();
    let mut numbers = release.release().to_str().unwrap_or_default().split(['.', '-']).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 14))
}

fn tighter(old: Rlimit, current: u64, maximum: u64) -> Rlimit {
    let bound = |old: Option<u64>, limit: u64| Some(old.map_or(limit, |old| old.min(limit)));
    Rlimit { current: bound(old.current, current), maximum: bound(old.maximum, maximum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_threads_are_counted() {
        let before = threads_of_user();
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        assert!(before >= 1 && threads_of_user() >= 2);
        drop(stop);
        assert!(other.join().expect("the thread ends").is_err());
    }

    #[test]
    fn a_limit_is_never_widened() {
        let old = Rlimit { current: Some(5), maximum: None };
        assert_eq!(tighter(old, 9, 9), Rlimit { current: Some(5), maximum: Some(9) });
        assert_eq!(tighter(old, 3, 4), Rlimit { current: Some(3), maximum: Some(4) });
    }
}
