//! Attempts to escape through the kernel or through other processes.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use portcullis_sandbox_runtime::Exit;

use crate::kit::{self, Session};
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("attacks::calls_are_refused", calls_are_refused),
    ("attacks::calls_are_unknown", calls_are_unknown),
    ("attacks::foreign_calls_are_killed", foreign_calls_are_killed),
    ("attacks::sockets_of_other_kinds_are_refused", sockets_of_other_kinds_are_refused),
    ("attacks::processes_of_the_host_are_not_seen", processes_of_the_host_are_not_seen),
    ("attacks::the_init_cannot_be_looked_into", the_init_cannot_be_looked_into),
    ("attacks::commands_do_not_see_each_other", commands_do_not_see_each_other),
    ("attacks::namespaces_cannot_be_made", namespaces_cannot_be_made),
    ("attacks::set_user_id_programs_gain_nothing", set_user_id_programs_gain_nothing),
    ("attacks::only_directories_become_set_group_id", only_directories_become_set_group_id),
    ("attacks::objects_of_system_v_are_not_shared", objects_of_system_v_are_not_shared),
];

/// Which users get another answer from the kernel without the sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Anyone,
    Root,
}

const EPERM: i32 = 1;
const ENOSYS: i32 = 38;
const EAFNOSUPPORT: i32 = 97;

/// Makes a system call with perl, which every Debian has, and asserts its result inside; the control must get another
/// result.
fn check(session: &Session, number: libc::c_long, arguments: &str, inside: i32, outside: Outside) {
    let script =
        // Perl requires strings that can be written to.
        format!("perl -e 'my ($none, $root, $empty, $zeros) = (\"/nonexistent\", \"/\", \"\", \"\\0\" x 32); \
                 my $r = syscall({number}, {arguments}); exit($r == -1 ? $! + 0 : 0)' 2>/dev/null");
    assert_eq!(session.sh(&script).exit, Exit::Code(inside), "{script}");
    if outside == Outside::Anyone || rustix::process::geteuid().is_root() {
        let control = std::process::Command::new("sh").args(["-c", &script]).status().expect("runs").code();
        assert_ne!(control, Some(inside), "control: {script}");
    }
}

fn calls_are_refused() {
    use Outside::{Anyone, Root};
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    for (number, arguments, outside) in [
        // Other processes.
        (libc::SYS_process_vm_readv, "$$, 0, 0, 0, 0, 0", Anyone),
        (libc::SYS_process_vm_writev, "$$, 0, 0, 0, 0, 0", Anyone),
        (libc::SYS_kcmp, "$$, $$, 2, 0, 0", Anyone),
        (libc::SYS_pidfd_getfd, "-1, 0, 0", Anyone),
        // Mounts and namespaces.
        (libc::SYS_mount, "0, 0, 0, 0, 0", Root),
        (libc::SYS_umount2, "$none, 0", Root),
        (libc::SYS_pivot_root, "$none, $root", Root),
        (libc::SYS_chroot, "$root", Root),
        (libc::SYS_setns, "-1, 0", Anyone),
        (libc::SYS_unshare, "0", Anyone),
        (libc::SYS_sethostname, "0, 0", Root),
        (libc::SYS_open_tree, "-100, $root, 1", Root),
        (libc::SYS_move_mount, "-1, $empty, -1, $empty, 0", Root),
        (libc::SYS_fsopen, "$none, 0", Root),
        (libc::SYS_fsmount, "-1, 0, 0", Root),
        (libc::SYS_mount_setattr, "-100, $root, 0, $zeros, 32", Root),
        // The kernel and its settings.
        (libc::SYS_bpf, "99, 0, 0", Root),
        (libc::SYS_perf_event_open, "0, 0, 0, 0, 0", Root),
        (libc::SYS_init_module, "0, 0, 0", Root),
        (libc::SYS_finit_module, "-1, 0, 0", Root),
        (libc::SYS_kexec_load, "0, 0, 0, 65535", Root),
        (libc::SYS_reboot, "0, 0, 0, 0", Root),
        (libc::SYS_syslog, "10, 0, 0", Root),
        (libc::SYS_settimeofday, "0, 0", Root),
        (libc::SYS_swapon, "$none, 0", Root),
        (libc::SYS_acct, "$none", Root),
        (libc::SYS_userfaultfd, "0", Root),
        (libc::SYS_personality, "0x40000", Anyone),
        // Keys, and access to files that bypasses their paths.
        (libc::SYS_keyctl, "0, -3, 0", Anyone),
        (libc::SYS_add_key, "0, 0, 0, 0, 0", Anyone),
        (libc::SYS_open_by_handle_at, "-1, 0, 0", Root),
        (libc::SYS_name_to_handle_at, "-1, 0, 0, 0, 0", Anyone),
        (libc::SYS_fanotify_init, "0, 0", Root),
        // The terminal; the second request with bits that the kernel ignores.
        (libc::SYS_ioctl, "0, 0x5412, 0", Anyone),
        (libc::SYS_ioctl, "0, 0x100005412, 0", Anyone),
        (libc::SYS_ioctl, "0, 0x541c, 0", Anyone),
        (libc::SYS_ioctl, "0, 0x5423, 0", Anyone),
    ] {
        check(&session, number, arguments, EPERM, outside);
    }
}

fn calls_are_unknown() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    check(&session, libc::SYS_clone3, "0, 0", ENOSYS, Outside::Anyone);
    // A kernel may be built without io_uring.
    for number in [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register] {
        check(&session, number, "-1, 0, 0, 0", ENOSYS, Outside::Anyone);
    }
}

fn sockets_of_other_kinds_are_refused() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    // Packets and raw IP; the kernel's crypto, virtual machine sockets and audit messages.
    check(&session, libc::SYS_socket, "17, 3, 0", EAFNOSUPPORT, Outside::Root);
    check(&session, libc::SYS_socket, "16, 3, 9", EAFNOSUPPORT, Outside::Anyone);
    check(&session, libc::SYS_socket, "2, 3, 1", EPERM, Outside::Root);
    for family in [38, 40] {
        session
            .sh(&format!("perl -e 'exit(syscall({}, {family}, 5, 0) >= 0)'", libc::SYS_socket))
            .assert(0, "");
    }
    session.allows(&format!("perl -e 'exit(syscall({}, 16, 3, 0) < 0)'", libc::SYS_socket));
}

/// A program that calls getpid as a 32-bit program would (`int 0x80`) and exits as a 64-bit one.
#[cfg(target_arch = "x86_64")]
fn mixed_program() -> Vec<u8> {
    let code: &[u8] = &[
        0xb8, 20, 0, 0, 0, // mov eax, 20 (getpid of 32-bit programs)
        0xcd, 0x80, // int 0x80
        0x31, 0xff, // xor edi, edi
        0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
        0x0f, 0x05, // syscall
    ];
    let base: u64 = 0x40_0000;
    let start: u64 = 64 + 56;
    let size = start + u64::try_from(code.len()).expect("small");
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    file.extend((base + start).to_le_bytes());
    file.extend(64_u64.to_le_bytes());
    file.extend([0; 12]);
    file.extend([64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for number in [0, base, base, size, size, 4096] {
        file.extend(number.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(target_arch = "x86_64")]
fn foreign_calls_are_killed() {
    let session = Session::new();
    fs::write(session.path("work/mixed"), mixed_program()).expect("a file");
    fs::set_permissions(session.path("work/mixed"), PermissionsExt::from_mode(0o755)).expect("permissions");
    if !session.control("./mixed") {
        return cannot_run("a kernel that runs 32-bit calls (CONFIG_IA32_EMULATION)");
    }
    let outcome = session.run(session.command(&["./mixed"])).expect("starts");
    assert_eq!(outcome.exit, Exit::Signal(libc::SIGSYS));
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_calls_are_killed() {}

fn processes_of_the_host_are_not_seen() {
    let session = Session::new();
    // The init, the shell and `ls`. In a pipe, the second process could start after `ls` has ended.
    session.sh("ls /proc > listed; grep -cE '^[0-9]+$' listed").assert(0, "3");
    let mut victim = std::process::Command::new("sleep").arg("99").spawn().expect("sleep runs");
    let pid = victim.id();
    session.sh(&format!("kill -0 {pid}")).assert_fails();
    session.sh(&format!("kill -9 {pid}")).assert_fails();
    session.sh(&format!("ls /proc/{pid}")).assert_fails();
    session.sh("kill -9 -1; kill -9 1; kill -9 0; true");
    assert!(victim.try_wait().expect("asked").is_none(), "it lives");
    assert!(session.control(&format!("ls /proc/{pid} && kill -9 {pid}")), "control");
    victim.wait().expect("reaped");
    session.allows("true");
}

fn the_init_cannot_be_looked_into() {
    let session = Session::new();
    for file in ["environ", "mem", "cwd/", "root/", "fd/3", "maps", "exe"] {
        session.sh(&format!("head -c1 /proc/1/{file} || ls /proc/1/{file}/.")).assert_fails();
        session.sh(&format!("ls -L /proc/1/{file} && cat /proc/1/{file}")).assert_fails();
    }
    session.sh("exec 2>/dev/null; kill -9 1; kill -STOP 1; sleep 0.05; echo alive").assert(0, "alive");
    // The command's own process can be inspected, so that tools work.
    session.allows("head -c1 /proc/self/environ && ls /proc/self/cwd/ /proc/self/fd/");
}

fn commands_do_not_see_each_other() {
    let session = Session::new();
    let (running, mut output) =
        session.start(session.command(&["sh", "-c", "echo ready; exec sleep 98.7"])).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    session.sh("grep -la 98[.]7 /proc/[0-9]*/cmdline | grep -v \"/$$/\"").assert_fails();
    session.sh("kill -9 -1");
    assert_eq!(running.wait_timeout(Duration::from_millis(50)), None, "it lives");
}

fn namespaces_cannot_be_made() {
    if !exists("/usr/bin/unshare") {
        return cannot_run("`unshare` (package util-linux)");
    }
    let session = Session::new();
    session.refuses("unshare -U true");
    session.refuses("unshare -Urm true");
    session.refuses("unshare -Urmpf --mount-proc true");
    session.sh("mount -o remount,bind,rw /; mount -t tmpfs x /tmp; umount $P/secret").assert_fails();
    session.sh("umount $P/secret; umount -l $P/home; cat $P/secret/key").assert_fails();
}

fn set_user_id_programs_gain_nothing() {
    let session = Session::new();
    if rustix::process::geteuid().is_root() {
        // A copy that root marks would have no effect in here, but for any user who executes it outside.
        session.refuses("cp /usr/bin/id s && chmod 4755 s");
        session.sh("chmod 755 s && ./s -u").assert(0, "0");
        session.sh("grep CapEff /proc/self/status").assert(0, "CapEff:\t0000000000000000");
    } else if exists("/usr/bin/su") {
        session.sh("su -c true < /dev/null").assert_fails();
        session.sh("grep NoNewPrivs /proc/self/status").assert(0, "NoNewPrivs:\t1");
    }
    session.sh("chown 12345 file").assert_fails();
}

/// A program with this bit runs with the group of its file, whoever executes it outside.
fn only_directories_become_set_group_id() {
    let session = Session::new();
    for (number, make) in [
        "chmod 2755 $N",
        "chmod g+s $N",
        "perl -e 'open(F, q(<), $ENV{N}) or die; chmod(02755, *F)'",
        "ln -sf $N to$N && chmod 2755 to$N",
        "exec 3< $N; chmod 2755 /proc/self/fd/3",
        "rm $N; perl -MFcntl -e 'umask 0; sysopen(F, $ENV{N}, O_CREAT | O_WRONLY, 02755)'",
        "mv $N d$N; chmod 2755 d$N; mv d$N $N",
        "cp $N other$N; chmod 2755 other$N; mv other$N $N",
    ]
    .iter()
    .enumerate()
    {
        session.refuses(&format!("N=g{number}; export N; cp /bin/true $N; {make}; test -g $N"));
        assert!(session.control(&format!("chmod 755 g{number}")));
    }
    session.allows("mkdir d && chmod 2775 d && test -g d && chmod g-s d && chmod g+s d && test -g d");
    session.allows("cd d && chmod 2770 . && test -g . && mkdir e && test -g e && chmod 2700 e && test -g e");
    session.allows(
        "chmod 755 d && python3 -c 'import os; os.fchmod(os.open(\"d\", os.O_RDONLY), 0o2755)' && test -g d",
    );
    session
        .allows("mkdir -p t/u && chmod g+s t/u && tar cf t.tar t && rm -r t && tar xpf t.tar && test -g t/u");
    session.allows("git init -q --shared r && test -g r/.git/objects && cp -a t s && test -g s/u");
    // Outside the judged places errors are the kernel's.
    session.sh("chmod 2755 $P/home/open").assert_fails();
    session.sh("chmod 2755 nowhere 2> e; grep -q 'No such' e").assert(0, "");
}

fn objects_of_system_v_are_not_shared() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    let key = 0x7000_0000 + std::process::id();
    let make = format!("perl -e 'exit(defined(shmget({key}, 4096, 0600 | {})) ? 0 : 1)'", libc::IPC_CREAT);
    let find = format!("perl -e 'exit(defined(shmget({key}, 4096, 0600)) ? 0 : 1)'");
    let remove = format!("perl -e 'shmctl(shmget({key}, 4096, 0600), {}, 0)'", libc::IPC_RMID);
    assert!(session.control(&make));
    session.refuses(&find);
    assert!(session.control(&remove));
}

/// The argument with which this program makes an attempt.
pub(crate) const ATTEMPT: &str = "__attempt";

/// Copies this program to a place that the sandbox shows.
pub(crate) fn visible_copy(session: &Session) -> String {
    let copy = session.path("kernel");
    if !copy.exists() {
        fs::copy(kit::own_program(), &copy).expect("a copy");
    }
    copy.into_os_string().into_string().expect("text")
}

/// Makes one attempt to reach an address over the network.
pub(crate) fn attempt(arguments: &[String]) -> ExitCode {
    let result = match (arguments[0].as_str(), arguments[1].as_str()) {
        ("tcp", to) => {
            let to = to.parse().expect("an address");
            TcpStream::connect_timeout(&to, Duration::from_secs(1)).map(drop)
        }
        ("udp", to) => {
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"data", to)).map(drop)
        }
        ("abstract", name) => {
            SocketAddr::from_abstract_name(name).and_then(|name| UnixStream::connect_addr(&name)).map(drop)
        }
        ("abstract-listen", name) => abstract_listener(name).and_then(|listener| {
            println!("ready");
            listener.accept().map(drop)
        }),
        ("abstract-echo", name) => abstract_listener(name).and_then(|_listener| {
            SocketAddr::from_abstract_name(name).and_then(|name| UnixStream::connect_addr(&name)).map(drop)
        }),
        ("echo-to-self", _) => echo_to_self(),
        ("in-flight", count) => keep_in_flight(count.parse().expect("a number")),
        (how, _) => panic!("no such attempt: {how}"),
    };
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sends descriptors that are never received, and waits.
fn keep_in_flight(count: usize) -> std::io::Result<()> {
    let pairs: Vec<_> = (0..count).map(|_| UnixStream::pair()).take(30).collect::<Result<_, _>>()?;
    let input = std::io::stdin();
    for number in 0..count {
        let (sender, _) = &pairs[number % pairs.len()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let descriptors = [input.as_fd()];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&descriptors)));
        let parts = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(sender, &parts, &mut control, rustix::net::SendFlags::NOSIGNAL)?;
    }
    println!("ready");
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

fn abstract_listener(name: &str) -> std::io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

fn echo_to_self() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut one = TcpStream::connect(listener.local_addr()?)?;
    one.write_all(b"x")?;
    let (mut other, _) = listener.accept()?;
    other.read_exact(&mut [0])
}
