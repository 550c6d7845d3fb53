//! What a component carries: read or refused, and what was read can be put back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_packs::Pack;

fuzz_target!(|component: &[u8]| {
    if let Ok(Some(pack)) = Pack::read(component) {
        // What its texts come to once they are written again may be too much for a pack.
        if let Ok(again) = pack.embed(component) {
            assert!(Pack::read(&again).is_ok_and(|again| again.as_ref() == Some(&pack)));
        }
    }
});
