//! The entry point: runs the tests, or the hostile process of a test.

use std::env;
use std::process::ExitCode;

use portcullis_each_user::run;

use crate::{edits, links, permits, races, reads, searches, spelling, views, writes};

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Some((races::FLIP, words)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return races::flip_for_ever(words);
    }
    let tests = [
        reads::TESTS,
        writes::TESTS,
        edits::TESTS,
        permits::TESTS,
        links::TESTS,
        // No other system has mounts for one session.
        if cfg!(feature = "portable") { &[] } else { views::TESTS },
        spelling::TESTS,
        searches::TESTS,
        races::TESTS,
    ]
    .concat();
    run(&tests, &arguments)
}
