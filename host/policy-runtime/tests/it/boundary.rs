//! Component in, verdict out: whatever the bytes are, the host goes on and nobody is let through by a failure.
//! `fuzz/` holds the same as a fuzz target, for machines that have the time.

use std::sync::{Arc, LazyLock};

use portcullis_decision::{Base, Chain, Effect, Member, Mode, Policy as _, RuleSet, Verdict};
use portcullis_policy_runtime::{CachePlace, Limits, Runtime};
use proptest::prelude::*;

use crate::golden;
use crate::hand_made::{HandMade, store};
use crate::request::{context, read};

/// The longest text in an answer, and the words that the host puts around it.
const LONGEST_REASON: usize = (8 << 10) + 256;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(Limits::default(), &CachePlace::None).unwrap());

/// What the host makes of a component: none where it refuses to load it.
fn decided(component: &[u8]) -> Option<(Effect, Option<Verdict>)> {
    let _described = RUNTIME.describe(component);
    let policy = Arc::new(RUNTIME.load("guest", component, "{}").ok()?);
    let (request, context) = (read("/srv/app/a"), context());
    let answer = policy.evaluate(&request, &context);
    if let Ok(evaluation) = &answer {
        assert!(evaluation.cause.reason.len() <= LONGEST_REASON, "{} bytes", evaluation.cause.reason.len());
    }
    let chain = Chain { members: vec![Member { policy, mode: Mode::Enforce }], ..Chain::default() };
    let free = Base { workspace: vec!["/srv/app".into()], temp: "/tmp".into(), closed: Vec::new() };
    let rules = RuleSet::compile(Vec::new(), free, &[]);
    Some((chain.decide(&request, &context, &rules, &[]).effect(), answer.ok().map(|answer| answer.verdict)))
}

/// Nothing is allowed but by an answer that allows, or by one that has no opinion.
fn check(component: &[u8]) -> Result<(), TestCaseError> {
    let Some((effect, verdict)) = decided(component) else { return Ok(()) };
    let may_allow = matches!(verdict, Some(Verdict::Allow(_) | Verdict::Abstain));
    prop_assert!(effect != Effect::Allow || may_allow, "{effect:?} by {verdict:?}");
    Ok(())
}

#[test]
fn the_control_answers() {
    let allows = HandMade::evaluate(&[store(0, 1), store(4, 0), store(8, 0)].concat()).build();
    assert_eq!(decided(&allows).map(|(effect, _)| effect), Some(Effect::Allow));
    assert_eq!(decided(&HandMade::evaluate("").build()).map(|(effect, _)| effect), Some(Effect::Deny));
    assert!(decided(b"\0asm").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn bytes_of_a_component_that_were_changed(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut component = golden::component("verdicts");
        for (place, byte) in changes {
            let place = place.index(component.len());
            if let Some(slot) = component.get_mut(place) {
                *slot = byte;
            }
        }
        if let Some(cut) = cut {
            component.truncate(cut.index(component.len()));
        }
        check(&component)?;
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.extend(bytes);
        check(&component)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 16, ..ProptestConfig::default() })]

    /// The answer of `evaluate` is nineteen words; a guest may put anything into any of them.
    #[test]
    fn words_of_an_answer_that_were_changed(
        changes in proptest::collection::vec(
            (0_u32..19, prop_oneof![0_i64..8, 3000_i64..5000, Just(-1), Just(i64::from(i32::MIN)), any::<i32>().prop_map(i64::from)]),
            1..6,
        ),
    ) {
        let instructions: String = changes.iter().map(|(word, value)| store(word * 4, *value)).collect();
        check(&HandMade::evaluate(&instructions).build())?;
    }
}
