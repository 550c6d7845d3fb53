//! One run of a task in the sandbox, as a client of the host that answers every question with a yes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use portcullis_it::{Deadline, Interface, Serve};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Task;
use crate::home::Home;

/// Hosts of package registries: questions about them do not come where registries are allowed. Many programs look there
/// for a newer version of themselves.
const REGISTRIES: [&str; 12] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "repo.maven.apache.org",
    "rubygems.org",
    "packagist.org",
    "registry.terraform.io",
    "checkpoint-api.hashicorp.com",
];

/// A question that came, and what was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// What it is about: `write`, `read`, `delete`, `connect`, `registry`, …
    pub kind: String,
    /// What is asked for.
    pub subject: String,
    /// The rule that asks.
    pub rule: String,
    /// The label of the answer. None if the host withdrew the question first: its program had ended.
    pub answer: Option<String>,
    /// The number by which the host withdraws it.
    #[serde(skip)]
    pub(crate) id: Value,
}

impl Asked {
    /// Returns true if this and `other` are the same question.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.kind, &self.subject, &self.rule) == (&other.kind, &other.subject, &other.rule)
    }
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct Inside {
    /// The exit code; none if the command was refused or did not end.
    pub(crate) code: Option<i64>,
    pub(crate) output: String,
    /// What the host says of it.
    pub(crate) lines: Vec<String>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) took: Duration,
}

/// Runs the task's command in a session of its own.
pub(crate) fn run(home: &Home, task: &Task) -> Result<Inside> {
    let mut host = Serve::greeted(home.scene(), &[], Interface::Present)?;
    let environment: Map<String, Value> =
        home.environment().into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    let start = Instant::now();
    let id = host.begin(&task.command, &Value::Object(environment))?;
    let mut run = Inside {
        code: None,
        output: String::new(),
        lines: Vec::new(),
        asked: Vec::new(),
        took: Duration::ZERO,
    };
    let deadline = Deadline::after(task.patience());
    loop {
        let is_wanted =
            |message: &Value| is_question(message) || is_withdrawal(message) || is_reply(message, id);
        let message = match host.wait_until(deadline, "end of the command", is_wanted) {
            Ok(message) => message,
            Err(error) => {
                run.output = format!("did not end in {} s: {error:#}", task.patience().as_secs());
                return Ok(run);
            }
        };
        run.took = start.elapsed();
        if is_question(&message) {
            let (question, choice) = yes(&message)?;
            run.asked.push(question);
            host.answer(&message, &choice)?;
            continue;
        }
        if is_withdrawal(&message) {
            let id = message.pointer("/params/askId");
            run.asked.iter_mut().filter(|asked| id == Some(&asked.id)).for_each(|asked| asked.answer = None);
            continue;
        }
        if let Some(error) = message.get("error") {
            run.lines.push(text(error, "message"));
            return Ok(run);
        }
        host.put_back(message);
        let (result, output) = host.finish(id)?;
        run.code = result.get("exitCode").and_then(Value::as_i64);
        run.lines = lines(&result);
        run.output = output;
        return Ok(run);
    }
}

fn is_question(message: &Value) -> bool {
    message.get("method") == Some(&json!("ask"))
}

/// Returns true if a question is withdrawn because its program has ended, not because another answer covers it.
fn is_withdrawal(message: &Value) -> bool {
    message.get("method") == Some(&json!("ask/withdraw"))
        && message.pointer("/params/why") == Some(&json!("the call was cancelled"))
}

fn is_reply(message: &Value, id: u64) -> bool {
    message.get("method").is_none() && message.get("id") == Some(&json!(id))
}

/// Returns what the host says to the model.
fn lines(result: &Value) -> Vec<String> {
    let notes = result.get("notes").and_then(Value::as_array).into_iter().flatten();
    let denied = result.get("denied").map(|denied| {
        let words = ["policy", "rule", "reason", "hint"].map(|key| text(denied, key));
        words.join(" ").trim().to_owned()
    });
    notes.filter_map(Value::as_str).map(str::to_owned).chain(denied).collect()
}

/// Returns a question, and the place of its narrowest yes for the project; else for the session, else once.
fn yes(message: &Value) -> Result<(Asked, Value)> {
    let question = message.get("params").context("a question has parameters")?;
    let options = question.get("options").and_then(Value::as_array).context("a question has options")?;
    let rank = |option: &Value| match option.get("scope").and_then(Value::as_str) {
        Some("project") => 0,
        Some("session") => 1,
        Some("user") => 2,
        _ => 3,
    };
    let is_yes = |option: &Value| option.get("effect") == Some(&json!("allow"));
    let width = |option: &Value| option.get("width").and_then(Value::as_u64).unwrap_or_default();
    let allowing = options.iter().enumerate().filter(|(_, option)| is_yes(option));
    let chosen = allowing.min_by_key(|(_, option)| (rank(option), width(option)));
    let (place, option) = chosen.with_context(|| format!("no yes: {question}"))?;
    let subject = text(question, "subject");
    let asked = Asked {
        kind: kind(&text(question, "title"), &subject),
        rule: text(question, "rule"),
        answer: Some(text(option, "label")),
        id: question.get("askId").cloned().unwrap_or_default(),
        subject,
    };
    Ok((asked, json!(place)))
}

/// Returns the kind of a question with this title.
fn kind(title: &str, subject: &str) -> String {
    let what = title.split_once(" wants to ").map_or(title, |(_, what)| what);
    if what.contains("connect") || what.contains("request") {
        let is_registry = REGISTRIES.iter().any(|host| subject.contains(host));
        return if is_registry { "registry" } else { "connect" }.to_owned();
    }
    what.trim_end_matches('?').to_owned()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
