//! Drops all capabilities, and every way to gain any.

use portcullis_sandbox::Stage;
use portcullis_sys::launch::Script;
use portcullis_syscall_broker::capabilities::{empty_bounding_set, keep_only};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};

use super::failure::{During, Failure};

/// Leaves the keeper the capabilities that it needs for new commands, and none that a program could inherit.
pub(crate) fn enforce_on_keeper() -> Result<(), Failure> {
    drop_from_keeper().during(Stage::Privileges)
}

fn drop_from_keeper() -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..held })?;
    empty_bounding_set()?;
    // Commands run as the same user: without this a later mistake would let them inspect the keeper.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Drops all privileges, for processes that need not create namespaces.
pub(crate) fn drop_all() -> Result<(), Failure> {
    // A process that may not change the bounding set gains nothing from it: executing a program adds no capability that
    // was not held before.
    match empty_bounding_set() {
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error).during(Stage::Privileges),
    }
    keep_only(CapabilitySet::empty()).during(Stage::Privileges)
}

/// Drops all capabilities of a command.
pub(crate) fn prepare_for_command(script: &mut Script<'_>) {
    script.drop_capabilities(Stage::Privileges.number());
}
