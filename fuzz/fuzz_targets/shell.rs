//! Shell scripts: parsed or refused, within the limits and without a crash.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let _read = portcullis_shell::read(script);
});
