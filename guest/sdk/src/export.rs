//! The bridge between [`Policy`] and the exports of a component.

use std::cell::OnceCell;
use std::marker::PhantomData;

use crate::bindings::exports::portcullis::policy::{
    confinement, evaluator, lifecycle, orientation, output_filter,
};
use crate::{
    ConfigError, Context, Descriptor, Evaluation, OutputEvaluation, Policy, Profile, Request, ToolOutput,
    read_config,
};

/// Exports a policy: everything in its component that the host can call.
///
/// The component exports the full set of the contract; functions that the policy does not implement have no opinion.
/// Natively the macro expands to nothing that links.
#[macro_export]
macro_rules! export_policy {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            ::std::thread_local! {
                static CONFIGURED: ::std::cell::OnceCell<$policy> = const { ::std::cell::OnceCell::new() };
            }

            impl $crate::export::Stored for $policy {
                fn with<R>(action: impl FnOnce(&::std::cell::OnceCell<Self>) -> R) -> R {
                    CONFIGURED.with(action)
                }
            }

            type Component = $crate::export::Exported<$policy>;
    $crate::bindings::export_bindings!(Component with_types_in $crate::bindings);
        };
        // Natively this only checks that the type is a policy.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $crate::Descriptor = <$policy as $crate::Policy>::describe;
    };
}

/// The storage of a component's configured policy.
pub trait Stored: Policy {
    /// Calls `action` with the only storage cell of this component.
    fn with<R>(action: impl FnOnce(&OnceCell<Self>) -> R) -> R;
}

/// The exports of a component, implemented by a policy.
#[derive(Debug)]
pub struct Exported<P>(PhantomData<P>);

/// Calls the configured policy. A call before `configure` is the host's mistake; the trap turns the answer into a
/// denial.
fn configured<P: Stored, R>(action: impl FnOnce(&P) -> R) -> R {
    P::with(|place| place.get().map(action)).unwrap_or_else(|| std::process::abort())
}

impl<P: Stored> lifecycle::Guest for Exported<P> {
    fn describe() -> Descriptor {
        P::describe()
    }

    fn configure(config: String) -> Result<(), Vec<ConfigError>> {
        let policy = P::configure(read_config(&config)?)?;
        P::with(|place| place.set(policy)).map_err(|_| vec![ConfigError::new("", "already configured")])
    }
}

impl<P: Stored> evaluator::Guest for Exported<P> {
    fn evaluate(request: Request, context: Context) -> Evaluation {
        configured(|policy: &P| policy.evaluate(&request, &context))
    }
}

impl<P: Stored> output_filter::Guest for Exported<P> {
    fn inspect(output: ToolOutput, context: Context) -> OutputEvaluation {
        configured(|policy: &P| policy.inspect(&output, &context))
    }
}

impl<P: Stored> confinement::Guest for Exported<P> {
    fn standing(context: Context) -> Profile {
        configured(|policy: &P| policy.standing(&context))
    }

    fn for_command(request: Request, context: Context) -> Option<Profile> {
        configured(|policy: &P| policy.for_command(&request, &context))
    }
}

impl<P: Stored> orientation::Guest for Exported<P> {
    fn brief(context: Context) -> String {
        configured(|policy: &P| policy.brief(&context))
    }
}
