//! What is refused besides where there are no namespaces: what mounts, networks and processes of one's own would keep
//! in, and Landlock does not.
//!
//! No socket can be made but in pairs, so nothing is connected to: not over the network, and not by a path or a name.
//! Modes, times and owners of files are changed by the broker, because no rule of Landlock is about them.

use libc::c_long;

use super::program::{ALLOW, HAND_OVER, Program, argument, errno, low_bits, no_set_user_id};
use super::table::{MAKES, MODES, MODES_HERE, OWNERS_AND_TIMES, OWNERS_AND_TIMES_HERE};

/// Sockets that are not a pair, and what makes more of a pair than that.
const SOCKETS: [c_long; 6] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Objects that all processes of a user share by number or name: as on a kernel without them.
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

/// Changes of attributes, as on a file system without them. The last two are younger than the library.
const ATTRIBUTES: [c_long; 8] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    463,
    466,
];

/// Changes of a process by its number, and which argument that is: only of the calling one, which is 0.
const OF_A_PROCESS: [(c_long, u32); 5] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];

/// Changes of processes by a kind and a number, and the kinds that are one process or a group of them; every other
/// kind is all processes of a user.
const OF_PROCESSES: [(c_long, [u32; 2]); 2] =
    [(libc::SYS_setpriority, [0, 1]), (libc::SYS_ioprio_set, [1, 2])];

/// Adds what is refused and handed over. It comes first, so that it is what counts.
pub(super) fn add(program: &mut Program) {
    for number in SOCKETS {
        program.answer(number, errno(libc::EACCES));
    }
    program.on(libc::SYS_socketpair, pairs);
    for number in SHARED {
        program.answer(number, errno(libc::ENOSYS));
    }
    for number in ATTRIBUTES {
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
    for number in OWNERS_AND_TIMES.into_iter().chain(OWNERS_AND_TIMES_HERE) {
        program.answer(number, HAND_OVER);
    }
}

/// Whether a call that gives a mode does so to a file that is there.
fn changes(number: c_long) -> bool {
    !MAKES.contains(&number)
}

/// A pair of datagram sockets could be led elsewhere, each message by itself; a stream stays what it is.
fn pairs(body: &mut Program) {
    body.load(argument(0));
    body.unless_equal(low_bits(libc::AF_UNIX), errno(libc::EACCES));
    body.load(argument(1));
    body.keep_bits(KIND_OF_SOCKET);
    body.if_equal(low_bits(libc::SOCK_STREAM), ALLOW);
    body.if_equal(low_bits(libc::SOCK_SEQPACKET), ALLOW);
    body.give(errno(libc::EACCES));
}

/// `SOCK_TYPE_MASK`: the rest are flags.
const KIND_OF_SOCKET: u32 = 0xf;
