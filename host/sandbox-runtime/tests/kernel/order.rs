//! Two sandboxes in one project: their brokers change names in one order, so two changes that are harmless by
//! themselves cannot combine unseen.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;

use portcullis_sandbox::{NameOrder, Profile};
use portcullis_sandbox_runtime::{Confinement, Exit};

use crate::kit::{self, Outcome, Session};
use crate::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[
    ("order::two_sandboxes_complete_no_repository", two_sandboxes_complete_no_repository),
    (
        "order::two_sandboxes_make_no_name_in_a_moved_directory",
        two_sandboxes_make_no_name_in_a_moved_directory,
    ),
    ("order::an_order_outlives_those_who_die_with_it", an_order_outlives_those_who_die_with_it),
];

/// Attempts of each kind; the variable sets another number, for a long run.
const TRIES: u32 = 100;
const TRIES_VARIABLE: &str = "PORTCULLIS_RACE_TRIES";
/// Attempts that the control may take to show what each sandbox permits by itself.
const TRIES_OF_CONTROL: u32 = 20_000;

fn two_sandboxes_complete_no_repository() {
    contest("repository");
}

fn two_sandboxes_make_no_name_in_a_moved_directory() {
    contest("moved");
}

/// Runs a race between two sandboxes that share an order, and as a control between two that do not.
fn contest(kind: &str) {
    let tries = std::env::var(TRIES_VARIABLE).ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES);
    let Some(pair) = Pair::new(Shared::Yes) else { return cannot_run("a C compiler (`cc`)") };
    let outcome = pair.race(kind, tries, &[]);
    println!("    {kind}: {}", outcome.output.trim());
    assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
    let Some(pair) = Pair::new(Shared::No) else { return cannot_run("a C compiler (`cc`)") };
    let outcome = pair.race(kind, TRIES_OF_CONTROL, &["once"]);
    println!("    control, {kind}, an order for each sandbox: {}", outcome.output.trim());
    assert_eq!(outcome.exit, Exit::Code(1), "control: without a common order the race is lost: {outcome:?}");
}

/// Whether both sandboxes have one name order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shared {
    Yes,
    No,
}

/// Two sandboxes that share one writable directory.
struct Pair {
    one: Session,
    other: Confinement,
    program: PathBuf,
}

impl Pair {
    fn new(shared: Shared) -> Option<Self> {
        let mut wanted: Option<Profile> = None;
        let one = Session::with(|place, profile| {
            let mut other = profile.clone();
            other.temp = place.join("other-temp");
            fs::create_dir(&other.temp).expect("a directory");
            if shared == Shared::No {
                (profile.order, other.order) = (None, None);
            } else {
                // As another process of the user would open it.
                other.order = Some(NameOrder::open(&place.join("order")).expect("an order of names"));
            }
            wanted = Some(other);
        });
        let other = kit::start(&wanted.expect("a profile"));
        let (source, program) = (one.path("work/order.c"), one.path("work/order"));
        fs::write(&source, include_str!("order.c")).expect("written");
        let compiled = Command::new("cc").args(["-O1", "-o"]).args([&program, &source]).status();
        compiled.is_ok_and(|status| status.success()).then_some(Self { one, other, program })
    }

    fn race(&self, kind: &str, tries: u32, words: &[&str]) -> Outcome {
        fs::write(self.one.path("work/meeting"), [0; 64]).expect("written");
        let tries = tries.to_string();
        let program = self.program.to_string_lossy();
        let command =
            |side: &str| self.one.command(&[&[&*program, side, kind, &tries, "meeting"], words].concat());
        let (read, write) = kit::pipe();
        let stdio = [kit::null(), write.try_clone().expect("a copy"), write];
        let second = self.other.launch(command("1"), stdio).expect("the second starts");
        let outcome = self.one.run(command("0")).expect("the first starts");
        assert!(matches!(second.wait(), Exit::Code(_)));
        let mut said = String::new();
        fs::File::from(read).read_to_string(&mut said).expect("output");
        outcome
    }
}

/// The kernel releases a broker's locks when it dies.
fn an_order_outlives_those_who_die_with_it() {
    let Some(Pair { one, other, .. }) = Pair::new(Shared::Yes) else {
        return cannot_run("a C compiler (`cc`)");
    };
    // Commands that change names all the time, when their sandbox is killed.
    let script = "while :; do mkdir d && mv d e && rmdir e; done";
    for _ in 0..3 {
        let (read, write) = kit::pipe();
        let stdio = [kit::null(), write.try_clone().expect("a copy"), write];
        let busy = other.launch(one.command(&["sh", "-c", script]), stdio).expect("it starts");
        one.allows("for i in 1 2 3 4 5; do mkdir own$i && mv own$i mine && rmdir mine; done");
        busy.kill();
        drop((busy, read));
    }
    drop(other);
    let order = NameOrder::open(&one.path("order")).expect("an order of names");
    let held = order.exclusive().expect("the host has its turn");
    drop(held);
    one.allows("mkdir last && mv last end");
}
