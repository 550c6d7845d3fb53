//! The portcullis program.
//!
//! Depending on its first argument it is a part of a sandbox, the compiler of policies (unless it is built without, and
//! `portcullis-compile` lies beside it), or the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    // This must come before any other code starts a thread or opens a file descriptor.
    if first == portcullis_sandbox_runtime::KEEPER_ARGUMENT {
        return portcullis_sandbox_runtime::keeper_main(portcullis_session::make_names);
    }
    if first == portcullis_sandbox_runtime::PROBE_ARGUMENT {
        return portcullis_sandbox_runtime::probe_main();
    }
    #[cfg(feature = "compiler")]
    if first == portcullis_policy_runtime::COMPILER_ARGUMENT {
        return portcullis_policy_runtime::compiler_main();
    }
    portcullis_cli::run()
}
