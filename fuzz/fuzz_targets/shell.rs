//! Shell scripts: read or refused, never more than the limits, never a crash.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let _read = portcullis_shell::read(script);
});
