//! One decision of the default policy compared with other engines that have the same rules: in native code,
//! as a component, by Cedar, by Rego (regorus) and by JavaScript in Node.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`; `node` must be on `PATH`.
//!
//! Before the measurement every engine answers thousands of requests, and all answers must agree. The other
//! engines get requests prepared in their own form. Our times include the conversion of a request for the
//! component.

mod cedar;
mod node;
mod ours;
mod rego;
mod rules;

use std::cell::RefCell;
use std::hint::black_box;

use portcullis_benches::{Contestant, Outcome, Race, Told};
use rules::{Ask, Rules};

/// Number of requests that all engines answer before the race.
const CHECKED: usize = 5_000;
/// Number of these requests in the race.
const RACED: usize = 64;

const NATIVE: &str = "native Rust";
const AGAIN: &str = "component, used again";
const FRESH: &str = "component, a fresh copy";
const CEDAR: [&str; 2] = ["cedar, a policy for a rule", "cedar, one policy"];
const REGO: [&str; 2] = ["regorus, interpreter", "regorus, its machine"];
const NODE: [&str; 2] = ["node, in its process", "node, asked by a pipe"];

/// Targets: two contestants, and the largest wanted ratio of their times.
const TARGETS: [(&str, &str, f64); 6] = [
    (AGAIN, NATIVE, 5.0),
    (AGAIN, CEDAR[0], 0.1),
    (AGAIN, CEDAR[1], 0.1),
    (AGAIN, REGO[0], 0.01),
    (AGAIN, REGO[1], 0.01),
    (AGAIN, NODE[1], 1.0),
];

fn main() {
    for (title, rules) in [("20 rules", Rules::new(8, 4)), ("50 paths and 200 domains", Rules::new(25, 200))]
    {
        let asks = rules.asks(CHECKED);
        let allowed = check(&rules, &asks);
        println!("{title}: {CHECKED} requests answered alike by all, {allowed} of them allowed");
        let outcome = race(title, &rules, &asks);
        println!("{outcome}");
        for (name, other, target) in TARGETS {
            let ratio = outcome.ratio(name, other).map_or(f64::NAN, |ratio| ratio.median);
            println!("  {name} / {other}: {ratio:.4} (wanted: at most {target})");
        }
        println!();
    }
}

/// Checks that all engines give the same answers, and returns the number of allowed requests.
fn check(rules: &Rules, asks: &[Ask]) -> usize {
    let ours = ours::Policy::load(rules);
    let mut again = ours.again();
    let cedars = cedar::Form::ALL.map(|form| cedar::Engine::load(rules, form));
    let mut interpreter = rego::Interpreter::load(rules);
    let mut machine = rego::Machine::load(rules);
    let mut node = node::start(rules, &[]);
    let mut allowed = 0;
    for ask in asks {
        let (native, request) = (ours.native_request(ask), ours.request(ask));
        let expected = ours.native(&native);
        let input = rego::input(ask);
        let request_to_cedar = cedar::request(ask);
        let answers = [
            (AGAIN, ours::allows(&ours.answer_again(&mut again, &request))),
            (FRESH, ours::allows(&ours.answer(&request))),
            (CEDAR[0], cedars[0].allows(&request_to_cedar)),
            (CEDAR[1], cedars[1].allows(&request_to_cedar)),
            (REGO[0], interpreter.allows(&input)),
            (REGO[1], machine.allows(&input)),
            (NODE[1], node::allows(&mut node, &node::line(ask))),
        ];
        for (name, answer) in answers {
            assert_eq!(answer, expected, "`{name}` answers {ask:?} otherwise than `{NATIVE}`");
        }
        allowed += usize::from(expected);
    }
    // If all answers were the same, the comparison would prove nothing.
    assert!(
        (asks.len() / 5..asks.len() * 4 / 5).contains(&allowed),
        "only {allowed} of {} are allowed",
        asks.len()
    );
    allowed
}

fn race(title: &str, rules: &Rules, asks: &[Ask]) -> Outcome {
    let asks = &asks[..RACED];
    let ours = ours::Policy::load(rules);
    let mut again = ours.again();
    let [many, one] = cedar::Form::ALL.map(|form| cedar::Engine::load(rules, form));
    let mut interpreter = rego::Interpreter::load(rules);
    let mut machine = rego::Machine::load(rules);
    let node = RefCell::new(node::start(rules, asks));

    let natives: Vec<_> = asks.iter().map(|ask| ours.native_request(ask)).collect();
    let requests: Vec<_> = asks.iter().map(|ask| ours.request(ask)).collect();
    let to_cedar: Vec<_> = asks.iter().map(cedar::request).collect();
    let inputs: Vec<_> = asks.iter().map(rego::input).collect();
    let lines: Vec<_> = asks.iter().map(node::line).collect();
    let in_process = |node: &RefCell<Told>, calls: u32| node.borrow_mut().say(&format!("race {calls}"));

    Race::new(&format!("one decision, {title}")).run(vec![
        Contestant::new(NATIVE, 20_000, turns(&natives, |request| ours.native(request))),
        Contestant::new(AGAIN, 2_000, turns(&requests, |request| ours.answer_again(&mut again, request))),
        Contestant::new(FRESH, 500, turns(&requests, |request| ours.answer(request))),
        Contestant::new(CEDAR[0], 500, turns(&to_cedar, |request| many.allows(request))),
        Contestant::new(CEDAR[1], 500, turns(&to_cedar, |request| one.allows(request))),
        Contestant::new(REGO[0], 100, turns(&inputs, |input| interpreter.allows(input))),
        Contestant::new(REGO[1], 100, turns(&inputs, |input| machine.allows(input))),
        Contestant::at_once(NODE[0], 20_000, |calls| in_process(&node, calls)),
        Contestant::new(NODE[1], 200, turns(&lines, |line| node::allows(&mut node.borrow_mut(), line))),
    ])
}

/// Returns a function that answers the next item at each call, in an endless cycle.
fn turns<'a, T, A>(items: &'a [T], mut answer: impl FnMut(&'a T) -> A + 'a) -> impl FnMut() + 'a {
    let mut rest = items.iter().cycle();
    move || {
        black_box(answer(rest.next().expect("there are requests")));
    }
}
