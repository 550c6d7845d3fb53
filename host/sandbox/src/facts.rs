//! Facts that the system reports about itself, which explain the results of probes.

use std::path::Path;

use crate::controllers::NoGroup;

/// Facts that the system reports about itself; `None` where a fact is not available.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The kernel's release.
    pub release: String,
    /// Whether this process already runs under a seccomp filter.
    pub is_filtered: bool,
    /// The AppArmor label of this process.
    pub apparmor_label: Option<String>,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub apparmor_restricts: Option<u64>,
    /// `kernel.unprivileged_userns_clone`.
    pub userns_clone: Option<u64>,
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// The kind of container that this is.
    pub container: Option<String>,
    /// Whether this is the Windows Subsystem for Linux.
    pub is_wsl: bool,
    /// Whether something is mounted over parts of `/proc`.
    pub proc_is_masked: bool,
    /// The active security modules.
    pub security_modules: Option<String>,
    /// Why no control group can be created that limits memory and processes; `None` if one should work.
    pub no_group: Option<NoGroup>,
}

impl Facts {
    /// Reads the facts; `no_group` is why no control group can be created.
    #[must_use]
    pub fn read(no_group: Option<NoGroup>) -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let number = |name: &str| text(&format!("/proc/sys/{name}")).and_then(|text| text.parse().ok());
        let release = text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let status = text("/proc/self/status").unwrap_or_default();
        let mounts = text("/proc/self/mountinfo").unwrap_or_default();
        Self {
            is_filtered: status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(is_on)),
            apparmor_label: text("/proc/self/attr/apparmor/current").filter(|label| !label.is_empty()),
            apparmor_restricts: number("kernel/apparmor_restrict_unprivileged_userns"),
            userns_clone: number("kernel/unprivileged_userns_clone"),
            max_user_namespaces: number("user/max_user_namespaces"),
            container: container(&text("/proc/1/environ").unwrap_or_default()),
            is_wsl: release.to_lowercase().contains("microsoft"),
            proc_is_masked: mounts.lines().any(masks_proc),
            security_modules: text("/sys/kernel/security/lsm"),
            no_group,
            release,
        }
    }
}

fn is_on(mode: &str) -> bool {
    mode.trim() != "0"
}

/// True for a mount that covers a part of `/proc`: the kernel mounts a fresh `/proc` only for a process that sees all
/// of the old one.
fn masks_proc(line: &str) -> bool {
    let target = line.split(' ').nth(4).unwrap_or_default();
    target.starts_with("/proc/") && target != "/proc/sys/fs/binfmt_misc"
}

fn container(environment_of_init: &str) -> Option<String> {
    let named = environment_of_init.split('\0').find_map(|entry| entry.strip_prefix("container="));
    let by_file = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let found = by_file.into_iter().find(|(file, _)| Path::new(file).exists()).map(|(_, name)| name);
    named.or(found).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_over_proc_are_seen() {
        let line = |target: &str| format!("1 2 0:3 / {target} rw - tmpfs tmpfs rw");
        assert!(masks_proc(&line("/proc/kcore")));
        for other in ["/proc", "/proc/sys/fs/binfmt_misc", "/procfs"] {
            assert!(!masks_proc(&line(other)), "{other}");
        }
    }

    #[test]
    fn containers_name_themselves() {
        assert_eq!(container("A=b\0container=lxc\0").as_deref(), Some("lxc"));
    }
}
