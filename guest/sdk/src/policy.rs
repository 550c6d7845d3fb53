//! What a policy author writes.

use serde::de::DeserializeOwned;

use crate::{ConfigError, Context, Descriptor, Evaluation, OutputEvaluation, Profile, Request, ToolOutput};

/// A policy: configured once, then asked by reference.
///
/// Every decision is taken by a fresh copy of the configured value, so what a
/// method leaves in interior mutability is never seen by the next one. Every
/// method but the first two has a default that has no opinion.
pub trait Policy: Sized + 'static {
    /// The configuration as the policy wants it: a `serde` type with
    /// `deny_unknown_fields`, or [`Never`](crate::Never) when there is none.
    type Config: DeserializeOwned;

    /// Returns what the policy says of itself, whatever its configuration.
    fn describe() -> Descriptor;

    /// Makes the policy of its configuration. Work that takes time belongs here.
    ///
    /// # Errors
    ///
    /// Every value that cannot be used, each with its JSON pointer. The host then
    /// does not start.
    fn configure(config: Self::Config) -> Result<Self, Vec<ConfigError>>;

    /// Returns the verdict on one request of a kind that the descriptor names.
    fn evaluate(&self, _request: &Request, _context: &Context) -> Evaluation {
        Evaluation::abstain()
    }

    /// Returns the rules that hold for every tool and command of the session.
    fn standing(&self, _context: &Context) -> Profile {
        Profile::new()
    }

    /// Returns a stricter profile for one command; none keeps the standing one.
    fn for_command(&self, _request: &Request, _context: &Context) -> Option<Profile> {
        None
    }

    /// Looks at what a tool gave back, before the model sees it.
    fn inspect(&self, _output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        OutputEvaluation::abstain()
    }

    /// Returns a few lines for the model on what the policy means for its work.
    fn brief(&self, _context: &Context) -> String {
        String::new()
    }
}
