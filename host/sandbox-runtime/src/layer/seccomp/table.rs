//! The table of refused calls, with their errors.

use libc::{c_int, c_long};

/// Calls that fail with ENOSYS, as on an older kernel: libraries fall back to calls that can be filtered.
///
/// `clone3` and `openat2` take flags and modes in memory, which a filter cannot read; io_uring performs calls that the
/// filter never sees. `file_setattr` sets attributes by path; see the list of ioctl requests for the problem with that.
pub(super) const UNKNOWN: [c_long; 6] = [
    libc::SYS_clone3,
    FILE_SETATTR,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_openat2,
];

/// Since Linux 6.17; the libc crate does not have it yet.
const FILE_SETATTR: c_long = 469;

/// Calls from this number on fail with ENOSYS, because their effect has not been reviewed. Numbers are the same on all
/// architectures since Linux 5.1; the last one reviewed is `listns` of Linux 6.19.
pub(super) const UNHEARD_OF: c_long = 471;

/// Calls that create, change or remove a name, which are passed to the broker.
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
/// The same, for calls that only this architecture has.
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
/// The same, for calls that only this architecture has.
#[cfg(target_arch = "aarch64")]
const NAMES_HERE: [c_long; 1] = [libc::SYS_renameat];
/// The same, for calls that only this architecture has.
#[cfg(target_arch = "riscv64")]
const NAMES_HERE: [c_long; 0] = [];

/// All calls passed to the broker, except those that open files or set modes, which the filter inspects more closely.
pub(super) const HANDED_OVER: [&[c_long]; 2] = [&NAMES, &NAMES_HERE];

/// Calls that execute a program, which are passed to the broker as well if reading is judged.
pub(super) const EXECUTES: [c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Shorter addresses are not internet addresses: the size of `struct sockaddr_in`. The kernel accepts longer ones for
/// either family, so most calls for Unix sockets are passed to the broker as well, which lets them continue.
pub(super) const ADDRESS_LENGTH: u32 = 16;

/// Returns every call that can be passed to the broker.
#[cfg(test)]
pub(super) fn all_handed_over() -> Vec<c_long> {
    let opens = OPENS.iter().map(|(number, ..)| number);
    let modes = MODES.iter().chain(&MODES_HERE).map(|(number, _)| number);
    let owners = OWNERS.iter().chain(&OWNERS_HERE);
    let changes =
        modes.chain(owners).chain(&TIMES).chain(&TIMES_HERE).chain(&TIMES_BY_NAME).chain(&ATTRIBUTES);
    HANDED_OVER.into_iter().flatten().chain(&EXECUTES).chain(opens).chain(changes).copied().collect()
}
/// `open_tree` that also changes attributes, since Linux 6.15; the libc crate does not have it yet.
const OPEN_TREE_ATTR: c_long = 467;

/// Calls that fail with EPERM.
pub(super) const REFUSED: [c_long; 48] = [
    // Mounts and namespaces; CVE-2022-0185 and similar.
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
    // Access to files that bypasses their paths.
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
    // Memory placement, a frequent source of kernel bugs and of no use to commands.
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_nfsservctl,
];

/// Calls that fail with EPERM, on this architecture only.
#[cfg(target_arch = "x86_64")]
pub(super) const REFUSED_HERE: [c_long; 6] = [
    libc::SYS_kexec_file_load,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
/// Calls that fail with EPERM, on this architecture only.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REFUSED_HERE: [c_long; 1] = [portcullis_sys::SYS_KEXEC_FILE_LOAD];

/// Calls that set a file's mode, and the index of that argument. A set-user-id file that a command leaves behind has no
/// effect in the sandbox, but gives the user's rights to any user who executes it outside; a set-group-id file the
/// group's.
pub(super) const MODES: [(c_long, u32); 4] = [
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (portcullis_sys::SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
];
/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const MODES_HERE: [(c_long, u32); 3] =
    [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
/// The same, for calls that only this architecture has.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MODES_HERE: [(c_long, u32); 0] = [];

/// Calls that change the owners of a file, which are passed to the broker if there are no mounts.
pub(super) const OWNERS: [c_long; 2] = [libc::SYS_fchown, libc::SYS_fchownat];
/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const OWNERS_HERE: [c_long; 2] = [libc::SYS_chown, libc::SYS_lchown];
/// The same, for calls that only this architecture has.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OWNERS_HERE: [c_long; 0] = [];

/// Calls that change the times of a file, which are passed to the broker: it records them. The second argument is a
/// path; without one, the call is about an open file, and is passed on only if there are no mounts.
pub(super) const TIMES: [c_long; 1] = [libc::SYS_utimensat];
/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const TIMES_HERE: [c_long; 1] = [libc::SYS_futimesat];
/// The same, for calls that only this architecture has.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const TIMES_HERE: [c_long; 0] = [];

/// Calls that change the times of a file by its name.
#[cfg(target_arch = "x86_64")]
pub(super) const TIMES_BY_NAME: [c_long; 2] = [libc::SYS_utime, libc::SYS_utimes];
/// Calls that change the times of a file by its name.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const TIMES_BY_NAME: [c_long; 0] = [];

/// Calls that change the extended attributes of a file by its name, which are passed to the broker if there are mounts:
/// it records them.
pub(super) const ATTRIBUTES: [c_long; 6] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    portcullis_sys::SYS_SETXATTRAT,
    portcullis_sys::SYS_REMOVEXATTRAT,
];

/// The calls among those that set a mode that create a file.
#[cfg(target_arch = "x86_64")]
pub(super) const MAKES: [c_long; 3] = [libc::SYS_creat, libc::SYS_mknod, libc::SYS_mknodat];
/// The calls among those that set a mode that create a file.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MAKES: [c_long; 1] = [libc::SYS_mknodat];

/// Calls that set a file's mode if their flags say that it is created: the indices of flags and mode.
#[cfg(target_arch = "x86_64")]
pub(super) const OPENS: [(c_long, u32, u32); 2] = [(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
/// Calls that set a file's mode if their flags say that it is created: the indices of flags and mode.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OPENS: [(c_long, u32, u32); 1] = [(libc::SYS_openat, 2, 3)];

/// Socket families that ordinary programs need.
pub(super) const SOCKETS: [c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Execution domains that only query (`0xffffffff`) or are harmless (`PER_LINUX`, `PER_LINUX32`).
pub(super) const PERSONALITIES: [u32; 3] = [0, 8, u32::MAX];
