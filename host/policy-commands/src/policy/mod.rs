//! `portcullis policy`: commands for authors of policies, and for sharing policies.

mod bench;
mod build;
mod compare;
mod fuzz;
mod inspect;
mod lint;
mod new;
mod observe;
mod once;
mod progress;
mod share;
mod test;
mod try_out;
mod watch;

use portcullis_command_line::args::policy::Policy;
use portcullis_command_line::exit;

/// Runs the subcommand.
///
/// # Errors
/// If what it works on cannot be read, built, accepted or written; if the output cannot be written.
pub fn run(verb: Policy) -> exit::Outcome {
    match verb {
        Policy::New(new) => new::run(&new),
        Policy::Build(build) => build::run(&build),
        Policy::Test(test) => test::run(&test),
        Policy::Run(run) => once::run(run),
        Policy::Try(wanted) => try_out::run(&wanted),
        Policy::Watch(watch) => watch::run(&watch),
        Policy::Bench(bench) => bench::run(&bench),
        Policy::Lint(lint) => lint::run(&lint),
        Policy::Fuzz(fuzz) => fuzz::run(&fuzz),
        Policy::Inspect(inspect) => inspect::run(&inspect),
        Policy::Replay(replay) => compare::replay(replay),
        Policy::Observe(observe) => observe::run(&observe),
        Policy::Diff(diff) => compare::diff(&diff),
        Policy::Share(verb) => share::run(verb),
    }
}
