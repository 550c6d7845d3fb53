//! The rules in JavaScript, in a process of Node: what an extension that decides for itself would do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{Engine, Question, Rules};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node.mjs");

pub(crate) struct Node {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Node {
    pub(crate) fn start(rules: &Rules) -> Self {
        let mut child = Command::new("node")
            .arg(SCRIPT)
            .arg(json!({ "read": rules.read, "write": rules.write }).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Node");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, output }
    }

    /// Has it answered so many times, without a round trip for each.
    pub(crate) fn repeat(&mut self, question: Question<'_>, calls: u32) {
        assert!(self.ask(question, calls));
    }

    fn ask(&mut self, question: Question<'_>, calls: u32) -> bool {
        let line = json!({ "path": question.path, "write": question.write, "calls": calls });
        writeln!(self.input, "{line}").expect("Node listens");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("Node answers");
        serde_json::from_str::<Value>(&answer).expect("JSON") == Value::Bool(true)
    }
}

impl Engine for Node {
    fn allows(&mut self, question: Question<'_>) -> bool {
        self.ask(question, 1)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It holds nothing that anybody wants.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
