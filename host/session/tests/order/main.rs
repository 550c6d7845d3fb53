//! File tools against commands that change names while a tool installs its file.
//!
//! The sandboxes are real; the tests run as root and as an ordinary user.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot set itself up must fail, and says what it has counted"
)]

mod completing;
mod installers;
mod kinds;
mod races;
mod scene;
mod sessions;
mod visible;

use std::process::ExitCode;

use portcullis_sandbox_runtime::{KEEPER_ARGUMENT, keeper_main};
use portcullis_session::make_names;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == KEEPER_ARGUMENT) {
        return keeper_main(make_names);
    }
    if arguments.first().is_some_and(|first| first == visible::WITHOUT_NAMESPACES) {
        visible::without_namespaces();
        return ExitCode::SUCCESS;
    }
    portcullis_each_user::run(&[races::TESTS, visible::TESTS, completing::TESTS].concat(), &arguments)
}
