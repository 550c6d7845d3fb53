//! No capabilities, and no way to gain any.

use portcullis_sys::launch::Script;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::{During, Failure};
use crate::Stage;

/// Leaves the keeper what it needs for new commands, and nothing that a program could inherit.
pub(crate) fn enforce_on_keeper() -> Result<(), Failure> {
    drop_from_keeper().during(Stage::Privileges)
}

fn drop_from_keeper() -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..held })?;
    empty_bounding_set()?;
    // Commands run as the same user: without this a later mistake would let them look into the keeper.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Gives up everything, where no namespaces have to be made.
pub(crate) fn drop_all() -> Result<(), Failure> {
    // Whoever may not change the bounding set has nothing in it to gain: no program gives what was not held before.
    match empty_bounding_set() {
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error).during(Stage::Privileges),
    }
    keep_only(CapabilitySet::empty()).during(Stage::Privileges)
}

/// Leaves the broker one capability, to look into the processes of the session: with more it could do what the
/// commands that it acts for may not.
pub(crate) fn enforce_on_broker() -> rustix::io::Result<()> {
    empty_bounding_set()?;
    keep_only(CapabilitySet::SYS_PTRACE)
}

fn keep_only(kept: CapabilitySet) -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

fn empty_bounding_set() -> rustix::io::Result<()> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel knows no more capabilities.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes everything from a command.
pub(crate) fn prepare_for_command(script: &mut Script<'_>) {
    script.drop_capabilities(Stage::Privileges.number());
}
