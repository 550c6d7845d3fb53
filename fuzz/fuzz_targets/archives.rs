//! Archives of packs, as a whole and as a manifest in an otherwise valid archive.

#![no_main]

#[expect(dead_code, reason = "the other properties have targets of their own")]
#[path = "../../host/packs/tests/bytes/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    properties::archive(bytes);
    properties::manifest_of_an_archive(bytes);
});
