//! The portcullis program: a part of a sandbox or a compiler of policies when it is started as one, otherwise the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    // Before anything else starts a thread or opens a descriptor.
    if first == portcullis_confine::KEEPER_ARGUMENT {
        return portcullis_confine::keeper_main(portcullis_session::make_names);
    }
    if first == portcullis_confine::PROBE_ARGUMENT {
        return portcullis_confine::probe_main();
    }
    if first == portcullis_policy_runtime::COMPILER_ARGUMENT {
        return portcullis_policy_runtime::compiler_main();
    }
    if first == portcullis_cli::PRECOMPILE_ARGUMENT {
        return portcullis_cli::precompile();
    }
    portcullis_cli::run()
}
