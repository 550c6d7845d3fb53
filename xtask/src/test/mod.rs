//! `test`: every check that a change must pass, in one command.

mod ledger;
mod leftovers;
mod programs;
mod report;
mod runner;
mod selection;
mod tally;

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::build::{self, GenOptions};
use crate::cache::Tools;
use crate::run::show;
use crate::{book, contract, elsewhere, extension, guests, project, setup, tidy};
use ledger::Ledger;
use leftovers::Traces;
use runner::Environment;
use tally::counted;

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask test              set up, build, check, test; the last line counts
  cargo xtask test --quick      format, lints and the tests without a sandbox or pi: before each commit
  cargo xtask test --full       as `test`, with long races, every user with every pi, and the book: before a release
  CI=true cargo xtask test      as `test`; a test that cannot run here fails

Every step runs, even after one has failed. The time of each step and the slowest tests are printed;
target/test-times.tsv has the times of all tests.";

/// Environment variables that make tests run longer, with the values that `--full` sets.
const LONG_FORMS: [(&str, &str); 11] = [
    ("PORTCULLIS_ALL_ANSWERS", "yes"),
    ("PORTCULLIS_COMMIT_KILLS", "1000"),
    ("PORTCULLIS_EVERY_PROGRAM", "yes"),
    ("PORTCULLIS_EVERY_TASK", "yes"),
    ("PORTCULLIS_EXPORT_RECORDS", "1000000"),
    ("PORTCULLIS_RACE_TRIES", "10000"),
    ("PORTCULLIS_RACE_FACTOR", "20"),
    ("PORTCULLIS_RULE_SETS", "100000"),
    ("PORTCULLIS_UNDO_KILLS", "1000"),
    ("PORTCULLIS_UNDO_ROUNDS", "10000"),
    ("PROPTEST_CASES", "10000"),
];

/// Options of `test`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs only what takes a few minutes: formatting, lints, and tests without a sandbox or pi
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Runs races and random tests at their full length, and tests of pi for every user with every version
    #[arg(long)]
    full: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    let mut ledger = Ledger::default();
    if options.quick {
        quick(&mut ledger);
    } else {
        everything(&mut ledger, options.full)?;
    }
    ledger.close()
}

fn quick(ledger: &mut Ledger) {
    ledger.check("rustfmt", || show(project::cargo().args(["fmt", "--all", "--check"])));
    ledger.check("tidy", tidy::task);
    ledger.check("clippy", clippy);
    programs::test(ledger, programs::Choice::Quick, &Environment::default());
}

fn everything(ledger: &mut Ledger, is_full: bool) -> Result<()> {
    let start = Instant::now();
    let tools = setup::ready()?;
    if is_full {
        setup::for_full_run()?;
    }
    ledger.took("setup", start.elapsed());
    ledger.check("guests", || guests::shipped_policies().and_then(|()| guests::test_guests()));
    ledger.check("guests --check", guests::check);
    ledger.check("rustfmt", || show(project::cargo().args(["fmt", "--all", "--check"])));
    ledger.check("tidy", tidy::task);
    let build = |words: &[&str]| show(project::cargo().args(["build", "--workspace", "--quiet"]).args(words));
    ledger.check("build", || {
        // First what compiles the policies whose machine code is then built into the rest.
        build(&["--bin", "portcullis-compile"])?;
        build::machine_code(build::Profile::Dev)?;
        build(&[])
    });
    let words = ["--features", "portcullis-cli/portable", "--bin", "portcullis-portable"];
    ledger.check("build --features portable", || {
        show(project::cargo().args(["build", "--workspace", "--quiet"]).args(words))
    });
    ledger.check("gen --check", || build::generate(&GenOptions { check: true }));
    ledger.check("wit-check", contract::check);
    ledger.check("clippy", clippy);
    for (what, pi) in [("tsc with pi 0.74", &tools.pi_0_74), ("tsc with pi 1.5", &tools.pi_1_5)] {
        ledger.check(what, || extension::check_types(&tools, pi.as_ref().context("set-up left no pi")?));
    }
    ledger.check("elsewhere", || elsewhere::task(&elsewhere::Options { all: is_full }));
    if is_full {
        ledger.check("book --check", book::check);
        ledger.check("text policies", text_policies);
    }
    let target = project::target_directory()?;
    let environment = environment(&tools, &target, is_full)?;
    let traces = Traces::before(&target.join("debug"));
    programs::test(ledger, programs::Choice::All, &environment);
    ledger.tests("doc tests", || {
        let mut cargo = project::cargo();
        cargo.args(["test", "--workspace", "--doc", "--no-fail-fast", "--quiet"]);
        counted(cargo.stdin(Stdio::null()))
    });
    ledger.tests("pi", || {
        let pi = tools.pi_1_5.as_ref().context("set-up left no pi")?;
        counted(&mut extension::tests(&pi.node)?)
    });
    ledger.check("leftovers", || traces.check());
    ledger.write_times(&target.join("test-times.tsv"))
}

/// Formats, lints and tests the policies that run texts, which are workspaces of their own.
fn text_policies() -> Result<()> {
    let target = project::target_directory()?.join("text-policies");
    for manifest in guests::text_policies() {
        let run = |words: &[&str], more: &[&str]| {
            let mut cargo = project::cargo();
            cargo.args(words).arg("--manifest-path").arg(&manifest);
            if more.is_empty() {
                return show(&mut cargo);
            }
            show(cargo.args(["--locked", "--target-dir"]).arg(&target).args(more))
        };
        run(&["fmt", "--check"], &[])?;
        run(&["clippy", "--all-targets", "--quiet"], &["--", "-D", "warnings"])?;
        run(&["test", "--quiet"], &["--lib"])?;
    }
    Ok(())
}

fn clippy() -> Result<()> {
    let words = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    show(project::cargo().args(words))
}

/// Returns the environment of the tests: paths of programs, and how long to try.
fn environment(tools: &Tools, target: &Path, is_full: bool) -> Result<Environment> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), tools.search_path()?),
        ("PORTCULLIS_BIN".into(), target.join("debug/portcullis").into()),
    ];
    if is_full {
        variables.extend(LONG_FORMS.map(|(name, value)| (name.into(), value.into())));
    }
    Ok(Environment { variables, is_full })
}
