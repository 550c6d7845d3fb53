//! The numbers of a process that a pidfd refers to.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use portcullis_sys::process::{Numbers, numbers_of};

/// Returns the pid of a pidfd's process as this process sees it, see proc_pid_fdinfo(5).
pub(crate) fn process_number(pidfd: &OwnedFd) -> Option<u32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// Returns the pid of the process that a pidfd's thread belongs to.
pub(crate) fn process_of(pidfd: &OwnedFd) -> Option<u32> {
    let process = match numbers_of(pidfd.as_fd()) {
        Ok(Numbers { process, .. }) => process,
        // The kernel is older than Linux 6.13, or the thread has ended.
        Err(_) => read_process(process_number(pidfd)?)?,
    };
    Some(process).filter(|process| *process != 0)
}

/// Returns the process of a thread, see proc_pid_status(5).
fn read_process(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    /// `PIDFD_THREAD`, since Linux 6.9.
    const OF_A_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

    #[test]
    fn a_thread_is_known_by_its_process() {
        std::thread::spawn(|| {
            let thread = rustix::thread::gettid();
            let Ok(pidfd) = pidfd_open(thread, OF_A_THREAD) else { return };
            assert_eq!(process_of(&pidfd), Some(std::process::id()));
            let number = process_number(&pidfd).expect("its number");
            assert_eq!(Some(number), u32::try_from(thread.as_raw_nonzero().get()).ok());
            assert_eq!(read_process(number), Some(std::process::id()));
        })
        .join()
        .expect("the thread ends");
    }

    #[test]
    fn who_has_ended_has_no_number() {
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a number");
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("a pidfd");
        child.wait().expect("its end");
        assert_eq!(process_of(&pidfd), None);
    }
}
