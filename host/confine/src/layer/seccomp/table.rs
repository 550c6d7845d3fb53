//! What is refused, and with which answer.

use libc::{c_int, c_long};

/// As on a kernel without the call: libraries fall back to what can be filtered.
///
/// `clone3` and `openat2` pass flags and modes in memory, where a filter cannot look; the rings do any call out
/// of sight. Attributes are set by the file's path, see the list of ioctl requests for what is wrong with that.
pub(super) const UNKNOWN: [c_long; 6] = [
    libc::SYS_clone3,
    FILE_SETATTR,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_openat2,
];

/// Since Linux 6.17; the library does not know it yet.
const FILE_SETATTR: c_long = 469;

/// Calls from this number on are as on a kernel without them: what they do nobody has looked at. Numbers are the
/// same on all processors since Linux 5.1; the last one known is `listns` of Linux 6.19.
pub(super) const UNHEARD_OF: c_long = 471;

/// What is handed to the broker: calls that make, change or remove a name.
const NAMES: [c_long; 8] = [
    libc::SYS_bind,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_unlinkat,
];
/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
const NAMES_HERE: [c_long; 7] = [
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
];
/// The same, where the processor has them.
#[cfg(target_arch = "aarch64")]
const NAMES_HERE: [c_long; 1] = [libc::SYS_renameat];
/// The same, where the processor has them.
#[cfg(target_arch = "riscv64")]
const NAMES_HERE: [c_long; 0] = [];

/// All that is handed to the broker but opening and what gives modes, which is looked at more closely.
pub(super) const HANDED_OVER: [&[c_long]; 2] = [&NAMES, &NAMES_HERE];

/// What is handed to it as well where reading is judged: calls that execute a program.
pub(super) const EXECUTES: [c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Shorter addresses are none of the internet: `struct sockaddr_in`. The kernel takes longer ones for either family, so
/// most of the calls for Unix sockets are handed to the broker as well, which sends them on.
pub(super) const ADDRESS_LENGTH: u32 = 16;

/// Every call that can be handed to the broker.
#[cfg(test)]
pub(crate) fn all_handed_over() -> Vec<c_long> {
    let opens = OPENS.iter().map(|(number, ..)| number);
    let modes = MODES.iter().chain(&MODES_HERE).map(|(number, _)| number);
    let changes = modes.chain(&OWNERS_AND_TIMES).chain(&OWNERS_AND_TIMES_HERE);
    HANDED_OVER.into_iter().flatten().chain(&EXECUTES).chain(opens).chain(changes).copied().collect()
}
/// `open_tree` that changes attributes as well, since Linux 6.15; the library does not know it yet.
const OPEN_TREE_ATTR: c_long = 467;

/// Refused as not permitted.
pub(super) const REFUSED: [c_long; 49] = [
    // Mounts and namespaces, CVE-2022-0185 and its like.
    libc::SYS_chroot,
    libc::SYS_fspick,
    libc::SYS_mount,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
    // Other processes.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Code in the kernel, and the kernel itself.
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_perf_event_open,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    // The user's keys.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Files around their paths.
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_lookup_dcookie,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine's settings.
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_vhangup,
    // Memory placement, a long row of kernel faults and no use to commands.
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_nfsservctl,
];

/// Refused as not permitted, where the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) const REFUSED_HERE: [c_long; 6] = [
    libc::SYS_kexec_file_load,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
/// Refused as not permitted, where the processor has them.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REFUSED_HERE: [c_long; 1] = [libc::SYS_kexec_file_load];

/// Calls that give a file a mode, and which argument that is. A set-user-id file that a command leaves behind
/// has no effect in here, but lends the user's rights to whoever starts it outside; a set-group-id one the group's.
pub(super) const MODES: [(c_long, u32); 4] =
    [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];
/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) const MODES_HERE: [(c_long, u32); 3] =
    [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
/// The same, where the processor has them.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MODES_HERE: [(c_long, u32); 0] = [];

/// Calls that change the owners and the times of a file, which are handed over where there are no mounts.
pub(super) const OWNERS_AND_TIMES: [c_long; 3] = [libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat];
/// The same, where the processor has them.
#[cfg(target_arch = "x86_64")]
pub(super) const OWNERS_AND_TIMES_HERE: [c_long; 5] =
    [libc::SYS_chown, libc::SYS_futimesat, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes];
/// The same, where the processor has them.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OWNERS_AND_TIMES_HERE: [c_long; 0] = [];

/// Which of those that give a mode make a file.
#[cfg(target_arch = "x86_64")]
pub(super) const MAKES: [c_long; 3] = [libc::SYS_creat, libc::SYS_mknod, libc::SYS_mknodat];
/// Which of those that give a mode make a file.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MAKES: [c_long; 1] = [libc::SYS_mknodat];

/// Calls that give a file a mode if their flags say that it is made: which arguments flags and mode are.
#[cfg(target_arch = "x86_64")]
pub(super) const OPENS: [(c_long, u32, u32); 2] = [(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
/// Calls that give a file a mode if their flags say that it is made: which arguments flags and mode are.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OPENS: [(c_long, u32, u32); 1] = [(libc::SYS_openat, 2, 3)];

/// Kinds of sockets that are needed by ordinary programs.
pub(super) const SOCKETS: [c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Execution domains that are only asked for (`0xffffffff`) or harmless (`PER_LINUX`, `PER_LINUX32`).
pub(super) const PERSONALITIES: [u32; 3] = [0, 8, u32::MAX];
