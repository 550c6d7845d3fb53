//! The tasks of the matrix that only need what `cargo xtask setup` provides: they work inside, in every test run.
//!
//! Each user does every second one of them; with `PORTCULLIS_EVERY_TASK` (`cargo xtask test --full`), each does all.

use anyhow::{Result, ensure};
use portcullis_everyday::{Machine, all, report, run};
use portcullis_it::User;

#[test]
fn everyday_work_goes_through_as_the_caller() -> Result<()> {
    each_quick_task_works(User::Caller)
}

#[test]
fn everyday_work_goes_through_as_an_ordinary_user() -> Result<()> {
    each_quick_task_works(User::Ordinary)
}

fn each_quick_task_works(user: User) -> Result<()> {
    let machine = Machine::look()?;
    let mut failed = Vec::new();
    let does_all = std::env::var_os("PORTCULLIS_EVERY_TASK").is_some();
    let own = usize::from(user == User::Ordinary);
    let tasks = all()?;
    let quick = tasks.iter().filter(|task| task.quick).enumerate();
    for (_, task) in quick.filter(|(place, _)| does_all || place % 2 == own) {
        let row = run(&machine, task, user)?;
        // A task that cannot be tried here fails as well: nothing is passed over.
        if !row.works() || !row.again.is_empty() {
            failed.push(report::line(&row));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

#[test]
fn every_task_is_on_the_page() -> Result<()> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/works-inside.md");
    let page = std::fs::read_to_string(page)?;
    for task in all()? {
        let line = format!("| {} |", task.name.replace('|', "\\|"));
        ensure!(page.contains(&line), "run `cargo xtask everyday --write-docs`: no `{}`", task.name);
    }
    Ok(())
}
