//! Another thread of the same command changes the meaning of a name while it is judged.

use std::process::Command;

use portcullis_sandbox_runtime::Exit;

use crate::kit::Session;
use crate::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[("races::no_race_makes_a_refused_name", no_race_makes_a_refused_name)];

/// Attempts of each kind; the variable sets another number, for a long run.
const TRIES: u32 = 3_000;
const TRIES_VARIABLE: &str = "PORTCULLIS_RACE_TRIES";

fn no_race_makes_a_refused_name() {
    let rules = crate::names::rules("refuse evil\nrefuse evil-place");
    let session = Session::with(|_, profile| profile.names = Some(rules));
    let source = session.path("work/races.c");
    std::fs::write(&source, include_str!("races.c")).expect("written");
    let program = session.path("work/races");
    let compiled = Command::new("cc").arg("-O1").args(["-pthread", "-o"]).args([&program, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return cannot_run("a C compiler (`cc`)");
    }
    assert!(session.control("mkdir -p good evil-place swap; ln -sfn evil-place link"));
    let tries = std::env::var(TRIES_VARIABLE).ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES);
    for how in ["string", "descriptor", "cwd", "exchange"] {
        for pause in [0, 300, 3000] {
            let outcome = session.sh(&format!("./races {how} {tries} {pause}"));
            println!("    {how}, pause {pause}: {}", outcome.output.trim());
            assert_eq!(outcome.exit, Exit::Code(0), "{how}: {outcome:?}");
        }
        let leaks = || {
            [300, 3000].into_iter().any(|pause| !session.control(&format!("./races {how} {tries} {pause}")))
        };
        assert!(leaks(), "control: without the sandbox the race {how} is won");
    }
}
