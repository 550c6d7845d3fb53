//! Combining, as a table and as laws.

use proptest::prelude::*;

use super::PolicyVote::{Abstain, Failed};
use super::*;

const ALLOW: PolicyVote = PolicyVote::Effect(Effect::Allow);
const ASK: PolicyVote = PolicyVote::Effect(Effect::Ask);
const DENY: PolicyVote = PolicyVote::Effect(Effect::Deny);
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn named(answers: &[PolicyVote]) -> Vec<(&'static str, PolicyVote)> {
    NAMES.into_iter().zip(answers.iter().copied()).collect()
}

fn check(combine: &str, answers: [PolicyVote; 3], expected: Outcome, supporters: &[usize]) {
    let combine = Combine::parse(combine, &NAMES).unwrap();
    assert_eq!(combine.combine(&named(&answers)), expected, "{combine:?} of {answers:?}");
    assert_eq!(combine.supporters(&named(&answers)), supporters, "{combine:?} of {answers:?}");
}

#[test]
fn combines() {
    check("strictest", [ALLOW, ASK, DENY], Outcome::Winner(2), &[0, 1, 2]);
    check("strictest", [ALLOW, ALLOW, Abstain], Outcome::Winner(0), &[0, 1]);
    check("strictest", [Abstain; 3], Outcome::NoOpinion, &[]);
    check("first", [Abstain, ALLOW, DENY], Outcome::Winner(1), &[1]);
    check("first", [ALLOW, Failed, DENY], Outcome::Failed(1), &[0]);
    check("a | b & c", [DENY, ALLOW, ASK], Outcome::Winner(2), &[1, 2]);
    check("(a | b) & c", [DENY, ALLOW, ALLOW], Outcome::Winner(1), &[1, 2]);
    check("a & b", [Abstain, ASK, DENY], Outcome::Winner(1), &[1]);
    check("a | b", [ALLOW, Abstain, Failed], Outcome::Failed(2), &[0]);
    check("a & a", [ASK, DENY, Abstain], Outcome::Winner(0), &[0]);
}

#[test]
fn refuses() {
    for text in ["", "a &", "a b", "(a", "a)", "& a", "e", "!a", &"(".repeat(1000)] {
        assert!(Combine::parse(text, &NAMES).is_err(), "{text}");
    }
}

fn answer() -> impl Strategy<Value = PolicyVote> {
    proptest::sample::select(vec![Abstain, ALLOW, ASK, DENY])
}

fn answers() -> impl Strategy<Value = [PolicyVote; 4]> {
    [answer(), answer(), answer(), answer()]
}

fn expression() -> impl Strategy<Value = String> {
    proptest::sample::select(&NAMES[..]).prop_map(str::to_owned).prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), prop_oneof![Just("&"), Just("|")], inner)
            .prop_map(|(one, operator, two)| format!("({one} {operator} {two})"))
    })
}

fn combine() -> impl Strategy<Value = Combine> {
    let expression = expression().prop_map(|text| Combine::parse(&text, &NAMES).unwrap());
    prop_oneof![Just(Combine::Strictest), Just(Combine::First), expression]
}

/// Returns the result; `None` if no policy has an opinion, which ends as `ask`.
fn effect(combine: &Combine, answers: &[PolicyVote]) -> Option<Effect> {
    match combine.combine(&named(answers)) {
        Outcome::NoOpinion => None,
        Outcome::Failed(_) => Some(Effect::Deny),
        Outcome::Winner(index) => match answers[index] {
            PolicyVote::Effect(effect) => Some(effect),
            Abstain | Failed => panic!("the winner has an opinion"),
        },
    }
}

fn effect_of(text: &str, answers: &[PolicyVote]) -> Option<Effect> {
    effect(&Combine::parse(text, &NAMES).unwrap(), answers)
}

fn stricter_of(one: Option<Effect>, two: Option<Effect>) -> Option<Effect> {
    one.max(two)
}

fn milder_of(one: Option<Effect>, two: Option<Effect>) -> Option<Effect> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

proptest! {
    /// deny > ask > allow; abstaining has no weight, and neither has the order of policies.
    #[test]
    fn strictest_is_the_greatest(answers in answers(), order in Just([0_usize, 1, 2, 3]).prop_shuffle()) {
        let greatest = answers.iter().filter_map(|answer| match answer {
            PolicyVote::Effect(effect) => Some(*effect),
            Abstain | Failed => None,
        }).max();
        prop_assert_eq!(effect(&Combine::Strictest, &answers), greatest);
        let shuffled = order.map(|index| answers[index]);
        prop_assert_eq!(effect(&Combine::Strictest, &shuffled), greatest);
    }

    /// The same policy twice changes nothing.
    #[test]
    fn idempotence(one in expression(), answers in answers()) {
        let once = effect_of(&one, &answers);
        prop_assert_eq!(effect_of(&format!("{one} & {one}"), &answers), once);
        prop_assert_eq!(effect_of(&format!("{one} | {one}"), &answers), once);
        let twice: Vec<_> = named(&answers).into_iter().chain(named(&answers)).collect();
        let winner = |outcome| match outcome {
            Outcome::Winner(index) => Outcome::Winner(index % answers.len()),
            outcome @ (Outcome::NoOpinion | Outcome::Failed(_)) => outcome,
        };
        prop_assert_eq!(winner(Combine::Strictest.combine(&twice)), Combine::Strictest.combine(&named(&answers)));
    }

    #[test]
    fn the_operators_are_what_they_are_called(one in expression(), two in expression(), answers in answers()) {
        let (left, right) = (effect_of(&one, &answers), effect_of(&two, &answers));
        prop_assert_eq!(effect_of(&format!("{one} & {two}"), &answers), stricter_of(left, right));
        prop_assert_eq!(effect_of(&format!("{one} | {two}"), &answers), milder_of(left, right));
        prop_assert_eq!(effect_of(&format!("{two} & {one}"), &answers), stricter_of(left, right));
        prop_assert_eq!(effect_of(&format!("{two} | {one}"), &answers), milder_of(left, right));
    }

    #[test]
    fn the_operators_associate(one in expression(), two in expression(), three in expression(), answers in answers()) {
        for operator in ["&", "|"] {
            prop_assert_eq!(
                effect_of(&format!("({one} {operator} {two}) {operator} {three}"), &answers),
                effect_of(&format!("{one} {operator} ({two} {operator} {three})"), &answers)
            );
        }
    }

    /// Another policy that must agree never loosens.
    #[test]
    fn and_never_loosens(one in expression(), two in expression(), answers in answers()) {
        let both = effect_of(&format!("{one} & {two}"), &answers);
        prop_assert!(both >= effect_of(&one, &answers));
    }

    /// However answers are combined: a stricter answer of one policy never makes the result milder.
    #[test]
    fn a_stricter_answer_never_loosens(combine in combine(), answers in answers(), place in 0_usize..4) {
        let before = effect(&combine, &answers);
        for stricter in [ALLOW, ASK, DENY] {
            let (PolicyVote::Effect(now), PolicyVote::Effect(then)) = (stricter, answers[place]) else { continue };
            if now >= then {
                let mut changed = answers;
                changed[place] = stricter;
                prop_assert!(effect(&combine, &changed) >= before, "{:?}", combine);
            }
        }
    }

    /// However answers are combined: one failure is a denial.
    #[test]
    fn a_failure_denies(combine in combine(), mut answers in answers(), place in 0_usize..4) {
        answers[place] = Failed;
        prop_assert_eq!(combine.combine(&named(&answers)), Outcome::Failed(place));
    }

    /// The member whose answer counts is among those whose obligations count.
    #[test]
    fn the_winner_is_a_supporter(combine in combine(), answers in answers()) {
        let supporters = combine.supporters(&named(&answers));
        match combine.combine(&named(&answers)) {
            Outcome::Winner(index) => prop_assert!(supporters.contains(&index), "{:?}", combine),
            Outcome::NoOpinion => prop_assert_eq!(supporters, Vec::<usize>::new()),
            Outcome::Failed(_) => prop_assert!(false, "nobody failed"),
        }
    }
}
