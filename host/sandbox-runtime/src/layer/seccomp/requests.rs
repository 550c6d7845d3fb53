//! The requests of ioctl(2) and fcntl(2) that commands may make.
//!
//! For ioctl(2) it is a list of allowed requests. File systems have requests of their own that create names with
//! contents (snapshots of btrfs, copies of ocfs2), bypassing the broker and Landlock, and every kernel version adds
//! others; consoles have some that give a key another meaning. Ordinary programs need few requests on files, and that
//! set is stable.

/// Commands of fcntl(2) that are refused: leases and delegations (F_SETLEASE; F_SETDELEG of Linux 6.19). A process that
/// opens a leased file, such as the user's editor or the broker, would wait for the command that holds the lease, up to
/// 45 seconds, repeatedly.
pub(super) const LEASES: [u32; 2] = [1024, 1040];

/// Terminal requests that inject input for the next reader of the terminal, and the one that loads another line
/// discipline, a frequent source of kernel bugs (CVE-2017-2636 and similar).
///
/// CVE-2017-5226; the kernel uses 32 bits only, so the filter must too (CVE-2019-10063).
pub(super) const TERMINAL: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// The bits of a request that name its subsystem.
pub(super) const KIND: u32 = 0xff00;
/// Subsystems whose requests are all allowed: terminals with pipes and timers (`T`), and sockets.
pub(super) const KINDS: [u32; 2] = [0x5400, 0x8900];

/// Other allowed requests: queries, and sharing the content of one open file with another that is open for writing.
///
/// See ioctl_list(2) and `linux/fs.h`. Setting attributes is not allowed: on file systems with case folding it can
/// merge two spellings of a name.
pub(super) const ALLOWED: [u32; 15] = [
    // FICLONE, FICLONERANGE, FIDEDUPERANGE.
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
    // FS_IOC_GETFLAGS, its 32-bit variant, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FIGETBSZ.
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
    // PROCMAP_QUERY, which debuggers use instead of reading `/proc/PID/maps`.
    0xc068_6611,
];
