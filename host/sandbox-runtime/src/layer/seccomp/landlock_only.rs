//! Additional restrictions without namespaces: what separate mounts, networks and process namespaces would contain, and
//! Landlock does not.
//!
//! Sockets can only be created in connected pairs, so no command can connect anywhere: neither over the network nor by
//! a path or name. The broker changes modes, times and owners of files, because Landlock has no rules about them.

use libc::c_long;

use super::assembler::{ALLOW, HAND_OVER, Program, argument, errno, low_bits, no_set_user_id};
use super::table::{
    ATTRIBUTES, MAKES, MODES, MODES_HERE, OWNERS, OWNERS_HERE, TIMES, TIMES_BY_NAME, TIMES_HERE,
};

/// Calls that create or use sockets other than connected pairs.
const SOCKETS: [c_long; 6] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Objects that all processes of a user share by number or name: refused as on a kernel without them.
const SHARED: [c_long; 17] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

/// Changes of extended attributes of an open file. Those by name are refused as well, as on a file system without them.
const ATTRIBUTES_OF_OPEN: [c_long; 2] = [libc::SYS_fsetxattr, libc::SYS_fremovexattr];

/// Changes of a process by its pid, and the index of that argument: allowed only for the caller itself, which is 0.
const OF_A_PROCESS: [(c_long, u32); 5] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];

/// Changes of processes by kind and number, with the kinds that mean one process or a process group; every other kind
/// means all processes of a user.
const OF_PROCESSES: [(c_long, [u32; 2]); 2] =
    [(libc::SYS_setpriority, [0, 1]), (libc::SYS_ioprio_set, [1, 2])];

/// Adds these rules. They come first, so that they take precedence.
pub(super) fn add(program: &mut Program) {
    for number in SOCKETS {
        program.answer(number, errno(libc::EACCES));
    }
    program.on(libc::SYS_socketpair, pairs);
    for number in SHARED {
        program.answer(number, errno(libc::ENOSYS));
    }
    for number in ATTRIBUTES_OF_OPEN.into_iter().chain(ATTRIBUTES) {
        program.answer(number, errno(libc::EOPNOTSUPP));
    }
    for (number, process) in OF_A_PROCESS {
        program.on(number, |body| {
            body.load(argument(process));
            body.unless_equal(0, errno(libc::EPERM));
        });
    }
    for (number, kinds) in OF_PROCESSES {
        program.on(number, |body| {
            body.load(argument(1));
            body.unless_equal(0, errno(libc::EPERM));
            body.load(argument(0));
            kinds.into_iter().for_each(|kind| body.if_equal(kind, ALLOW));
            body.give(errno(libc::EPERM));
        });
    }
    for (number, mode) in MODES.into_iter().chain(MODES_HERE).filter(|(number, _)| changes(*number)) {
        program.on(number, |body| {
            no_set_user_id(body, mode);
            body.give(HAND_OVER);
        });
    }
    let times = TIMES.into_iter().chain(TIMES_HERE).chain(TIMES_BY_NAME);
    for number in OWNERS.into_iter().chain(OWNERS_HERE).chain(times) {
        program.answer(number, HAND_OVER);
    }
}

/// Returns true if a call that sets a mode does so on an existing file.
fn changes(number: c_long) -> bool {
    !MAKES.contains(&number)
}

/// Allows pairs of stream sockets only: a datagram socket could be directed elsewhere with each message.
fn pairs(body: &mut Program) {
    body.load(argument(0));
    body.unless_equal(low_bits(libc::AF_UNIX), errno(libc::EACCES));
    body.load(argument(1));
    body.keep_bits(KIND_OF_SOCKET);
    body.if_equal(low_bits(libc::SOCK_STREAM), ALLOW);
    body.if_equal(low_bits(libc::SOCK_SEQPACKET), ALLOW);
    body.give(errno(libc::EACCES));
}

/// `SOCK_TYPE_MASK`: the other bits are flags.
const KIND_OF_SOCKET: u32 = 0xf;
