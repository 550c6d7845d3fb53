//! Build and test tasks that plain cargo cannot do: `cargo xtask <task>`.
//!
//! If a task needs more than Rust and Node, `setup` fetches it once into a cache outside the clone, from the
//! configured registries. This program is not part of the product.

mod book;
mod build;
mod cache;
mod command_tables;
mod contract;
mod digest;
mod dist;
mod elsewhere;
mod everyday;
mod extension;
mod guests;
mod project;
mod run;
mod setup;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Builds, tests and sets up Portcullis.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Makes this machine ready: both pi versions, search tools, wasm targets; skips those that it has
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::Options),
    /// Builds the default policy and the test guests
    #[command(after_help = guests::EXAMPLES)]
    Guests(guests::Options),
    /// Builds the default policy, then the host
    #[command(after_help = build::BUILD_EXAMPLES)]
    Build(build::BuildOptions),
    /// Regenerates generated files
    #[command(after_help = build::GEN_EXAMPLES)]
    Gen(build::GenOptions),
    /// Checks layers, import circles, dependencies, licences, versions, lints, unsafe code
    #[command(after_help = tidy::EXAMPLES)]
    Tidy,
    /// Links the program for systems other than Linux
    #[command(after_help = elsewhere::EXAMPLES)]
    Elsewhere(elsewhere::Options),
    /// Checks that the contract keeps what its released versions promise
    #[command(after_help = contract::EXAMPLES)]
    WitCheck,
    /// Sets up, builds, checks and tests everything
    #[command(after_help = test::EXAMPLES)]
    Test(test::Options),
    /// Runs everyday work outside and inside the sandbox
    #[command(after_help = everyday::EXAMPLES)]
    Everyday(everyday::Options),
    /// Builds the documentation as a site of static files
    #[command(after_help = book::EXAMPLES)]
    Book(book::Options),
    /// Makes the packages of a release: archive, npm, Debian, checksums, SBOM
    #[command(after_help = dist::EXAMPLES)]
    Dist(dist::Options),
    /// Builds everything and shows a real pi under a policy
    #[command(after_help = build::DEMO_EXAMPLES)]
    Demo,
}

fn main() -> ExitCode {
    let Err(error) = run(&Arguments::parse().task) else { return ExitCode::SUCCESS };
    run::say(format_args!("error: {error}"));
    for cause in error.chain().skip(1) {
        run::say(format_args!("  because: {cause}"));
    }
    ExitCode::FAILURE
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Setup(options) => setup::task(options),
        Task::Guests(options) => guests::task(options),
        Task::Build(options) => build::build(options),
        Task::Gen(options) => build::generate(options),
        Task::Tidy => tidy::task(),
        Task::Elsewhere(options) => elsewhere::task(options),
        Task::WitCheck => contract::check(),
        Task::Test(options) => test::task(options),
        Task::Everyday(options) => everyday::task(options),
        Task::Book(options) => book::task(options),
        Task::Dist(options) => dist::task(options),
        Task::Demo => build::demo(),
    }
}
