//! Runs the filter on calls, with an interpreter of the six instructions that it uses.

use portcullis_sys::seccomp::Instruction;
use portcullis_syscall_broker::is_carried_out;

use super::super::assembler::{
    JUMP_IF_BITS_SET, JUMP_IF_EQUAL, JUMP_IF_GREATER_OR_EQUAL, KEEP_BITS, KILL, LOAD_WORD, NATIVE, RETURN,
    call,
};
use super::super::table::{OWNERS, OWNERS_HERE, UNHEARD_OF, all_handed_over};
use super::*;

#[test]
fn all_that_is_handed_over_is_carried_out() {
    for number in all_handed_over().into_iter().chain([libc::SYS_connect]) {
        assert!(is_carried_out(number), "call {number}");
    }
    assert!(!is_carried_out(libc::SYS_read));
}

struct Call {
    architecture: u32,
    number: u32,
    arguments: [u64; 6],
}

fn native(number: libc::c_long, arguments: &[u64]) -> Call {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    Call { architecture: NATIVE, number: call(number), arguments: all }
}

fn run(call: &Call) -> u32 {
    run_in(&assemble(Broker::None, Reads::Free, IsolationMode::Namespaces), call)
}

fn run_in(program: &[Instruction], call: &Call) -> u32 {
    let mut data = [call.number.to_ne_bytes(), call.architecture.to_ne_bytes()].concat();
    data.extend_from_slice(&[0; 8]);
    call.arguments.iter().for_each(|argument| data.extend_from_slice(&argument.to_ne_bytes()));
    let (mut at, mut loaded) = (0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            LOAD_WORD => {
                let offset = usize::try_from(k).expect("small");
                loaded = u32::from_ne_bytes(data[offset..offset + 4].try_into().expect("four bytes"));
            }
            KEEP_BITS => loaded &= k,
            JUMP_IF_EQUAL => at += jump(loaded == k),
            JUMP_IF_GREATER_OR_EQUAL => at += jump(loaded >= k),
            JUMP_IF_BITS_SET => at += jump(loaded & k != 0),
            RETURN => return k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

#[track_caller]
fn check(number: libc::c_long, arguments: &[u64], answer: u32) {
    assert_eq!(run(&native(number, arguments)), answer);
}

const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | 38;
const ENOTTY: u32 = libc::SECCOMP_RET_ERRNO | 25;
const EAFNOSUPPORT: u32 = libc::SECCOMP_RET_ERRNO | 97;

#[test]
fn ordinary_calls_pass() {
    for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_clone, libc::SYS_futex] {
        check(number, &[], ALLOW);
    }
}

#[test]
fn refused_calls_are_refused() {
    for number in REFUSED.into_iter().chain(REFUSED_HERE) {
        check(number, &[], EPERM);
    }
    for number in UNKNOWN {
        check(number, &[], ENOSYS);
    }
}

#[test]
fn only_commands_in_namespaces_whose_reading_is_free_may_trace() {
    for (reads, isolation, answer) in [
        (Reads::Free, IsolationMode::Namespaces, ALLOW),
        (Reads::Judged, IsolationMode::Namespaces, EPERM),
        (Reads::Free, IsolationMode::Landlock, EPERM),
        (Reads::Judged, IsolationMode::Landlock, EPERM),
    ] {
        let program = assemble(Broker::Listens, reads, isolation);
        assert_eq!(run_in(&program, &native(libc::SYS_ptrace, &[])), answer, "{reads:?} {isolation:?}");
    }
}

#[test]
fn no_call_stands_twice() {
    let mut all: Vec<_> = REFUSED.into_iter().chain(REFUSED_HERE).chain(UNKNOWN).collect();
    let before = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), before);
}

#[test]
fn other_architectures_are_killed() {
    let i386 = Call { architecture: 0x4000_0003, number: 102, arguments: [0; 6] };
    assert_eq!(run(&i386), KILL);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_x32_interface_is_unknown() {
    for number in [0, 101, 165, 0x3fff_ffff] {
        let call = Call { architecture: NATIVE, number: 0x4000_0000 + number, arguments: [0; 6] };
        assert_eq!(run(&call), ENOSYS);
    }
}

#[test]
fn calls_that_nobody_has_looked_at_are_unknown() {
    for number in [UNHEARD_OF, UNHEARD_OF + 1, 1000, 0x3fff_ffff] {
        check(number, &[], ENOSYS);
    }
    check(libc::SYS_mseal, &[], ALLOW);
}

#[test]
fn user_namespaces_cannot_be_made() {
    let user = 0x1000_0000;
    check(libc::SYS_clone, &[user | 17], EPERM);
    check(libc::SYS_clone, &[17], ALLOW);
}

#[test]
fn terminal_input_cannot_be_faked_with_high_bits_either() {
    for request in [0x5412, 0x541c, 0xdead_beef_0000_5412] {
        check(libc::SYS_ioctl, &[1, request], EPERM);
    }
    check(libc::SYS_ioctl, &[1, 0x5413], ALLOW);
}

#[test]
fn what_programs_ask_of_terminals_sockets_and_files_is_allowed() {
    // TCGETS, FIONREAD, FIOCLEX, SIOCGIFCONF, FICLONE, FIDEDUPERANGE, FS_IOC_GETFLAGS, FIEMAP.
    for request in [0x5401, 0x541b, 0x5451, 0x8912, 0x4004_9409, 0xc018_9436, 0x8008_6601, 0xc020_660b] {
        check(libc::SYS_ioctl, &[1, request], ALLOW);
        check(libc::SYS_ioctl, &[1, 0x1234_5678_0000_0000 | request], ALLOW);
    }
}

#[test]
fn file_systems_and_consoles_do_nothing_of_their_own() {
    for request in [
        // Requests of btrfs: creating, removing and marking snapshots and subvolumes.
        0x5000_9401,
        0x5000_940e,
        0x5000_940f,
        0x5000_9417,
        0x5000_9418,
        0x5000_943f,
        0x4008_941a,
        0xc0c8_9425,
        // Requests of bcachefs, ocfs2 (a copy by path), ext4 (exchange of contents), xfs and f2fs.
        0x4020_bc10,
        0x4018_6f04,
        0xc028_660f,
        0x0000_6611,
        0xc0c0_586d,
        0x0000_f501,
        // Attributes, encryption and verity of files: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR and others.
        0x4008_6602,
        0x401c_5820,
        0x8010_6613,
        0xc040_6618,
        0x4080_6685,
        // Changing the meaning of console keys (KDSKBENT, KDSKBSENT), and switching the console (VT_ACTIVATE).
        0x4b47,
        0x4b49,
        0x5606,
        // Requests that a FUSE or other mount of a program's own may implement.
        0xdf00,
        0xe500,
    ] {
        check(libc::SYS_ioctl, &[1, request], ENOTTY);
        check(libc::SYS_ioctl, &[1, 0xdead_beef_0000_0000 | request], ENOTTY);
    }
}

#[test]
fn nobody_waits_for_a_lease() {
    for request in [1024, 1040, 0xdead_beef_0000_0400] {
        check(libc::SYS_fcntl, &[3, request, 1], libc::SECCOMP_RET_ERRNO | 22);
    }
    // F_DUPFD_CLOEXEC, F_SETLK, F_SETPIPE_SZ, F_ADD_SEALS.
    for request in [1030, 6, 1031, 1033] {
        check(libc::SYS_fcntl, &[3, request, 1], ALLOW);
    }
}

#[test]
fn only_ordinary_sockets_can_be_made() {
    for number in [libc::SYS_socket, libc::SYS_socketpair] {
        for family in [1, 2, 10] {
            check(number, &[family, 1, 0], ALLOW);
        }
        for family in [0, 3, 17, 38, 40, 44] {
            check(number, &[family, 3, 0], EAFNOSUPPORT);
        }
        check(number, &[16, 3, 0], ALLOW);
        for protocol in [2, 9, 12, 15] {
            check(number, &[16, 3, protocol], EAFNOSUPPORT);
        }
    }
}

#[test]
fn address_randomisation_stays_on() {
    check(libc::SYS_personality, &[0x0004_0000], EPERM);
    check(libc::SYS_personality, &[0xffff_ffff], ALLOW);
    check(libc::SYS_personality, &[0], ALLOW);
}

#[test]
fn files_do_not_become_set_user_id() {
    let (created, opened) = (0o101, 0o1);
    for mode in [0o4755, 0o6711, 0x1_0000_0000 | 0o4000] {
        check(libc::SYS_fchmod, &[3, mode], EPERM);
        check(libc::SYS_fchmodat, &[0, 0, mode], EPERM);
        check(libc::SYS_fchmodat2, &[0, 0, mode, 0], EPERM);
        check(libc::SYS_mknodat, &[0, 0, 0o100_000 | mode], EPERM);
        check(libc::SYS_openat, &[0, 0, created, mode], EPERM);
        check(libc::SYS_openat, &[0, 0, 0o20_200_002, mode], EPERM);
        check(libc::SYS_openat, &[0, 0, opened, mode], ALLOW);
    }
    for mode in [0o755, 0o1777] {
        check(libc::SYS_fchmod, &[3, mode], ALLOW);
        check(libc::SYS_openat, &[0, 0, created, mode], ALLOW);
    }
}

#[test]
fn only_directories_become_set_group_id() {
    let mode = 0o2755;
    let changes: [(libc::c_long, &[u64]); 4] = [
        (libc::SYS_fchmod, &[3, mode]),
        (libc::SYS_fchmodat, &[0, 0, mode]),
        (libc::SYS_fchmodat2, &[0, 0, mode, 0]),
        (libc::SYS_fchmod, &[3, 0xdead_beef_0000_0000 | mode]),
    ];
    let makes: [(libc::c_long, &[u64]); 3] = [
        (libc::SYS_mknodat, &[0, 0, 0o100_000 | mode]),
        (libc::SYS_openat, &[0, 0, 0o101, mode]),
        (libc::SYS_openat, &[0, 0, 0o20_200_002, mode]),
    ];
    for (broker, looked_at) in [(Broker::None, ALLOW), (Broker::Listens, HAND_OVER)] {
        let program = assemble(broker, Reads::Free, IsolationMode::Namespaces);
        for (number, arguments) in changes {
            assert_eq!(run_in(&program, &native(number, arguments)), looked_at, "{number} {arguments:?}");
        }
        for (number, arguments) in makes {
            assert_eq!(run_in(&program, &native(number, arguments)), EPERM, "{number} {arguments:?}");
        }
        // A file that becomes executable waits until the broker has closed it.
        for mode in [0o744, 0o610, 0o601] {
            assert_eq!(run_in(&program, &native(libc::SYS_fchmod, &[3, mode])), looked_at);
        }
        assert_eq!(run_in(&program, &native(libc::SYS_fchmod, &[3, 0o644])), ALLOW);
        // The mode so far is recorded, to be given back.
        assert_eq!(run_in(&program, &native(libc::SYS_fchmodat, &[3, 0, 0o755])), looked_at);
        assert_eq!(run_in(&program, &native(libc::SYS_fchmodat2, &[3, 0, 0o755, 0])), looked_at);
    }
}

#[test]
fn what_makes_or_changes_names_is_handed_over_and_nothing_else_is() {
    let program = assemble(Broker::Listens, Reads::Free, IsolationMode::Namespaces);
    let answer = |number, arguments: &[u64]| run_in(&program, &native(number, arguments));
    for number in all_handed_over() {
        let is_without_mounts_only = MODES.into_iter().chain(MODES_HERE).any(|(mode, _)| mode == number)
            && !MAKES.contains(&number)
            || OWNERS.into_iter().chain(OWNERS_HERE).any(|one| one == number);
        if EXECUTES.contains(&number) || is_without_mounts_only {
            continue;
        }
        // For calls that open: to write, and to create.
        for flags in [[0, 1, 1, 0o600], [0, 0o100, 0o100, 0o600]] {
            let opens = OPENS.iter().any(|(open, ..)| *open == number);
            let makes = MAKES.contains(&number) || !opens || flags[1] != 0;
            assert!(makes);
            assert_eq!(answer(number, &flags), HAND_OVER, "call {number}");
        }
    }
    for number in [libc::SYS_read, libc::SYS_execve, libc::SYS_connect, libc::SYS_fchmod, libc::SYS_fsetxattr]
    {
        assert_eq!(answer(number, &[]), ALLOW, "call {number}");
    }
    // Times of an open file are not handed over, and a path can be anywhere.
    for number in TIMES.into_iter().chain(TIMES_HERE) {
        assert_eq!(answer(number, &[3, 0, 7]), ALLOW, "call {number}");
        assert_eq!(answer(number, &[3, 1 << 32, 7]), HAND_OVER, "call {number}");
    }
    for flags in [0, 0o2_000_000, 0o200_000] {
        assert_eq!(answer(libc::SYS_openat, &[0, 0, flags, 0]), ALLOW, "reading: {flags:o}");
    }
    for flags in [0o1, 0o2, 0o1000, 0o100, 0o20_200_000] {
        assert_eq!(answer(libc::SYS_openat, &[0, 0, flags, 0]), HAND_OVER, "writing: {flags:o}");
        assert_eq!(answer(libc::SYS_openat, &[0, 0, flags | 0o100, 0o4755]), EPERM);
    }
    assert_eq!(answer(libc::SYS_mknodat, &[0, 0, 0o4755]), EPERM);
}

#[test]
fn what_reads_or_executes_is_handed_over_where_reading_is_judged() {
    let program = assemble(Broker::Listens, Reads::Judged, IsolationMode::Namespaces);
    let answer = |number, arguments: &[u64]| run_in(&program, &native(number, arguments));
    for number in [libc::SYS_execve, libc::SYS_execveat] {
        assert_eq!(answer(number, &[]), HAND_OVER, "call {number}");
    }
    let (path_only, directory) = (0o10_000_000, 0o200_000);
    for flags in [0, 0o2_000_000, 0o1, 0o2, 0o100, directory | 0o20_000_000, directory | 0o100] {
        assert_eq!(answer(libc::SYS_openat, &[0, 0, flags, 0]), HAND_OVER, "{flags:o}");
    }
    for flags in [path_only, directory, directory | path_only, directory | 0o2_000_000] {
        assert_eq!(answer(libc::SYS_openat, &[0, 0, flags, 0]), ALLOW, "{flags:o}");
    }
    assert_eq!(answer(libc::SYS_openat, &[0, 0, 0o100, 0o4755]), EPERM);
    assert_eq!(answer(libc::SYS_read, &[]), ALLOW);
}

#[test]
fn connecting_to_an_address_is_handed_over_where_connections_are_held() {
    let program = assemble(Broker::HoldsConnections, Reads::Free, IsolationMode::Namespaces);
    let answer = |length| run_in(&program, &native(libc::SYS_connect, &[3, 0, length]));
    // The kernel uses the lower half of the length only.
    for length in [16, 17, 20, 28, 110, 128, 1 << 32 | 16] {
        assert_eq!(answer(length), HAND_OVER, "{length}");
    }
    for length in [0, 2, 15] {
        assert_eq!(answer(length), ALLOW, "{length}");
    }
    assert_eq!(run_in(&program, &native(libc::SYS_unlinkat, &[])), HAND_OVER);
}

#[test]
fn without_namespaces_nothing_is_connected_shared_or_changed_elsewhere() {
    let program = assemble(Broker::Listens, Reads::Free, IsolationMode::Landlock);
    let check = |number, arguments: &[u64], answer| {
        assert_eq!(run_in(&program, &native(number, arguments)), answer, "{number} {arguments:?}");
    };
    let eacces = libc::SECCOMP_RET_ERRNO | 13;
    for family in [1, 2, 10, 16, 40] {
        check(libc::SYS_socket, &[family, 1, 0], eacces);
    }
    check(libc::SYS_connect, &[3, 0, 16], eacces);
    for (kind, answer) in
        [(1, ALLOW), (5, ALLOW), (2, eacces), (1 | 0o2_000_000, ALLOW), (2 | 0o4000, eacces)]
    {
        check(libc::SYS_socketpair, &[1, kind, 0], answer);
        check(libc::SYS_socketpair, &[2, kind, 0], eacces);
    }
    check(libc::SYS_shmget, &[], ENOSYS);
    for (number, own, other) in [
        (libc::SYS_prlimit64, [0, 7].as_slice(), [4711, 7].as_slice()),
        (libc::SYS_setpriority, &[0, 0], &[0, 4711]),
        (libc::SYS_setpriority, &[1, 0], &[2, 0]),
        (libc::SYS_ioprio_set, &[1, 0], &[3, 0]),
    ] {
        check(number, own, ALLOW);
        check(number, other, EPERM);
    }
    check(libc::SYS_fsetxattr, &[], libc::SECCOMP_RET_ERRNO | 95);
    for number in
        [libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_utimensat, libc::SYS_fchown, libc::SYS_mkdirat]
    {
        check(number, &[0; 3], HAND_OVER);
    }
    check(libc::SYS_fchmod, &[1, 0o4755], EPERM);
    check(libc::SYS_umount2, &[], EPERM);
}
