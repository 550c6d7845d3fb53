//! The portcullis program of systems other than Linux, built on Linux for its tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis_cli::start()
}
