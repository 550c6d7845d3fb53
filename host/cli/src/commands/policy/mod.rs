//! `portcullis policy`: for authors of policies, and for those who share them.

mod bench;
mod bounds;
mod build;
mod compare;
mod inspect;
mod lint;
mod new;
mod project;
mod share;
mod templates;
mod test;
mod toolchain;

use portcullis_policy_runtime::{CachePlace, Limits, Runtime};

use crate::args::policy::Policy;

/// Carries the verb out.
pub(crate) fn run(verb: Policy) -> crate::Outcome {
    match verb {
        Policy::New(new) => new::run(&new),
        Policy::Build(build) => build::run(&build),
        Policy::Test(test) => test::run(&test),
        Policy::Bench(bench) => bench::run(&bench),
        Policy::Lint(lint) => lint::run(&lint),
        Policy::Inspect(inspect) => inspect::run(&inspect),
        Policy::Replay(replay) => compare::replay(replay),
        Policy::Diff(diff) => compare::diff(&diff),
        Policy::Share(verb) => share::run(verb),
    }
}

/// The engine of the enforcer, with its limits. Nothing is kept: what authors build changes all the time.
fn runtime() -> anyhow::Result<Runtime> {
    Ok(Runtime::new(Limits::default(), &CachePlace::None)?)
}
