//! `everyday`: real tasks, outside and inside the sandbox.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::cache::Cache;
use crate::{build, project, setup};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask everyday                  all tasks, as an ordinary user and, where root runs this, as root
  cargo xtask everyday --area git       those of tests/everyday/tasks/git.toml
  cargo xtask everyday --quick          those that every test run includes
  cargo xtask everyday --one-home       counts the questions of all tasks in one home
  cargo xtask everyday --write-docs     all, and the page docs/works-inside.md
  cargo xtask everyday --json > all.json

A line for each task, then the sums. Exit status: 1 if a task works outside and not inside, 2 if the
run itself failed. Nothing is installed on the system; programs that are missing for a task are reported.";

/// The program that runs the tasks.
const PROGRAM: &str = "everyday";
/// The variable that lists directories with further programs.
const PROGRAMS: &str = "PORTCULLIS_EVERYDAY_PROGRAMS";
/// Its exit status if a task failed.
const TASKS_FAILED: i32 = 1;

/// Options of `everyday`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs only the tasks of this area
    #[arg(long)]
    area: Option<String>,
    /// Runs only tasks whose names contain this text
    #[arg(long)]
    name: Option<String>,
    /// Runs only the tasks that every test run includes
    #[arg(long)]
    quick: bool,
    /// Runs them only as this user: `root` or `user`
    #[arg(long)]
    user: Option<String>,
    /// Counts questions: runs all tasks in one home, one after the other, with registries allowed
    #[arg(long)]
    one_home: bool,
    /// Runs nothing: reads the results that `--json` printed
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Prints the results as JSON
    #[arg(long)]
    json: bool,
    /// Writes docs/works-inside.md
    #[arg(long)]
    write_docs: bool,
}

pub(crate) fn task(options: &Options) -> Result<()> {
    let tools = setup::ready()?;
    let programs = if options.quick { Vec::new() } else { programs()? };
    let build = || crate::run::show(project::cargo().args(["build", "--workspace", "--quiet"]));
    build().and_then(|()| build::machine_code(build::Profile::Dev)).and_then(|()| build())?;
    let directory = project::target_directory()?.join("debug");
    let mut command = Command::new(directory.join(PROGRAM));
    command.args(words(options)).stdin(Stdio::null());
    command.env("PATH", tools.search_path()?).env("PORTCULLIS_BIN", directory.join("portcullis"));
    command.env(PROGRAMS, std::env::join_paths(programs).context("putting the directories together")?);
    result(command.status().context("starting the tasks")?)
}

fn programs() -> Result<Vec<PathBuf>> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    Ok(setup::everyday_programs(&cache))
}

fn words(options: &Options) -> Vec<String> {
    let named = [("--area", &options.area), ("--name", &options.name), ("--user", &options.user)];
    let mut words: Vec<String> = Vec::new();
    for (name, value) in named {
        words.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
    }
    let files = options.from.iter().map(|file| file.display().to_string());
    words.extend(files.flat_map(|file| ["--from".to_owned(), file]));
    let flags = [
        ("--quick", options.quick),
        ("--one-home", options.one_home),
        ("--json", options.json),
        ("--write-docs", options.write_docs),
    ];
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned()));
    words
}

fn result(status: ExitStatus) -> Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        Some(TASKS_FAILED) => bail!("tasks that work outside do not work inside"),
        _ => bail!("the run of the tasks ended with {status}"),
    }
}
