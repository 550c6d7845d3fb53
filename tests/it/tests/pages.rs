//! The examples of the pages for users, run as they are written: `docs/cookbook.md`, `docs/tutorial.md`
//! and the README.
//!
//! `UPDATE_REFERENCE=1` writes the output of commands that say something else into the page. `PAGE_SECTION` names a
//! section that alone is run.

mod parse;
mod picture;
mod run;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::User;

use self::parse::{Section, is_as_shown, sections};

as_each_user!(recipes_work, the_tutorial_works, the_first_five_minutes_work);

/// A recipe has at most so many lines.
const SHORT: usize = 15;

/// Each recipe has a home of its own.
fn recipes_work(user: User) -> Result<()> {
    let name = "cookbook.md";
    let page = run::page(name)?;
    let all = sections(&page)?;
    let Some((common, recipes)) = all.split_first() else { return Ok(()) };
    ensure!(recipes.len() >= 30, "{} recipes", recipes.len());
    let mut wrong = Vec::new();
    for recipe in recipes.iter().filter(|recipe| is_wanted(recipe)) {
        ensure!(recipe.commands().next().is_some(), "“{}” has nothing that can be run", recipe.title);

        compare(user, &[common, recipe], &mut wrong).with_context(|| format!("“{}”", recipe.title))?;
    }
    report(name, &page, &wrong)
}

/// The sections of the tutorial follow each other in one home.
fn the_tutorial_works(user: User) -> Result<()> {
    let name = "tutorial.md";
    let page = run::page(name)?;
    let all = sections(&page)?;
    let mut wrong = Vec::new();
    compare(user, &all.iter().collect::<Vec<_>>(), &mut wrong)?;
    report(name, &page, &wrong)
}

/// The commands of the README's first five minutes, with a no to the one question.
fn the_first_five_minutes_work(user: User) -> Result<()> {
    const BEFORE: &str =
        "<!-- before\nmkdir ~/Documents && printf 'test:\\n\\t@echo tested\\n' > Makefile\n-->\n";
    let readme = run::page("../README.md")?;
    let (_, section) = readme.split_once("## The first five minutes\n\n```sh\n").context("the section")?;
    let (block, _) = section.split_once("```").context("the end of the block")?;
    let lines = block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim_end());
    let commands: String = lines.clone().map(|line| format!("$ {line}\n")).collect();
    let asking = commands.replace("Documents\n", "Documents\n> n\n");
    let all = sections(&format!("{BEFORE}```console\n{asking}```\n"))?;
    let told = run::run(user, &all.iter().collect::<Vec<_>>())?;
    for (line, wanted) in [
        ("portcullis doctor", "sandbox"),
        ("portcullis run -- make test", "tested"),
        ("portcullis run -- ls ~/Documents", "Outside this project, in your home directory."),
        ("portcullis explain", "base.closed"),
        ("portcullis allow registries", "Saved: preset registries, in this project"),
        ("portcullis grants list", "preset registries"),
    ] {
        let at = lines.clone().position(|other| other == line).with_context(|| format!("no `{line}`"))?;
        let shown = told.get(at).context("each command has output")?.join("\n");
        ensure!(shown.contains(wanted), "`{line}` does not say “{wanted}”: {shown}");
    }
    Ok(())
}

fn is_wanted(section: &Section) -> bool {
    std::env::var("PAGE_SECTION").map_or(true, |wanted| section.title.contains(&wanted))
}

/// A command whose output differs from the page's.
struct Wrong {
    /// The page's line of the command, counted from 0.
    at: usize,
    line: String,
    on_the_page: usize,
    shown: Vec<String>,
}

fn compare(user: User, parts: &[&Section], wrong: &mut Vec<Wrong>) -> Result<()> {
    let commands = parts.iter().flat_map(|section| section.commands());
    for (command, shown) in commands.zip(run::run(user, parts)?) {
        if !is_as_shown(&command.output, &shown) {
            let (at, on_the_page) = (command.at, command.output.len());
            wrong.push(Wrong { at, line: command.line.clone(), on_the_page, shown });
        }
    }
    Ok(())
}

fn report(name: &str, page: &str, wrong: &[Wrong]) -> Result<()> {
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
        for one in wrong.iter().rev() {
            lines.splice(one.at + 1..one.at + 1 + one.on_the_page, one.shown.iter().cloned());
        }
        return run::rewrite(name, &(lines.join("\n") + "\n"));
    }
    let told: Vec<String> = wrong
        .iter()
        .map(|one| format!("docs/{name}:{}: `{}` says:\n{}", one.at + 1, one.line, one.shown.join("\n")))
        .collect();
    ensure!(told.is_empty(), "{}", told.join("\n\n"));
    Ok(())
}

#[test]
fn recipes_are_short() {
    let page = run::page("cookbook.md").unwrap();
    for recipe in page.split("\n## ").skip(1) {
        let (title, text) = recipe.split_once('\n').unwrap();
        let visible =
            text.split("<!-- before").map(|part| part.split_once("-->").map_or(part, |(_, rest)| rest));
        let lines = visible.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with("```"));
        let count = lines.count();
        assert!(count <= SHORT, "“{title}” has {count} lines");
    }
}
