//! Dropping capabilities.

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Leaves the broker one capability, to inspect the session's processes. With more, it could do for commands what they
/// may not do themselves.
pub(crate) fn keep_only_inspection() -> rustix::io::Result<()> {
    empty_bounding_set()?;
    keep_only(CapabilitySet::SYS_PTRACE)
}

/// Leaves the calling process these capabilities, and no way to gain others.
///
/// # Errors
/// The kernel's.
pub fn keep_only(kept: CapabilitySet) -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Empties the bounding set, so that no program that is executed gains a capability.
///
/// # Errors
/// `EPERM` if the process may not change it.
pub fn empty_bounding_set() -> rustix::io::Result<()> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel has no further capabilities.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
