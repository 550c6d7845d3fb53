//! The trait that a policy author implements.

use serde::de::DeserializeOwned;

use crate::{ConfigError, Context, Descriptor, Evaluation, OutputEvaluation, Profile, Request, ToolOutput};

/// A policy: configured once, then called by reference.
///
/// Every decision uses a fresh copy of the configured value, so changes in interior mutability do not carry over to the
/// next one. Every method except the first two has a default without an opinion.
pub trait Policy: Sized + 'static {
    /// The configuration of the policy: a `serde` type with `deny_unknown_fields`, or [`Never`](crate::Never) for none.
    type Config: DeserializeOwned;

    /// Returns the description of the policy, independent of its configuration.
    fn describe() -> Descriptor;

    /// Makes the policy from its configuration. Expensive work belongs here.
    ///
    /// # Errors
    ///
    /// Every invalid value, each with its JSON pointer. The host then does not start.
    fn configure(config: Self::Config) -> Result<Self, Vec<ConfigError>>;

    /// Returns the verdict on one request of a kind that the descriptor lists.
    fn evaluate(&self, _request: &Request, _context: &Context) -> Evaluation {
        Evaluation::abstain()
    }

    /// Returns the rules for every tool and command of the session.
    fn standing(&self, _context: &Context) -> Profile {
        Profile::new()
    }

    /// Returns a stricter profile for one command; `None` keeps the standing one.
    fn for_command(&self, _request: &Request, _context: &Context) -> Option<Profile> {
        None
    }

    /// Inspects a tool's output before the model sees it.
    fn inspect(&self, _output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        OutputEvaluation::abstain()
    }

    /// Returns a few lines for the model about the effect of the policy on its work.
    fn brief(&self, _context: &Context) -> String {
        String::new()
    }
}
