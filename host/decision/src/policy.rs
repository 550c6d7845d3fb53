//! The trait through which the chain hears policies.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::profile::Profile;
use crate::request::{ActionKinds, Request};
use crate::verdict::{Evaluation, OutputEvaluation, ToolOutput};

/// Something that turns a request into an evaluation, and does nothing else.
///
/// Implemented by the policy runtime for WebAssembly components, and by tests.
/// A failed call is an error here; the chain makes a denial of it.
pub trait Policy: Send + Sync {
    /// The name under which it was configured; appears in decisions.
    fn name(&self) -> &str;

    /// SHA-256 of its component, lower-case hex.
    fn digest(&self) -> &str;

    /// The actions for which [`Policy::evaluate`] wants to be called.
    fn handles(&self) -> ActionKinds;

    /// Judges one request.
    ///
    /// # Errors
    /// When the policy could not be run to an answer that the contract allows.
    fn evaluate(&self, request: &Request, context: &Context) -> Result<Evaluation, PolicyError>;

    /// The rules that hold for every tool and command; none: it has no rules.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn standing(&self, context: &Context) -> Result<Option<Profile>, PolicyError>;

    /// Stricter rules for one command; none: the standing ones.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn for_command(&self, request: &Request, context: &Context) -> Result<Option<Profile>, PolicyError>;

    /// Whether [`Policy::inspect`] wants to be called at all.
    fn inspects(&self) -> bool {
        true
    }

    /// Whether it was declared, by somebody the user trusts, that this policy rewrites what it allows.
    fn rewrites(&self) -> bool {
        false
    }

    /// Looks at tool output; none: it does not want to.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn inspect(
        &self,
        output: &ToolOutput,
        context: &Context,
    ) -> Result<Option<OutputEvaluation>, PolicyError>;

    /// A few lines for the model; empty: nothing to say.
    ///
    /// # Errors
    /// As for [`Policy::evaluate`].
    fn brief(&self, context: &Context) -> Result<String, PolicyError>;
}

/// Why a policy gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PolicyError {
    /// It ran longer than it may.
    #[error("took longer than its {limit_ms} ms")]
    TimeLimit {
        /// The limit.
        limit_ms: u64,
    },
    /// It wanted more memory than it may have.
    #[error("wanted more than its {limit_mib} MiB of memory")]
    MemoryLimit {
        /// The limit.
        limit_mib: u64,
    },
    /// It crashed.
    #[error("trapped: {detail}")]
    Trap {
        /// What the runtime said.
        detail: String,
    },
    /// Its answer is larger than an answer may be.
    #[error("gave an answer that is too large: {detail}")]
    AnswerSize {
        /// What was too large.
        detail: String,
    },
    /// Its answer is not one that the contract allows.
    #[error("gave an answer that the contract does not allow: {detail}")]
    BadAnswer {
        /// What is wrong.
        detail: String,
    },
    /// The host could not run it.
    #[error("could not be run: {detail}")]
    Host {
        /// What failed.
        detail: String,
    },
}
