//! The exports of a component, of either track: the only place that knows that there are several.

use std::time::Duration;

use portcullis_decision::profile::Profile;
use portcullis_decision::request::Request;
use portcullis_decision::verdict::{Cause, Evaluation, OutputEvaluation, ToolOutput, Verdict};
use portcullis_decision::{Context, PolicyError};
use wasmtime::component::{InstancePre, Linker};

use crate::description::Description;
use crate::error::ConfigurationFault;
use crate::instance::Running;
use crate::state::HostState;
use crate::track::Track;
use crate::{v0_1, v0_2};

/// The interfaces that a component exports.
pub(crate) enum Exports {
    V0_1(v0_1::Exports),
    V0_2(v0_2::Exports),
}

/// Adds the functions that the host provides to policies of a track.
pub(crate) fn link_host(track: Track, linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    match track {
        Track::V0_1 => v0_1::link(linker),
        Track::V0_2 => v0_2::link(linker),
    }
}

/// Returns the answer of a policy without `evaluate`.
pub(crate) fn abstention() -> Evaluation {
    Evaluation { verdict: Verdict::Abstain, cause: Cause::default(), trace: Vec::new() }
}

impl Exports {
    /// Looks up each interface by name.
    ///
    /// A missing interface is not an error; an interface with a missing function is.
    pub(crate) fn find(track: Track, component: &InstancePre<HostState>) -> wasmtime::Result<Self> {
        Ok(match track {
            Track::V0_1 => Self::V0_1(v0_1::Exports::find(component)?),
            Track::V0_2 => Self::V0_2(v0_2::Exports::find(component)?),
        })
    }

    /// Checks the types of all exports by looking up each function once.
    pub(crate) fn check(&self, running: &mut Running) -> wasmtime::Result<()> {
        match self {
            Self::V0_1(exports) => exports.check(running),
            Self::V0_2(exports) => exports.check(running),
        }
    }

    pub(crate) fn track(&self) -> Track {
        match self {
            Self::V0_1(_) => Track::V0_1,
            Self::V0_2(_) => Track::V0_2,
        }
    }

    pub(crate) fn has_evaluator(&self) -> bool {
        match self {
            Self::V0_1(exports) => exports.evaluator.is_some(),
            Self::V0_2(exports) => exports.evaluator.is_some(),
        }
    }

    pub(crate) fn has_confinement(&self) -> bool {
        match self {
            Self::V0_1(exports) => exports.confinement.is_some(),
            Self::V0_2(exports) => exports.confinement.is_some(),
        }
    }

    pub(crate) fn has_output_filter(&self) -> bool {
        match self {
            Self::V0_1(exports) => exports.output_filter.is_some(),
            Self::V0_2(exports) => exports.output_filter.is_some(),
        }
    }

    pub(crate) fn has_orientation(&self) -> bool {
        match self {
            Self::V0_1(exports) => exports.orientation.is_some(),
            Self::V0_2(exports) => exports.orientation.is_some(),
        }
    }

    /// Calls `describe`.
    pub(crate) fn describe(&self, running: &mut Running, time: Duration) -> Result<Description, PolicyError> {
        match self {
            Self::V0_1(exports) => v0_1::describe(running, exports, time),
            Self::V0_2(exports) => v0_2::describe(running, exports, time),
        }
    }

    /// Calls `configure`. An empty list means that the policy accepted the configuration.
    pub(crate) fn configure(
        &self,
        running: &mut Running,
        time: Duration,
        configuration: &str,
    ) -> Result<Vec<ConfigurationFault>, PolicyError> {
        match self {
            Self::V0_1(exports) => v0_1::configure(running, exports, time, configuration),
            Self::V0_2(exports) => v0_2::configure(running, exports, time, configuration),
        }
    }

    /// Calls `evaluate`; abstains for a policy without it.
    pub(crate) fn evaluate(
        &self,
        running: &mut Running,
        time: Duration,
        request: &Request,
        context: &Context,
    ) -> Result<Evaluation, PolicyError> {
        let answer = match self {
            Self::V0_1(exports) => exports
                .evaluator
                .as_ref()
                .map(|export| v0_1::evaluate(running, export, time, request, context)),
            Self::V0_2(exports) => exports
                .evaluator
                .as_ref()
                .map(|export| v0_2::evaluate(running, export, time, request, context)),
        };
        answer.unwrap_or_else(|| Ok(abstention()))
    }

    /// Calls `standing`; `None` for a policy without it.
    pub(crate) fn standing(
        &self,
        running: &mut Running,
        time: Duration,
        context: &Context,
    ) -> Result<Option<Profile>, PolicyError> {
        match self {
            Self::V0_1(exports) => {
                exports.confinement.as_ref().map(|export| v0_1::standing(running, export, time, context))
            }
            Self::V0_2(exports) => {
                exports.confinement.as_ref().map(|export| v0_2::standing(running, export, time, context))
            }
        }
        .transpose()
    }

    /// Calls `for-command`; `None` for a policy without it.
    pub(crate) fn for_command(
        &self,
        running: &mut Running,
        time: Duration,
        request: &Request,
        context: &Context,
    ) -> Result<Option<Profile>, PolicyError> {
        let answer = match self {
            Self::V0_1(exports) => exports
                .confinement
                .as_ref()
                .map(|export| v0_1::for_command(running, export, time, request, context)),
            Self::V0_2(exports) => exports
                .confinement
                .as_ref()
                .map(|export| v0_2::for_command(running, export, time, request, context)),
        };
        answer.unwrap_or(Ok(None))
    }

    /// Calls `inspect`; `None` for a policy without it.
    pub(crate) fn inspect(
        &self,
        running: &mut Running,
        time: Duration,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError> {
        match self {
            Self::V0_1(exports) => exports
                .output_filter
                .as_ref()
                .map(|export| v0_1::inspect(running, export, time, output, context)),
            Self::V0_2(exports) => exports
                .output_filter
                .as_ref()
                .map(|export| v0_2::inspect(running, export, time, output, context)),
        }
        .transpose()
    }

    /// Calls `brief`; an empty text for a policy without it.
    pub(crate) fn brief(
        &self,
        running: &mut Running,
        time: Duration,
        context: &Context,
    ) -> Result<String, PolicyError> {
        let answer = match self {
            Self::V0_1(exports) => {
                exports.orientation.as_ref().map(|export| v0_1::brief(running, export, time, context))
            }
            Self::V0_2(exports) => {
                exports.orientation.as_ref().map(|export| v0_2::brief(running, export, time, context))
            }
        };
        answer.unwrap_or_else(|| Ok(String::new()))
    }
}
