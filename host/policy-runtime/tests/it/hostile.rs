//! Each guest misbehaves in one way. The result is an error with the right reason, within the limit, and the
//! next decision of the same policy works.

use std::time::{Duration, Instant};

use portcullis_decision::verdict::{Evaluation, Verdict};
use portcullis_decision::{Policy, PolicyError};
use portcullis_policy_runtime::{
    CachePlace, Compiler, ComponentPolicy, Limits, LoadError, Runtime, Start, limits,
};

use crate::hand_made::{HandMade, REASON, RULE, TRACE, VERDICT, store};
use crate::request::{context, read};

fn load(guest: HandMade) -> Result<ComponentPolicy, LoadError> {
    Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap().load(
        "guest",
        &guest.build(),
        "{}",
    )
}

fn ask(policy: &ComponentPolicy, path: &str) -> Result<Evaluation, PolicyError> {
    policy.evaluate(&read(path), &context())
}

/// A guest that misbehaves on a long path below `/srv/app` and gives its normal answer on short ones.
fn on_bad(instructions: &str) -> HandMade {
    // The argument points to the request, where the path has no fixed offset. The mark of the bump allocator
    // shows whether the path is long.
    HandMade::evaluate(&format!("(if (i32.gt_u (global.get $next) (i32.const 70000)) (then {instructions}))"))
}

const BAD: usize = 2000;

fn check(instructions: &str, is_right: impl Fn(&PolicyError) -> bool) {
    check_guest(on_bad(instructions), is_right);
}

fn check_guest(guest: HandMade, is_right: impl Fn(&PolicyError) -> bool) {
    let policy = load(guest).unwrap();
    assert_eq!(policy.start(), Start::Configure);
    check_policy(&policy, &is_right);
    policy.snapshot_job().unwrap().run().unwrap();
    assert_eq!(policy.start(), Start::Snapshot);
    check_policy(&policy, &is_right);
}

fn check_policy(policy: &ComponentPolicy, is_right: &impl Fn(&PolicyError) -> bool) {
    let bad = format!("/srv/app/{}", "b".repeat(BAD));
    for _ in 0..3 {
        assert_eq!(ask(policy, "/srv/app/good").unwrap().cause.rule, "test.rule", "control");
        let start = Instant::now();
        let error = ask(policy, &bad).unwrap_err();
        assert!(is_right(&error), "{error}");
        // The limit is on processor time, and the machine may be busy.
        assert!(start.elapsed() < limits::DECISION_TIME * 12, "took {:?}", start.elapsed());
    }
    assert_eq!(ask(policy, "/srv/app/good").unwrap().cause.rule, "test.rule");
}

fn traps(text: &'static str) -> impl Fn(&PolicyError) -> bool {
    move |error| matches!(error, PolicyError::Trap { detail } if detail.contains(text))
}

fn breaks_the_contract(text: &'static str) -> impl Fn(&PolicyError) -> bool {
    move |error| matches!(error, PolicyError::BadAnswer { detail } if detail.contains(text))
}

fn is_too_large(error: &PolicyError) -> bool {
    matches!(error, PolicyError::AnswerSize { .. })
}

#[test]
fn endless_loop() {
    check("(loop (br 0))", |error| {
        *error
            == PolicyError::TimeLimit { limit_ms: u64::try_from(limits::DECISION_TIME.as_millis()).unwrap() }
    });
}

#[test]
fn memory_bomb() {
    check("(loop (drop (memory.grow (i32.const 16))) (br 0))", |error| {
        *error == PolicyError::MemoryLimit { limit_mib: 64 }
    });
}

#[test]
fn one_leap_of_memory() {
    check("(drop (memory.grow (i32.const 60000)))", |error| matches!(error, PolicyError::MemoryLimit { .. }));
}

#[test]
fn deep_recursion() {
    let deep = "(func $deep (param i64) (result i64)
        (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))";
    let guest = on_bad("(drop (call $deep (i64.const 0)))").fields(deep);
    check_guest(guest, traps("of stack"));
}

#[test]
fn trap() {
    check("(unreachable)", traps("unreachable"));
    check("(drop (i32.div_u (i32.const 1) (i32.const 0)))", traps("divide by zero"));
}

#[test]
fn answers_outside_its_memory() {
    check("(return (i32.const -256))", |error| matches!(error, PolicyError::BadAnswer { .. }));
    check(&(store(REASON, 0x7fff_0000) + &store(REASON + 4, 10)), breaks_the_contract("out of bounds"));
    check(&store(REASON + 4, 0x7fff_ffff), |error| {
        matches!(error, PolicyError::BadAnswer { .. } | PolicyError::AnswerSize { .. })
    });
}

#[test]
fn answers_without_meaning() {
    check(&store(VERDICT, 9), breaks_the_contract("discriminant"));
    check(
        "(i32.store (i32.const 4096) (i32.const -1)) (i32.store (i32.const 3112) (i32.const 4096))",
        |error| matches!(error, PolicyError::BadAnswer { .. }),
    );
    check("(return (i32.const 3))", breaks_the_contract("aligned"));
}

#[test]
fn answers_against_the_contract() {
    // No rule.
    check(&store(RULE + 4, 0), breaks_the_contract("`cause.rule` is empty"));
    // The reason `because` as the rule, with the byte before it: control.
    check(
        &format!("(i32.store8 (i32.const 5000) (i32.const 10)) {}{}", store(RULE, 5000), store(RULE + 4, 1)),
        breaks_the_contract("holds a space, or a character that is invisible"),
    );
}

#[test]
fn oversized_answers() {
    let grown = |answer: &str| format!("(drop (memory.grow (i32.const 950))) {answer}");
    // A reason of 60 MB.
    check(&grown(&store(REASON + 4, 60_000_000)), is_too_large);
    // A million steps of a trace.
    check(&grown(&(store(TRACE, 65536) + &store(TRACE + 4, 1_000_000))), is_too_large);
    // 2,000 steps: within the limit on bytes, above the contract's limit.
    check(&grown(&(store(TRACE, 131_072) + &store(TRACE + 4, 2_000))), |error| {
        matches!(error, PolicyError::AnswerSize { .. } | PolicyError::BadAnswer { .. })
    });
    // A rule id of a kilobyte.
    check(&store(RULE + 4, 1_000), is_too_large);
}

#[test]
fn long_texts_for_people_are_cut() {
    let policy = load(HandMade::evaluate(
        &("(memory.fill (i32.const 100000) (i32.const 97) (i32.const 20000))".to_owned()
            + &store(REASON, 100_000)
            + &store(REASON + 4, 20_000)),
    ))
    .unwrap();
    assert_eq!(ask(&policy, "/srv/app/a").unwrap().cause.reason, "a".repeat(1024));
}

#[test]
fn every_decision_has_a_fresh_copy() {
    // Would answer `deny` the first time and `abstain` after that, if it could keep state.
    let guest = HandMade::evaluate(&format!(
        "(if (i32.load (i32.const 8)) (then {})) (i32.store (i32.const 8) (i32.const 1))",
        store(VERDICT, 0)
    ));
    let policy = load(guest).unwrap();
    for _ in 0..5 {
        assert!(matches!(ask(&policy, "/srv/app/a").unwrap().verdict, Verdict::Deny(_)));
    }
}

#[test]
fn copies_are_configured() {
    // `configure` leaves its length in memory and in a global. Both must be in the copy.
    let guest = || {
        HandMade::evaluate(
            "(if (i32.ne (i32.load (i32.const 8)) (i32.const 10)) (then (unreachable)))
             (if (i32.ne (global.get $length) (i32.const 10)) (then (unreachable)))",
        )
        .configure("(i32.store (i32.const 8) (local.get $length)) (global.set $length (local.get $length))")
    };
    let global = "(global $length (mut i32) (i32.const 0))";
    // With an instruction that makes a snapshot impossible.
    let changes_tables =
        "(table 1 funcref) (func (export \"unused\") (table.set (i32.const 0) (ref.null func)))";
    for (fields, start) in
        [(global.to_owned(), Start::Snapshot), (format!("{global}{changes_tables}"), Start::Configure)]
    {
        let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap();
        let component = guest().fields(&fields).build();
        let policy = runtime.load("guest", &component, r#"{"abc": 1}"#).unwrap();
        assert!(ask(&policy, "/srv/app/a").is_ok());
        assert_eq!(policy.snapshot_job().unwrap().run().is_ok(), start == Start::Snapshot);
        assert_eq!(policy.start(), start);
        assert!(ask(&policy, "/srv/app/a").is_ok());
        assert!(ask(&policy, "/srv/app/a").is_ok());
        let policy = runtime.load("guest", &component, r"{}").unwrap();
        assert!(ask(&policy, "/srv/app/a").is_err(), "control: another configuration");
    }
}

#[test]
fn configure_is_limited_too() {
    let failed = |instructions: &str| match load(HandMade::evaluate("").configure(instructions)) {
        Err(LoadError::Call { call: "configure", source }) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(failed("(loop (br 0))"), PolicyError::TimeLimit { limit_ms: 2000 }));
    assert!(matches!(failed("(unreachable)"), PolicyError::Trap { .. }));
}

#[test]
fn a_refused_configuration_is_explained() {
    // result: error; a list of one record of two strings, pointer `/test.rule`'s bytes.
    let refuse = "(i32.store (i32.const 2048) (i32.const 1))
        (i32.store (i32.const 2052) (i32.const 2100)) (i32.store (i32.const 2056) (i32.const 1))
        (i32.store (i32.const 2100) (i32.const 4096)) (i32.store (i32.const 2104) (i32.const 14))
        (i32.store (i32.const 2108) (i32.const 4110)) (i32.store (i32.const 2112) (i32.const 5))";
    let error = load(HandMade::evaluate("").configure(refuse)).unwrap_err();
    assert_eq!(error.to_string(), "the policy refuses its configuration: `test:hand-made`: 1.0.0");
    let silent = "(i32.store (i32.const 2048) (i32.const 1))";
    assert!(matches!(load(HandMade::evaluate("").configure(silent)), Err(LoadError::Call { .. })));
}

#[test]
fn many_threads_ask_at_once() {
    let policy = load(on_bad("(unreachable)")).unwrap();
    let bad = format!("/srv/app/{}", "b".repeat(BAD));
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(ask(&policy, "/srv/app/good").is_ok());
                    assert!(ask(&policy, &bad).is_err());
                }
            });
        }
    });
}

#[test]
fn an_idle_engine_still_keeps_time() {
    let policy = load(on_bad("(loop (br 0))")).unwrap();
    // Longer than the clock runs without calls.
    std::thread::sleep(Duration::from_millis(1500));
    let bad = format!("/srv/app/{}", "b".repeat(BAD));
    assert!(matches!(ask(&policy, &bad), Err(PolicyError::TimeLimit { .. })));
}
