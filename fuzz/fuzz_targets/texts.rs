//! Texts about trust in packs: trust files, locks, keys, signatures, manifests, names in registries.

#![no_main]

#[expect(dead_code, reason = "the other properties have targets of their own")]
#[path = "../../host/packs/tests/bytes/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| properties::text(text));
