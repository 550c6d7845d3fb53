//! WASI that leads nowhere: what a `wasm32-wasip2` component imports is there,
//! and nothing comes of it.
//!
//! No files, arguments, environment or sockets; a clock that stands still; dice
//! that always fall the same way; standard input is at its end, standard output
//! and error go to the policy's log; `exit` is a trap. A function that this host
//! does not know is a trap too, which names it: real WASI is never given.

mod functions;

use wasmtime::Engine;
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{LinkerInstance, ResourceType};

use crate::state::HostState;

pub(crate) use functions::Forbidden;

/// Whether an import belongs to WASI.
pub(crate) fn is_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Defines everything that a component wants of one WASI interface.
///
/// `import` is its name with the version. A function whose type is not that of
/// WASI traps when it is called with the wrong answer; it cannot do harm.
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
                let kind = ResourceType::host_dynamic(resource_kind(name));
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

/// A number for each resource, equal wherever the resource is imported again
/// under its name by another interface (`input-stream` by `wasi:cli/stdin`).
fn resource_kind(name: &str) -> u32 {
    const KNOWN: [&str; 8] = [
        "input-stream",
        "output-stream",
        "pollable",
        "error",
        "terminal-input",
        "terminal-output",
        "descriptor",
        "directory-entry-stream",
    ];
    let place = KNOWN.iter().position(|known| *known == name).unwrap_or(KNOWN.len());
    u32::try_from(place).unwrap_or(u32::MAX)
}
