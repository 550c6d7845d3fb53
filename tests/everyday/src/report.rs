//! The report of a run of the matrix: a line for each row, the sums for each user, and the page for the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::{Asked, OneHome, Outcome, Row};

/// The sums over the rows of one user.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Sums {
    /// The tasks that work outside.
    pub outside: usize,
    /// Those of them that work inside.
    pub inside: usize,
    /// The questions, without those that allowed registries spare.
    pub questions: usize,
    /// What these are about, each counted once.
    pub subjects: usize,
    /// The questions that allowed registries spare.
    pub registries: usize,
    /// The questions of the second sessions.
    pub again: usize,
    /// The failures that the host does not explain.
    pub silent: usize,
    /// The time of builds outside.
    pub build_outside_ms: u64,
    /// The time of the same builds inside, the first time.
    pub build_inside_ms: u64,
}

impl Sums {
    /// Returns the sums over these rows.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut sums = Self::default();
        let mut subjects = BTreeSet::new();
        for row in rows.into_iter().filter(|row| row.counts()) {
            sums.outside += 1;
            sums.inside += usize::from(row.works());
            sums.questions += row.questions();
            subjects.extend(row.subjects());
            sums.registries += row.asked.len() - row.questions();
            sums.again += row.again.len();
            sums.silent += usize::from(row.is_silent());
            if row.build && row.works() {
                sums.build_outside_ms += row.outside_ms;
                sums.build_inside_ms += row.inside_ms.first().copied().unwrap_or_default();
            }
        }
        sums.subjects = subjects.len();
        sums
    }
}

/// Returns one line for a row.
#[must_use]
pub fn line(row: &Row) -> String {
    let Row { area, name, user, .. } = row;
    let (word, more) = match &row.outcome {
        Outcome::Works => ("works", String::new()),
        Outcome::WorksOnce { output } => ("ONCE", format!("; second time: {}", one_line(output))),
        Outcome::Fails { output } => ("FAILS", format!("; {}", one_line(output))),
        Outcome::FailsOutside { output } => ("fails outside", format!("; {}", one_line(output))),
        Outcome::Needs { what } => ("not run", format!("; needs {}", what.join(", "))),
    };
    let mut line = format!("{word:<13} {area}: {name} ({user}){more}");
    if row.counts() {
        let times: Vec<String> = row.inside_ms.iter().map(|time| seconds(*time)).collect();
        let _ = write!(line, "; {} s outside, {} inside", seconds(row.outside_ms), times.join(" and "));
    }
    if !row.asked.is_empty() {
        let _ = write!(line, "; asked: {}", kinds(&row.asked));
    }
    if !row.again.is_empty() {
        let _ = write!(line, "; AGAIN: {}", kinds(&row.again));
    }
    if row.counts() && !row.works() {
        let said = row.lines.first().map_or("nothing was said", String::as_str);
        let _ = write!(line, "; [sandbox] {}", one_line(said));
    }
    line
}

/// Returns the sums as lines of text, one for each user.
#[must_use]
pub fn sums(rows: &[Row]) -> Vec<String> {
    let users: BTreeSet<&str> = rows.iter().map(|row| row.user.as_str()).collect();
    let line = |user: &str| {
        let sums = Sums::of(rows.iter().filter(|row| row.user == user));
        let of_user = rows.iter().filter(|row| row.user == user);
        let not_run = of_user.filter(|row| !row.counts()).count();
        format!(
            "as {user}: {} of {} tasks work inside ({}); {} questions about {} places, {} more to registries, \
             {} of them twice; \
             {} failures without an explanation; builds take {} times as long as outside; {not_run} not run",
            sums.inside,
            sums.outside,
            percent(sums.inside, sums.outside),
            sums.questions,
            sums.subjects,
            sums.registries,
            sums.again,
            sums.silent,
            ratio(sums.build_inside_ms, sums.build_outside_ms),
        )
    };
    users.into_iter().map(line).collect()
}

/// Returns a line for each user about all tasks in one home.
#[must_use]
pub fn one_homes(results: &[OneHome]) -> Vec<String> {
    let line = |result: &OneHome| {
        let OneHome { user, outside, failed, asked } = result;
        format!(
            "as {user}, all tasks one after the other in one home, with registries allowed: {} questions ({}); \
             {} of {outside} work",
            asked.len(),
            kinds(asked),
            outside.saturating_sub(failed.len()),
        )
    };
    results.iter().map(line).collect()
}

/// Returns the page for the documents; `head` is what stands before the tables.
#[must_use]
pub fn page(rows: &[Row], one_home: &[OneHome], head: &str) -> String {
    let mut page = format!("{}\n", head.trim_end());
    page.push_str("\n## Figures\n\n");
    for line in sums(rows).into_iter().chain(one_homes(one_home)) {
        let _ = writeln!(page, "- {line}.");
    }
    let areas: BTreeSet<&str> = rows.iter().map(|row| row.area.as_str()).collect();
    for area in areas {
        let _ = write!(
            page,
            "\n## {area}\n\n| task | as a user | as root | questions | where it does not work |\n"
        );
        page.push_str("|---|---|---|---|---|\n");
        let mut names: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.area == area) {
            if !names.contains(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        for name in names {
            let of =
                |user: &str| rows.iter().find(|row| row.area == area && row.name == name && row.user == user);
            page.push_str(&table_line(name, of("user"), of("root")));
        }
    }
    page
}

fn table_line(name: &str, user: Option<&Row>, root: Option<&Row>) -> String {
    let word = |row: Option<&Row>| row.map_or_else(|| "–".to_owned(), |row| word(&row.outcome));
    let either = user.or(root);
    let asked = either.map(|row| kinds(&row.asked)).unwrap_or_default();
    let fails = [user, root].into_iter().flatten().find(|row| row.counts() && !row.works());
    let instead = fails.and_then(|row| row.instead.clone()).unwrap_or_default();
    format!("| {} | {} | {} | {asked} | {instead} |\n", name.replace('|', "\\|"), word(user), word(root))
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Works => "works".to_owned(),
        Outcome::WorksOnce { .. } => "works once".to_owned(),
        Outcome::Fails { .. } => "**fails**".to_owned(),
        Outcome::FailsOutside { .. } => "not outside either".to_owned(),
        Outcome::Needs { what } => format!("not run: needs {}", what.join(", ")),
    }
}

/// Returns kinds of questions with their numbers: `connect 2, write`.
fn kinds(asked: &[Asked]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for question in asked {
        *counts.entry(&question.kind).or_default() += 1;
    }
    let one = |(kind, count): (&str, usize)| {
        if count == 1 { kind.to_owned() } else { format!("{kind} {count}") }
    };
    counts.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:02}", milliseconds / 1000, milliseconds % 1000 / 10)
}

fn percent(part: usize, whole: usize) -> String {
    match (part * 1000).checked_div(whole) {
        Some(thousandths) => format!("{}.{} %", thousandths / 10, thousandths % 10),
        None => "none".to_owned(),
    }
}

fn ratio(part: u64, whole: u64) -> String {
    match (part * 100).checked_div(whole) {
        Some(hundredths) => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        None => "none".to_owned(),
    }
}
