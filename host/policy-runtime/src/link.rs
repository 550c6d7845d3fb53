//! Links a compiled component to its imports and checks its exports.

use std::sync::Arc;

use portcullis_decision::PolicyError;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use crate::description::Description;
use crate::engine::SharedEngine;
use crate::error::LoadError;
use crate::exports::{Exports, link_host};
use crate::instance::Runner;
use crate::limits::Limits;
use crate::state::HostState;
use crate::track::Surface;
use crate::wasi;

/// Links a component after checking that it is a policy of a supported contract version.
pub(crate) fn link(
    shared: &Arc<SharedEngine>,
    limits: Limits,
    component: &Component,
) -> Result<(Runner, Exports), LoadError> {
    let engine = shared.engine();
    let ty = component.component_type();
    let track = Surface::from_component(&ty, engine).check()?;
    let contract = |source| LoadError::Contract { track: track.name(), source };
    let mut linker: Linker<HostState> = Linker::new(engine);
    link_host(track, &mut linker).map_err(contract)?;
    for (name, import) in ty.imports(engine) {
        if let (true, ComponentItem::ComponentInstance(wanted)) = (wasi::is_wasi(name), &import.ty) {
            let mut instance = linker.instance(name).map_err(contract)?;
            wasi::define(engine, name, wanted, &mut instance).map_err(contract)?;
        }
    }
    let component = linker.instantiate_pre(component).map_err(contract)?;
    let exports = Exports::find(track, &component).map_err(contract)?;
    let runner = Runner { shared: Arc::clone(shared), component, memory: limits.memory };
    Ok((runner, exports))
}

/// Returns the description that a fresh copy of a component gives of itself.
pub(crate) fn describe_copy(
    runner: &Runner,
    exports: &Exports,
    limits: Limits,
) -> Result<Description, LoadError> {
    let mut running = runner.start(limits.configure_time).map_err(in_call("describe"))?;
    let contract = |source| LoadError::Contract { track: exports.track().name(), source };
    exports.check(&mut running).map_err(contract)?;
    exports.describe(&mut running, limits.setup_time).map_err(in_call("describe"))
}

/// Returns a function that turns the error of a call into a load error.
pub(crate) fn in_call(call: &'static str) -> impl Fn(PolicyError) -> LoadError {
    move |source| LoadError::Call { call, source }
}
