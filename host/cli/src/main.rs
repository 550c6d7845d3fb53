//! The portcullis program: the keeper of a sandbox when it is started as one, otherwise the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let is_keeper =
        std::env::args_os().nth(1).is_some_and(|first| first == portcullis_confine::KEEPER_ARGUMENT);
    if is_keeper {
        // Before anything else starts a thread or opens a descriptor.
        return portcullis_confine::keeper_main(portcullis_session::make_names);
    }
    portcullis_cli::run()
}
