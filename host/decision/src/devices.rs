//! Devices that settings can give to commands.
//!
//! Most devices would give a command the whole machine: a disk device holds every user's files, and a program that opens
//! `/dev/uinput` can type as the user. So commands get the devices that every program expects. Of the others they get
//! only those in this list, and only if the settings allow writing to them.

use std::path::Path;

/// Devices that can be given, and directories of such devices.
const GIVEN: [&str; 5] = [
    // Virtual machines: emulators, Firecracker.
    "/dev/kvm",
    // File systems that a program serves. Mounting one needs rights that commands do not have.
    "/dev/fuse",
    // Graphics cards.
    "/dev/dri",
    // Computing on graphics cards of AMD (ROCm).
    "/dev/kfd",
    // Accelerators for neural networks.
    "/dev/accel",
];

/// The beginning of the names of Nvidia's devices: `/dev/nvidia0`, `/dev/nvidiactl`, `/dev/nvidia-uvm`.
const NVIDIA: &str = "nvidia";

/// The devices, and the sandbox's own directories, that every command has; also devices that the settings of other
/// sandboxes name on other systems.
const FOR_ALL: [&str; 14] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/dtracehelper",
];

/// Returns true for a path in `/dev` that every command can use.
#[must_use]
pub fn is_for_all(path: &Path) -> bool {
    path == Path::new("/dev") || FOR_ALL.iter().any(|known| path.starts_with(known))
}

/// Returns true for a device that settings can give to commands, and for a directory of such devices.
#[must_use]
pub fn can_be_given(path: &Path) -> bool {
    let is_nvidias = || {
        let first = path.strip_prefix("/dev").ok().and_then(|below| below.iter().next());
        first.is_some_and(|name| name.as_encoded_bytes().starts_with(NVIDIA.as_bytes()))
    };
    GIVEN.iter().any(|given| path.starts_with(given)) || is_nvidias()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_devices_can_be_given() {
        for path in
            ["/dev/kvm", "/dev/dri", "/dev/dri/renderD128", "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"]
        {
            assert!(can_be_given(Path::new(path)), "{path}");
        }
        for path in
            ["/dev", "/dev/sda", "/dev/mem", "/dev/uinput", "/dev/kvmx", "/nvidia0", "/dev/input/event0"]
        {
            assert!(!can_be_given(Path::new(path)), "{path}");
        }
        assert!(is_for_all(Path::new("/dev/shm/x")) && !is_for_all(Path::new("/dev/kvm")));
    }
}
