//! The sections of a component: parsed or refused, and parsed ones can be written back.

#![no_main]

#[expect(dead_code, reason = "the other properties have targets of their own")]
#[path = "../../host/packs/tests/bytes/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|component: &[u8]| properties::component(component));
