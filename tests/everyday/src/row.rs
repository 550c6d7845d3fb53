//! A task with its results for one user.

use std::time::{Duration, Instant};

use anyhow::Result;
use portcullis_it::{Deadline, User};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::inside::{self, Asked, Inside};
use crate::{Machine, Task};

/// How many characters of an output are kept of its beginning, and of its end.
const KEPT: usize = 400;

/// How a task went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// Outside and inside.
    Works,
    /// Outside, and inside only the first time.
    WorksOnce {
        /// What the second run wrote.
        output: String,
    },
    /// Outside only.
    Fails {
        /// What it wrote.
        output: String,
    },
    /// Not even outside.
    FailsOutside {
        /// What it wrote.
        output: String,
    },
    /// Not tried.
    Needs {
        /// What is not there.
        what: Vec<String>,
    },
}

/// The results of a task for one user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The task's area.
    pub area: String,
    /// The task's name.
    pub name: String,
    /// `root` or `user`.
    pub user: String,
    /// How it went.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The questions of the first session.
    pub asked: Vec<Asked>,
    /// The questions of the second one that repeat what was answered.
    pub again: Vec<Asked>,
    /// What the host said of the command, in the last session.
    pub lines: Vec<String>,
    /// Whether it counts for the time that builds take.
    pub build: bool,
    /// What a user does where it does not work.
    pub instead: Option<String>,
    /// The time outside.
    pub outside_ms: u64,
    /// The time inside, the first and the second time.
    pub inside_ms: Vec<u64>,
}

impl Row {
    /// Returns true if it works as often as one likes.
    #[must_use]
    pub fn works(&self) -> bool {
        self.outcome == Outcome::Works
    }

    /// Returns true if it works outside.
    #[must_use]
    pub fn counts(&self) -> bool {
        !matches!(self.outcome, Outcome::Needs { .. } | Outcome::FailsOutside { .. })
    }

    /// Returns true if it fails inside and the host does not explain it.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.counts() && !self.works() && self.lines.is_empty()
    }

    /// Returns the number of questions that would also come with registries allowed.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.lasting().count()
    }

    /// Returns what these questions are about: kind, and path below the home. A developer who works in one project is
    /// asked about each once.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, &str)> {
        let below_home = |subject: &'_ str| subject.split_once("/home/work/").map(|(_, below)| below.len());
        self.lasting().map(move |asked| {
            let subject = asked.subject.as_str();
            let length = below_home(subject).unwrap_or(subject.len());
            (asked.kind.as_str(), subject.get(subject.len() - length..).unwrap_or(subject))
        })
    }

    fn lasting(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(|asked| asked.kind != "registry")
    }
}

/// Runs a task outside once and inside twice.
///
/// # Errors
///
/// If the harness fails; a task that fails is a result.
pub fn run(machine: &Machine, task: &Task, user: User) -> Result<Row> {
    let mut row = Row {
        area: task.area.clone(),
        name: task.name.clone(),
        user: name_of(user).to_owned(),
        outcome: Outcome::Works,
        asked: Vec::new(),
        again: Vec::new(),
        lines: Vec::new(),
        build: task.build,
        instead: task.instead.clone(),
        outside_ms: 0,
        inside_ms: Vec::new(),
    };
    let what = machine.missing(task, user)?;
    if !what.is_empty() {
        return Ok(Row { outcome: Outcome::Needs { what }, ..row });
    }
    match outside(machine, task, user)? {
        Ok(took) => row.outside_ms = milliseconds(took),
        Err(output) => return Ok(Row { outcome: Outcome::FailsOutside { output }, ..row }),
    }
    let home = Home::new(machine, user)?;
    home.furnish(&task.setup)?;
    let (first, has_worked) = attempt(&home, task)?;
    row.inside_ms.push(milliseconds(first.took));
    row.asked.clone_from(&first.asked);
    row.lines.clone_from(&first.lines);
    if !has_worked {
        return Ok(Row { outcome: Outcome::Fails { output: told(&first) }, ..row });
    }
    home.clear()?;
    home.furnish(&task.setup)?;
    let (second, has_worked) = attempt(&home, task)?;
    row.inside_ms.push(milliseconds(second.took));
    row.again = repeated(&first.asked, &second.asked);
    row.lines.clone_from(&second.lines);
    if !has_worked {
        row.outcome = Outcome::WorksOnce { output: told(&second) };
    }
    Ok(row)
}

/// Returns the questions of the second session, without those that came in the first one and were withdrawn before
/// their answer: then no answer could match.
fn repeated(first: &[Asked], second: &[Asked]) -> Vec<Asked> {
    let was_withdrawn = |asked: &Asked| {
        let mut same = first.iter().filter(|other| other.is_same(asked)).peekable();
        same.peek().is_some() && same.all(|other| other.answer.is_none())
    };
    second.iter().filter(|asked| !was_withdrawn(asked)).cloned().collect()
}

/// Returns `root` or `user`; a caller without privileges is an ordinary user.
pub(crate) fn name_of(user: User) -> &'static str {
    let is_root = user == User::Caller && User::Ordinary.is_stranger();
    if is_root { "root" } else { "user" }
}

/// Returns true if the task works without a sandbox.
pub(crate) fn works_outside(machine: &Machine, task: &Task, user: User) -> Result<bool> {
    outside(machine, task, user).map(|result| result.is_ok())
}

/// Returns the time of the task without a sandbox, or what it wrote when it failed.
fn outside(machine: &Machine, task: &Task, user: User) -> Result<Result<Duration, String>> {
    let home = Home::new(machine, user)?;
    if let Err(error) = home.furnish(&task.setup) {
        return Ok(Err(shortened(&format!("{error:#}"))));
    }
    let _service = match home.serve(task) {
        Ok(service) => service,
        Err(error) => return Ok(Err(shortened(&format!("{error:#}")))),
    };
    let start = Instant::now();
    let ended = match home.run_script(&task.command, Deadline::after(task.patience())) {
        Ok(ended) => ended,
        Err(error) => return Ok(Err(shortened(&format!("{error:#}")))),
    };
    let took = start.elapsed();
    let output = format!("{}{}", ended.stdout, ended.stderr);
    let has_worked = ended.code() == 0 && home.has_worked(&task.check, &output)?;
    Ok(if has_worked { Ok(took) } else { Err(shortened(&format!("exit {}: {output}", ended.code()))) })
}

/// Runs the task inside, and returns whether it did its work.
pub(crate) fn attempt(home: &Home, task: &Task) -> Result<(Inside, bool)> {
    let _service = home.serve(task)?;
    let ended = inside::run(home, task)?;
    let has_worked = ended.code == Some(0) && home.has_worked(&task.check, &ended.output)?;
    Ok((ended, has_worked))
}

fn told(run: &Inside) -> String {
    let code = run.code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
    shortened(&format!("{code}: {}", run.output))
}

/// Returns the beginning and the end of a text.
fn shortened(text: &str) -> String {
    let characters: Vec<char> = text.trim().chars().collect();
    if characters.len() <= 2 * KEPT {
        return characters.into_iter().collect();
    }
    let (first, rest) = characters.split_at(KEPT);
    let last = rest.split_at(rest.len() - KEPT).1;
    format!("{} […] {}", first.iter().collect::<String>(), last.iter().collect::<String>())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_question_that_was_withdrawn_may_come_again() {
        let asked = |subject: &str, answer: Option<&str>| Asked {
            kind: "registry".to_owned(),
            subject: subject.to_owned(),
            rule: "network.unlisted".to_owned(),
            answer: answer.map(str::to_owned),
            id: Value::Null,
        };
        let first = [asked("a:443", Some("Allow")), asked("b:443", None), asked("c:443", None)];
        let first = [&first[..], &[asked("c:443", Some("Allow"))]].concat();
        let second = ["a:443", "b:443", "c:443", "d:443"].map(|subject| asked(subject, Some("Allow")));
        let repeated = repeated(&first, &second);
        let subjects: Vec<&str> = repeated.iter().map(|asked| asked.subject.as_str()).collect();
        assert_eq!(subjects, ["a:443", "c:443", "d:443"]);
    }
}
