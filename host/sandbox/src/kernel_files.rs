//! Devices that every command may use, and files of `/proc` that none may read.

use std::ffi::CStr;

/// The devices that every program expects; terminals are those of the user's own session.
pub const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The user's keys, whose names are shown to every process that may see them.
pub const KEYS: &CStr = c"/proc/keys";

/// Files about the kernel that are for root alone, including root without capabilities.
pub const FOR_ROOT: [&CStr; 9] = [
    c"/proc/kcore",
    c"/proc/kallsyms",
    c"/proc/timer_list",
    c"/proc/kmsg",
    // Memory layouts, which help attacks on the kernel and on memory itself.
    c"/proc/kpagecount",
    c"/proc/kpageflags",
    c"/proc/kpagecgroup",
    c"/proc/vmallocinfo",
    c"/proc/slabinfo",
];

/// Returns true for a name in `/proc` that only root, or only the user outside the sandbox, should read.
pub fn is_for_root_alone(name: &str) -> bool {
    let is_it = |file: &&CStr| file.to_bytes().strip_prefix(b"/proc/") == Some(name.as_bytes());
    FOR_ROOT.iter().chain(std::iter::once(&KEYS)).any(is_it) || name == "sysrq-trigger"
}
