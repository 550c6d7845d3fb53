//! `portcullis audit`: the log of decisions and outcomes.

mod export;
pub mod logs;
mod show;
mod stats;
mod tail;
mod verify;

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::audit::Audit;
use portcullis_command_line::exit;

/// Runs the subcommand.
///
/// # Errors
/// If a log or a record cannot be read, or the output cannot be written.
pub fn run(audit: Audit) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match audit {
        Audit::Tail(options) => tail::run(&around, &options),
        Audit::Show(decision) => show::run(&around, &decision),
        Audit::Verify { file, json } => verify::run(&around, file, json),
        Audit::Export(options) => export::run(&around, &options),
        Audit::Stats { json } => stats::run(&around, json),
    }
}
