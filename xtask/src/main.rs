//! Build and test tasks that plain cargo cannot do: `cargo xtask <task>`.
//!
//! Everything a task needs beyond Rust and Node is fetched once by `setup` into a cache outside the
//! clone, from the registries the clients are configured for. Nothing here is part of the product.

mod cache;
mod run;
mod setup;

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
    /// Makes this machine ready: both pi versions, search tools, wasm targets. Skips what is there.
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::Options),
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Setup(options) => setup::task(&options),
    }
}
