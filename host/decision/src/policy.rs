//! The trait through which the chain calls policies.

use serde::{Deserialize, Serialize};

use crate::context::{Context, VcsParts};
use crate::profile::Profile;
use crate::request::{ActionKinds, Request};
use crate::verdict::{Evaluation, OutputEvaluation, ToolOutput};

/// A policy: turns a request into an evaluation, and does nothing else.
///
/// Implemented by the policy runtime for WebAssembly components, and by tests. A failed call returns an error; the
/// chain turns it into a denial.
pub trait Policy: Send + Sync {
    /// Returns the configured name; it appears in decisions.
    fn name(&self) -> &str;

    /// Returns the SHA-256 of the component, lower-case hex.
    fn digest(&self) -> &str;

    /// Returns the actions for which [`Policy::evaluate`] is to be called.
    fn handles(&self) -> ActionKinds;

    /// Returns the parts of the project's version control that the policy depends on.
    ///
    /// [`Policy::standing`] is called again when one of them changes.
    fn vcs_parts(&self) -> VcsParts {
        VcsParts::default()
    }

    /// Judges one request.
    ///
    /// # Errors
    /// If the policy could not be run to an answer that the contract allows.
    fn evaluate(&self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError>;

    /// Returns the rules for every tool and command; `None` if it has no rules.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError>;

    /// Returns stricter rules for one command; `None` for the standing ones.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn for_command(&self, request: &Request, context: &Context) -> Result<Option<Profile>, PolicyError>;

    /// Returns true if [`Policy::inspect`] is to be called at all.
    fn inspects(&self) -> bool {
        true
    }

    /// Returns true if a source that the user trusts declares that this policy rewrites allowed inputs.
    fn rewrites(&self) -> bool {
        false
    }

    /// Inspects tool output; `None` if it does not want to.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn inspect(
        &self,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError>;

    /// Returns a few lines for the model; empty for none.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn brief(&self, context: &Context) -> Result<String, PolicyError>;
}

/// Why a policy gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PolicyError {
    /// It exceeded its time limit.
    #[error("took longer than its {limit_ms} ms")]
    TimeLimit {
        /// The limit.
        limit_ms: u64,
    },
    /// It exceeded its memory limit.
    #[error("wanted more than its {limit_mib} MiB of memory")]
    MemoryLimit {
        /// The limit.
        limit_mib: u64,
    },
    /// It crashed.
    #[error("trapped: {detail}")]
    Trap {
        /// The runtime's message.
        detail: String,
    },
    /// Its answer exceeds the size limit.
    #[error("gave an answer that is too large: {detail}")]
    AnswerSize {
        /// The value that is too large.
        detail: String,
    },
    /// Its answer violates the contract.
    #[error("gave an answer that the contract does not allow: {detail}")]
    BadAnswer {
        /// The problem.
        detail: String,
    },
    /// The host could not run it.
    #[error("could not be run: {detail}")]
    Host {
        /// The failed step.
        detail: String,
    },
}
