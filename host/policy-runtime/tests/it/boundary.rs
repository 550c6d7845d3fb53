//! From component to verdict: whatever the bytes are, the host keeps running and no failure allows an action.
//! `fuzz/` has the same checks as a fuzz target, for machines that have the time.

use std::path::Path;

use portcullis_decision::Effect;
use portcullis_decision::verdict::OutputVerdict;
use proptest::prelude::*;

use crate::golden;
use crate::hand_made::{HandMade, store};
use crate::property::{answers, component};

#[test]
fn the_control_answers() {
    let allows = HandMade::evaluate(&[store(0, 1), store(4, 0), store(8, 0)].concat()).build();
    assert_eq!(component(&allows), Some(Effect::Allow));
    assert_eq!(component(&HandMade::evaluate("").build()), Some(Effect::Deny));
    assert!(component(b"\0asm").is_none());
}

/// Returns a seed of the fuzz target.
fn seed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/answers");
    std::fs::read(folder.join(name)).unwrap()
}

/// Seeds that are not verdicts are arbitrary bytes to a caller that asks for a verdict.
const SEEDS: [&str; 11] = [
    "abstain",
    "allow",
    "ask",
    "brief",
    "deny",
    "no-rules",
    "oblige",
    "replace",
    "rules",
    "rules-of-a-command",
    "withhold",
];

/// Checks that each seed still has its meaning. With meaningless seeds the fuzz target would find little.
#[test]
fn the_seeds_are_answers() {
    for (name, expected) in [
        ("abstain", Effect::Allow),
        ("allow", Effect::Allow),
        ("ask", Effect::Ask),
        ("deny", Effect::Deny),
        ("oblige", Effect::Deny),
    ] {
        assert_eq!(answers(&seed(name)).effect, expected, "{name}");
    }
    assert_eq!(answers(&seed("rules")).rules.first(), Some(&Some(4)));
    assert_eq!(answers(&seed("no-rules")).rules.first(), Some(&Some(0)));
    assert_eq!(answers(&seed("rules-of-a-command")).rules.last(), Some(&Some(4)));
    assert!(matches!(answers(&seed("replace")).output, Some(OutputVerdict::Replace(_))));
    assert_eq!(answers(&seed("withhold")).output, Some(OutputVerdict::Withhold));
    assert!(answers(&seed("brief")).brief.is_some_and(|brief| brief.contains("/srv/app")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_a_component_that_were_changed(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = golden::component("verdicts");
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            if let Some(slot) = bytes.get_mut(place) {
                *slot = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        component(&bytes);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        component(&[b"\0asm\x0d\0\x01\0".as_slice(), &bytes].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 16, ..ProptestConfig::default() })]

    /// The answer of `evaluate` has nineteen words. A guest may put any value into each of them.
    #[test]
    fn words_of_an_answer_that_were_changed(
        changes in proptest::collection::vec(
            (0_u32..19, prop_oneof![0_i64..8, 3000_i64..5000, Just(-1), Just(i64::from(i32::MIN)), any::<i32>().prop_map(i64::from)]),
            1..6,
        ),
    ) {
        let instructions: String = changes.iter().map(|(word, value)| store(word * 4, *value)).collect();
        component(&HandMade::evaluate(&instructions).build());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 64, ..ProptestConfig::default() })]

    /// Answers of every function with a few changed words. One guest is called many times.
    #[test]
    fn answers_that_were_changed(
        name in prop::sample::select(SEEDS.to_vec()),
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![0_u32..8, 8000_u32..9200, any::<u32>(), Just(u32::MAX)]),
            0..5,
        ),
    ) {
        let mut bytes = seed(name);
        for (place, word) in changes {
            let words = bytes.len() / 4;
            let place = place.index(words) * 4;
            if let Some(slot) = bytes.get_mut(place..place + 4) {
                slot.copy_from_slice(&word.to_le_bytes());
            }
        }
        answers(&bytes);
    }
}
