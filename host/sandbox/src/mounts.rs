//! The mount points of this process, as proc_pid_mountinfo(5) lists them.

use std::path::PathBuf;

/// File systems whose server may hang or that mount others when they are looked at. A unix socket on them leads to no
/// program of another machine.
const REMOTE: [&str; 10] =
    ["9p", "afs", "autofs", "ceph", "cifs", "fuse", "lustre", "nfs", "smb", "virtiofs"];

/// Returns the mount points of local file systems.
pub(crate) fn local_mount_points(mountinfo: &str) -> Vec<PathBuf> {
    let points = mountinfo.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let kind = system.split(' ').next()?;
        let is_local = !REMOTE.iter().any(|remote| kind.starts_with(remote));
        is_local.then(|| mount.split(' ').nth(4).map(decode_mount_path)).flatten()
    });
    points.collect()
}

/// Decodes spaces and similar characters, which mountinfo writes as a backslash and three octal digits.
#[must_use]
pub fn decode_mount_path(field: &str) -> PathBuf {
    let mut text = field.to_owned();
    for (code, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        text = text.replace(code, character);
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_file_systems_are_left_out() {
        let text = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                    30 22 8:1 /agent /opt/an\\040agent rw shared:1 - ext4 /dev/sda1 rw\n\
                    31 22 0:40 / /mnt/far rw - nfs4 server:/ rw\n\
                    32 22 0:41 / /mnt/auto rw - autofs x rw\n\
                    33 22 0:42 / /mnt/user rw - fuse.sshfs x rw\n\
                    damaged\n";
        let found = local_mount_points(text);
        assert_eq!(found, [PathBuf::from("/"), PathBuf::from("/opt/an agent")]);
    }
}
