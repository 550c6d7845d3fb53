//! Runs the matrix of everyday work; `cargo xtask everyday` starts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use portcullis_everyday::{Machine, OneHome, Row, Task, all, report, run, run_in_one_home};
use portcullis_it::User;
use serde::{Deserialize, Serialize};

/// Runs everyday work outside and inside the sandbox.
#[derive(Debug, Parser)]
#[command(name = "everyday")]
struct Arguments {
    /// Only the tasks of this area
    #[arg(long)]
    area: Option<String>,
    /// Only tasks whose names contain this text
    #[arg(long)]
    name: Option<String>,
    /// Only the tasks that are part of every test run
    #[arg(long)]
    quick: bool,
    /// Only as this user; as root and as an ordinary user otherwise, where root runs this
    #[arg(long, value_parser = ["root", "user"])]
    user: Option<String>,
    /// Only counts questions: runs all tasks in one home, one after the other, with registries allowed
    #[arg(long)]
    one_home: bool,
    /// Runs nothing: takes the results that `--json` printed, from one file or from several
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Prints the results as JSON
    #[arg(long)]
    json: bool,
    /// Writes docs/works-inside.md
    #[arg(long)]
    write_docs: bool,
}

/// The page that is generated, and what stands at its beginning.
const PAGE: &str = "../../docs/works-inside.md";
const HEAD: &str = include_str!("../works-inside.head.md");

/// All results, as `--json` prints them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Results {
    rows: Vec<Row>,
    one_home: Vec<OneHome>,
}

fn main() -> ExitCode {
    match try_main(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn try_main(arguments: &Arguments) -> Result<ExitCode> {
    let is_partial =
        arguments.area.is_some() || arguments.name.is_some() || arguments.quick || arguments.one_home;
    ensure!(!(arguments.write_docs && is_partial), "the page shows all tasks: `--write-docs` goes alone");
    let results = if arguments.from.is_empty() { run_tasks(arguments)? } else { read(&arguments.from)? };
    for line in report::sums(&results.rows).into_iter().chain(report::one_homes(&results.one_home)) {
        say(&line);
    }
    if arguments.json {
        answer(&serde_json::to_string_pretty(&results).context("printing the results")?);
    }
    if arguments.write_docs {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
        let text = report::page(&results.rows, &results.one_home, HEAD);
        fs::write(&page, text).context("writing the page")?;
    }
    let has_failed = results.rows.iter().any(|row| row.counts() && !row.works());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(files: &[PathBuf]) -> Result<Results> {
    let mut results = Results::default();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("reading `{}`", file.display()))?;
        let more: Results =
            serde_json::from_str(&text).with_context(|| format!("reading `{}`", file.display()))?;
        results.rows.extend(more.rows);
        results.one_home.extend(more.one_home);
    }
    Ok(results)
}

fn run_tasks(arguments: &Arguments) -> Result<Results> {
    let wanted = |task: &Task| {
        arguments.area.as_ref().is_none_or(|area| *area == task.area)
            && arguments.name.as_ref().is_none_or(|name| task.name.contains(name.as_str()))
            && (task.quick || !arguments.quick)
    };
    let tasks: Vec<Task> = all()?.into_iter().filter(wanted).collect();
    ensure!(!tasks.is_empty(), "there are no such tasks");
    let machine = Machine::look()?;
    let mut results = Results::default();
    if !arguments.one_home {
        results.rows = rows(&machine, &tasks, arguments)?;
    }
    if arguments.one_home || arguments.write_docs {
        for user in users(arguments) {
            results.one_home.push(run_in_one_home(&machine, &tasks, user, say)?);
        }
    }
    Ok(results)
}

fn rows(machine: &Machine, tasks: &[Task], arguments: &Arguments) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        for user in users(arguments) {
            let row = run(machine, task, user).with_context(|| format!("{}: {}", task.area, task.name))?;
            say(&format!("{:>3}/{} {}", number + 1, tasks.len(), report::line(&row)));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the users as whom tasks run: root is only there if it is the caller.
fn users(arguments: &Arguments) -> Vec<User> {
    let wanted = |user: &str| arguments.user.as_deref().is_none_or(|wanted| wanted == user);
    let is_root = User::Ordinary.is_stranger();
    let both = [(User::Ordinary, wanted("user")), (User::Caller, is_root && wanted("root"))];
    both.into_iter().filter_map(|(user, is_wanted)| is_wanted.then_some(user)).collect()
}

#[expect(clippy::print_stderr, reason = "the only place where progress is written")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stdout, reason = "the only place where results are written")]
fn answer(text: &str) {
    println!("{text}");
}
