//! Track `0.1` of the contract: its generated bindings, its host functions, and the only conversions between
//! its types and the host's types.

mod bindings;
mod command;
mod file;
mod from_guest;
mod host;
mod patterns;
mod profile;
mod to_guest;

use std::time::Duration;

use portcullis_decision::profile::Profile;
use portcullis_decision::request::Request;
use portcullis_decision::verdict::{Evaluation, OutputEvaluation, ToolOutput};
use portcullis_decision::{Context, PolicyError};
use wasmtime::component::InstancePre;

use self::bindings::exports::portcullis::policy as exported;
use crate::check;
use crate::description::Description;
use crate::error::ConfigurationFault;
use crate::instance::Running;
use crate::state::HostState;

pub(crate) use host::link;

/// The interfaces that a component exports.
pub(crate) struct Exports {
    lifecycle: exported::lifecycle::GuestIndices,
    pub(crate) evaluator: Option<exported::evaluator::GuestIndices>,
    pub(crate) confinement: Option<exported::confinement::GuestIndices>,
    pub(crate) output_filter: Option<exported::output_filter::GuestIndices>,
    pub(crate) orientation: Option<exported::orientation::GuestIndices>,
}

impl Exports {
    /// Looks up each interface by name.
    ///
    /// A missing interface is `None`; an interface with a missing function is an error.
    pub(crate) fn find(component: &InstancePre<HostState>) -> wasmtime::Result<Self> {
        use exported::{confinement, evaluator, lifecycle, orientation, output_filter};
        let has = |interface: &str| {
            let name = format!("portcullis:policy/{interface}@0.1.0");
            component.component().get_export_index(None, &name).is_some()
        };
        Ok(Self {
            lifecycle: lifecycle::GuestIndices::new(component)?,
            evaluator: has("evaluator").then(|| evaluator::GuestIndices::new(component)).transpose()?,
            confinement: has("confinement").then(|| confinement::GuestIndices::new(component)).transpose()?,
            output_filter: has("output-filter")
                .then(|| output_filter::GuestIndices::new(component))
                .transpose()?,
            orientation: has("orientation").then(|| orientation::GuestIndices::new(component)).transpose()?,
        })
    }

    /// Checks the types of all exports by looking up each function once.
    pub(crate) fn check(&self, running: &mut Running) -> wasmtime::Result<()> {
        let (store, instance) = (&mut running.store, &running.instance);
        self.lifecycle.load(&mut *store, instance)?;
        self.evaluator.as_ref().map(|export| export.load(&mut *store, instance)).transpose()?;
        self.confinement.as_ref().map(|export| export.load(&mut *store, instance)).transpose()?;
        self.output_filter.as_ref().map(|export| export.load(&mut *store, instance)).transpose()?;
        self.orientation.as_ref().map(|export| export.load(&mut *store, instance)).transpose()?;
        Ok(())
    }
}

/// Calls `describe`.
pub(crate) fn describe(
    running: &mut Running,
    exports: &Exports,
    time: Duration,
) -> Result<Description, PolicyError> {
    let described = running
        .call(time, |store, instance| exports.lifecycle.load(&mut *store, instance)?.call_describe(store))?;
    from_guest::description(described)
}

/// Calls `configure`. An empty list means that the policy accepted the configuration.
pub(crate) fn configure(
    running: &mut Running,
    exports: &Exports,
    time: Duration,
    configuration: &str,
) -> Result<Vec<ConfigurationFault>, PolicyError> {
    let configuration = configuration.to_owned();
    let answer = running.call(time, |store, instance| {
        exports.lifecycle.load(&mut *store, instance)?.call_configure(store, &configuration)
    })?;
    match answer {
        Ok(()) => Ok(Vec::new()),
        Err(errors) => from_guest::configuration_faults(errors),
    }
}

/// Calls `evaluate`.
pub(crate) fn evaluate(
    running: &mut Running,
    export: &exported::evaluator::GuestIndices,
    time: Duration,
    request: &Request,
    context: &Context,
) -> Result<Evaluation, PolicyError> {
    let (guest_request, guest_context) = (to_guest::request(request), to_guest::context(context));
    let answer = running.call(time, |store, instance| {
        export.load(&mut *store, instance)?.call_evaluate(store, &guest_request, &guest_context)
    })?;
    from_guest::evaluation(answer, request)
}

/// Calls `standing`.
pub(crate) fn standing(
    running: &mut Running,
    export: &exported::confinement::GuestIndices,
    time: Duration,
    context: &Context,
) -> Result<Profile, PolicyError> {
    let context = to_guest::context(context);
    let answer = running
        .call(time, |store, instance| export.load(&mut *store, instance)?.call_standing(store, &context))?;
    profile::profile(answer)
}

/// Calls `for-command`.
pub(crate) fn for_command(
    running: &mut Running,
    export: &exported::confinement::GuestIndices,
    time: Duration,
    request: &Request,
    context: &Context,
) -> Result<Option<Profile>, PolicyError> {
    let (request, context) = (to_guest::request(request), to_guest::context(context));
    let answer = running.call(time, |store, instance| {
        export.load(&mut *store, instance)?.call_for_command(store, &request, &context)
    })?;
    answer.map(profile::profile).transpose()
}

/// Calls `inspect`.
pub(crate) fn inspect(
    running: &mut Running,
    export: &exported::output_filter::GuestIndices,
    time: Duration,
    output: &ToolOutput,
    context: &Context,
) -> Result<OutputEvaluation, PolicyError> {
    let (guest_output, context) = (to_guest::tool_output(output), to_guest::context(context));
    let answer = running.call(time, |store, instance| {
        export.load(&mut *store, instance)?.call_inspect(store, &guest_output, &context)
    })?;
    from_guest::output_evaluation(answer, output)
}

/// Calls `brief`.
pub(crate) fn brief(
    running: &mut Running,
    export: &exported::orientation::GuestIndices,
    time: Duration,
    context: &Context,
) -> Result<String, PolicyError> {
    let context = to_guest::context(context);
    let text = running
        .call(time, |store, instance| export.load(&mut *store, instance)?.call_brief(store, &context))?;
    Ok(check::long_text(text))
}
