//! What a component carries: read or refused, and what was read can be put back.

#![no_main]

#[expect(dead_code, reason = "the other properties have targets of their own")]
#[path = "../../host/packs/tests/bytes/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|component: &[u8]| properties::component(component));
