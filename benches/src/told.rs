//! A program that takes part in a race from its own process: it does what it is told, line by line.

#![expect(clippy::expect_used, reason = "a benchmark ends where it cannot measure")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running program that reads what to do, a line at a time, and answers each with `done`.
#[derive(Debug)]
pub struct Told {
    program: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Told {
    /// Starts it.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn start(mut command: Command) -> Self {
        let mut program =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let say = program.stdin.take().expect("a pipe");
        let hear = BufReader::new(program.stdout.take().expect("a pipe"));
        Self { program, say, hear }
    }

    /// Has it do `what`, and returns when that is done.
    ///
    /// # Panics
    /// When it fails, or has ended.
    pub fn say(&mut self, what: &str) {
        let answer = self.ask(what);
        assert_eq!(answer, "done", "what came of `{what}`");
    }

    /// Returns its answer to `what`, which is one line.
    ///
    /// # Panics
    /// When it has ended.
    pub fn ask(&mut self, what: &str) -> String {
        writeln!(self.say, "{what}").expect("it listens");
        let mut answer = String::new();
        self.hear.read_line(&mut answer).expect("it answers");
        answer.trim_end().to_owned()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // It ends with its input otherwise; either way it is gone.
        drop(self.program.kill());
        drop(self.program.wait());
    }
}
