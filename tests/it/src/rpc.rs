//! pi's RPC mode: JSON lines on its standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::print::kill_group;
use crate::{Deadline, Launch};

/// A client of a running pi; pi is killed when the client is dropped.
#[derive(Debug)]
pub struct Rpc {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    seen: Vec<Value>,
    log: PathBuf,
    errors: PathBuf,
}

impl Rpc {
    pub(crate) fn start(launch: Launch<'_>) -> anyhow::Result<Self> {
        let errors = launch.scene.at("stderr.txt");
        let mut command = launch.command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(std::fs::File::create(&errors)?);
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let input = child.stdin.take();
        let messages = received(child.stdout.take().context("pi's standard output is a pipe")?);
        Ok(Self { child, input, messages, seen: Vec::new(), log: launch.log, errors })
    }

    /// Sends one command.
    ///
    /// # Errors
    ///
    /// If pi no longer reads.
    pub fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("pi's standard input is closed already")?;
        writeln!(input, "{message}").context("writing to pi")
    }

    /// Sends a prompt of the user.
    ///
    /// # Errors
    ///
    /// If pi no longer reads.
    pub fn prompt(&mut self, text: &str) -> anyhow::Result<()> {
        self.send(&json!({ "id": "prompt", "type": "prompt", "message": text }))
    }

    /// Waits for the next message of the given type, and skips others.
    ///
    /// # Errors
    ///
    /// If none arrives in time, or pi ends before.
    pub fn wait_for(&mut self, kind: &str) -> anyhow::Result<Value> {
        self.wait(kind, |message| message.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// Waits for the next message that `wanted` accepts, and skips others.
    ///
    /// # Errors
    ///
    /// If none arrives in time, or pi ends before; the error lists all messages seen.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let deadline = Deadline::start();
        loop {
            let Ok(message) = self.messages.recv_timeout(deadline.left()) else {
                let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
                bail!("no `{what}` from pi; seen:\n{}\nstderr: {errors}", listing(&self.seen));
            };
            self.seen.push(message.clone());
            if wanted(&message) {
                return Ok(message);
            }
        }
    }

    /// Waits for the next question of pi's extensions to the user.
    ///
    /// # Errors
    ///
    /// If none arrives in time.
    pub fn question(&mut self) -> anyhow::Result<Value> {
        const DIALOGS: [&str; 4] = ["select", "confirm", "input", "editor"];
        self.wait("question", |message| {
            let method = message.get("method").and_then(Value::as_str);
            message.get("type").and_then(Value::as_str) == Some("extension_ui_request")
                && method.is_some_and(|method| DIALOGS.contains(&method))
        })
    }

    /// Answers a question with one of its options.
    ///
    /// # Errors
    ///
    /// If pi no longer reads, or the question has no id.
    pub fn answer(&mut self, question: &Value, value: &str) -> anyhow::Result<()> {
        let id = question.get("id").context("a question has an id")?;
        self.send(&json!({ "type": "extension_ui_response", "id": id, "value": value }))
    }

    /// Returns the id of the process that was started: the model, with pi below it.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns every message seen so far.
    #[must_use]
    pub fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// Returns the requests that the model has received so far.
    ///
    /// # Errors
    ///
    /// If the log contains something else.
    pub fn requests(&self) -> anyhow::Result<Vec<Value>> {
        Launch::requests(&self.log)
    }

    /// Closes pi's standard input, which ends pi, and waits for that.
    ///
    /// # Errors
    ///
    /// If it does not end in time.
    pub fn close(mut self) -> anyhow::Result<ExitStatus> {
        drop(self.input.take());
        Deadline::start().until("the end of pi", || Ok(self.child.try_wait()?))
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

fn received(output: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let message =
                serde_json::from_str(&line).unwrap_or_else(|_| json!({ "type": "no JSON", "line": line }));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

fn listing(messages: &[Value]) -> String {
    // pi repeats whole messages in its events; their beginnings distinguish them.
    const SHOWN: usize = 500;
    let line =
        |message: &Value| format!("  {}\n", message.to_string().chars().take(SHOWN).collect::<String>());
    messages.iter().map(line).collect()
}
