//! Which requests of ioctl(2) and fcntl(2) commands may make.
//!
//! For ioctl(2) it is a list of what is allowed. File systems have requests of their own that make names with contents
//! (snapshots of btrfs, copies of ocfs2), past the broker and past Landlock, and every version of the kernel
//! brings others; consoles have some that give a key another meaning. What ordinary programs ask of files is
//! little, and has stood still for long.

/// What fcntl(2) does not do for commands: leases and delegations (F_SETLEASE; F_SETDELEG of Linux 6.19). Whoever
/// opens a leased file, the user's editor or the broker, would wait for the command that holds the lease, up to 45
/// seconds, and again.
pub(super) const LEASES: [u32; 2] = [1024, 1040];

/// Terminal requests by which input can be put before whoever reads the terminal next, and the one that loads
/// another line discipline, a long row of kernel faults (CVE-2017-2636 and its like).
///
/// CVE-2017-5226; the kernel looks at 32 bits only, so the filter must too (CVE-2019-10063).
pub(super) const TERMINAL: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// Which bits of a request say whose it is.
pub(super) const KIND: u32 = 0xff00;
/// Whose requests are allowed as a whole: terminals with pipes and timers (`T`), and sockets.
pub(super) const KINDS: [u32; 2] = [0x5400, 0x8900];

/// What else is allowed: asking, and sharing the content of one open file with another that is open for writing.
///
/// See ioctl_list(2) and `linux/fs.h`. Setting attributes is not among it: where a file system can fold case, it
/// makes two spellings of a name one.
pub(super) const ALLOWED: [u32; 15] = [
    // FICLONE, FICLONERANGE, FIDEDUPERANGE.
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
    // FS_IOC_GETFLAGS, its twin for 32 bits, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FIGETBSZ.
    0x8008_6601,
    0x8004_6601,
    0x8008_7601,
    0x801c_581f,
    0xc020_660b,
    0x0000_0002,
    // FS_IOC_GETFSLABEL, FS_IOC_GETFSUUID, FS_IOC_GETFSSYSFSPATH.
    0x8100_9431,
    0x8011_1500,
    0x8081_1501,
    // FS_IOC_MEASURE_VERITY, and RNDGETENTCNT of the random devices.
    0xc004_6686,
    0x8004_5200,
    // PROCMAP_QUERY, which debuggers ask of `/proc/PID/maps` instead of reading it.
    0xc068_6611,
];
