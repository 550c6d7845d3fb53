//! File systems that are interfaces of the kernel.

use std::os::fd::AsFd;

use rustix::io::Errno;

/// File systems that expose the kernel, although their files look regular.
///
/// `/proc/self/environ` is not a link and contains secrets, `/sys` and cgroups contain control files. The numbers are
/// from linux/magic.h and the sources of each file system.
#[cfg(target_os = "linux")]
const KERNEL_INTERFACES: &[rustix::fs::FsWord] = &[
    rustix::fs::PROC_SUPER_MAGIC,
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6165_676c, // pstore
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
    0x6573_5543, // fusectl
    0x6e66_7364, // nfsd
    0x6759_6969, // rpc_pipefs
    0x1cd1,      // devpts
];

/// The same on macOS, by name: devices, descriptors, and files by their number.
#[cfg(not(target_os = "linux"))]
const KERNEL_INTERFACES: &[&[u8]] = &[b"devfs", b"fdesc", b"volfs", b"procfs"];

/// Returns true if a file belongs to a file system that exposes or controls the kernel.
#[cfg(target_os = "linux")]
pub(crate) fn is_kernel_interface(file: impl AsFd) -> Result<bool, Errno> {
    Ok(KERNEL_INTERFACES.contains(&rustix::fs::fstatfs(file)?.f_type))
}

/// Returns true if a file belongs to a file system that exposes or controls the kernel.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_kernel_interface(file: impl AsFd) -> Result<bool, Errno> {
    let name = rustix::fs::fstatfs(file)?.f_fstypename;
    let is_called = |wanted: &[u8]| {
        let name = name.iter().map(|&byte| byte.to_ne_bytes()[0]).take_while(|&byte| byte != 0);
        name.eq(wanted.iter().copied())
    };
    Ok(KERNEL_INTERFACES.iter().any(|wanted| is_called(wanted)))
}
