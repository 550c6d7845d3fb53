//! Stubs for WASI: the imports of a `wasm32-wasip2` component exist, but give no access.
//!
//! There are no files, arguments, environment or sockets. The clock stands still, and random numbers are a
//! fixed sequence. Standard input is at its end, standard output and error go to the policy's log, and `exit`
//! traps. A function that this host does not know traps with its name. Policies never get real WASI.

mod functions;

use wasmtime::Engine;
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{LinkerInstance, ResourceType};

use crate::state::HostState;

pub(crate) use functions::Forbidden;

/// Returns true if an import belongs to WASI.
pub(crate) fn is_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Defines all imports of a component from one WASI interface.
///
/// `import` is the interface's name with its version. If a function is declared with a type that differs from
/// WASI's, its stub returns a value of the wrong type and the call traps. That is harmless.
pub(crate) fn define(
    engine: &Engine,
    import: &str,
    wanted: &ComponentInstance,
    linker: &mut LinkerInstance<'_, HostState>,
) -> wasmtime::Result<()> {
    let interface = import.split('@').next().unwrap_or(import);
    for (name, export) in wanted.exports(engine) {
        match export.ty {
            ComponentItem::ComponentFunc(_) => functions::define(interface, name, linker)?,
            ComponentItem::Resource(_) => {
                let kind = ResourceType::host_dynamic(functions::resource_kind(name));
                linker.resource(name, kind, |mut store, _| {
                    store.data_mut().handles -= 1;
                    Ok(())
                })?;
            }
            ComponentItem::Type(_) => {}
            ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::ComponentInstance(_) => {
                wasmtime::bail!("`{import}` cannot give `{name}`");
            }
        }
    }
    Ok(())
}
