//! Reads the examples of a page in Markdown.
//!
//! - A `console` block holds commands, each after `$ `, and the output of each. `…` stands for any text in a line, and
//!   in a line of its own for any number of lines.
//! - Every other block is a file; the line before it ends with the file's name in backticks and a colon.
//! - `<!-- before` … `-->` is a script that readers do not see, which prepares the next block.
//! - `<!-- model` … `-->` is what the scripted model of the page's pi does, as `tests/pi/scenario.mjs` describes it.

use anyhow::{Context as _, Result, bail, ensure};

/// A section of a page.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// A script that prepares what follows.
    Before(String),
    File {
        path: String,
        text: String,
    },
    Command(Command),
    /// What pi's model does.
    Model(String),
}

/// A command and the output that the page shows.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) line: String,
    /// The number of the page's line that holds it, counted from 0.
    pub(crate) at: usize,
    pub(crate) output: Vec<String>,
}

impl Section {
    pub(crate) fn commands(&self) -> impl Iterator<Item = &Command> {
        self.steps.iter().filter_map(|step| match step {
            Step::Command(command) => Some(command),
            Step::Before(_) | Step::File { .. } | Step::Model(_) => None,
        })
    }
}

/// Returns the sections of a page. The first one is the text before the first heading of the second level.
pub(crate) fn sections(page: &str) -> Result<Vec<Section>> {
    let mut all = vec![Section::default()];
    let mut lines = page.lines().enumerate();
    let mut before = "";
    while let Some((at, line)) = lines.next() {
        let section = all.last_mut().context("there is a first section")?;
        let mut until = |end: &str| -> Result<Vec<(usize, &str)>> {
            let mut block = Vec::new();
            for (number, line) in lines.by_ref() {
                if line == end {
                    return Ok(block);
                }
                block.push((number, line));
            }
            bail!("line {} begins something without an end", at + 1)
        };
        if let Some(title) = line.strip_prefix("## ") {
            all.push(Section { title: title.to_owned(), steps: Vec::new() });
        } else if line == "<!-- before" {
            section.steps.push(Step::Before(joined(&until("-->")?)));
        } else if line == "<!-- model" {
            section.steps.push(Step::Model(joined(&until("-->")?)));
        } else if line == "```console" {
            section.steps.extend(commands(&until("```")?)?.into_iter().map(Step::Command));
        } else if line.starts_with("```") {
            let path = file_named(before)
                .with_context(|| format!("line {}: neither `console` nor a file with a name", at + 1))?;
            section.steps.push(Step::File { path: path.to_owned(), text: joined(&until("```")?) });
        }
        if !line.is_empty() {
            before = line;
        }
    }
    Ok(all)
}

fn joined(lines: &[(usize, &str)]) -> String {
    lines.iter().map(|(_, line)| format!("{line}\n")).collect()
}

/// Returns the last words in backticks of a line that ends with a colon.
fn file_named(line: &str) -> Option<&str> {
    line.strip_suffix(':')?.rsplit('`').nth(1)
}

fn commands(lines: &[(usize, &str)]) -> Result<Vec<Command>> {
    let mut all: Vec<Command> = Vec::new();
    for (at, line) in lines {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(line), _) => all.push(Command { line: line.to_owned(), at: *at, output: Vec::new() }),
            (None, Some(command)) => command.output.push((*line).to_owned()),
            (None, None) => bail!("line {}: output without a command", at + 1),
        }
    }
    ensure!(!all.is_empty(), "a block without a command");
    Ok(all)
}

/// Returns true if `shown` is what `wanted` says.
pub(crate) fn is_as_shown(wanted: &[String], shown: &[String]) -> bool {
    match (wanted.split_first(), shown.split_first()) {
        (None, None) => true,
        (Some((line, rest)), _) if line == "…" => {
            is_as_shown(rest, shown)
                || shown.split_first().is_some_and(|(_, later)| is_as_shown(wanted, later))
        }
        (Some((line, rest)), Some((first, later))) => is_line(line, first) && is_as_shown(rest, later),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Returns true if the parts of `wanted` between its `…` are in `shown`, in this order.
fn is_line(wanted: &str, shown: &str) -> bool {
    let Some((first, rest)) = wanted.split_once('…') else { return wanted == shown };
    let Some(mut shown) = shown.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = shown.split_once(part) else { return false };
        shown = after;
    }
    shown.ends_with(last)
}

#[test]
fn an_ellipsis_stands_for_text_or_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (wanted, shown, right) in [
        ("a\nb", "a\nb", true),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nd", true),
        ("a\n…", "a\nb", true),
        ("a … c…e", "a b cde", true),
        ("a…", "b", false),
        ("…\nx", "a\nb", false),
        ("", "a", false),
    ] {
        assert_eq!(is_as_shown(&lines(wanted), &lines(shown)), right, "{wanted:?} {shown:?}");
    }
}
