//! A contestant in its own process, which executes orders line by line.

#![expect(clippy::expect_used, reason = "a benchmark ends where it cannot measure")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running program that reads one order per line and answers each with a line, usually `done`.
#[derive(Debug)]
pub struct Told {
    program: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Told {
    /// Starts the program.
    ///
    /// # Panics
    /// Panics when the program cannot be started.
    pub fn start(mut command: Command) -> Self {
        let mut program =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let say = program.stdin.take().expect("a pipe");
        let hear = BufReader::new(program.stdout.take().expect("a pipe"));
        Self { program, say, hear }
    }

    /// Sends an order and waits until it is done.
    ///
    /// # Panics
    /// Panics when the order fails or the program has ended.
    pub fn say(&mut self, what: &str) {
        let answer = self.ask(what);
        assert_eq!(answer, "done", "what came of `{what}`");
    }

    /// Sends an order and returns the answer, one line.
    ///
    /// # Panics
    /// Panics when the program has ended.
    pub fn ask(&mut self, what: &str) -> String {
        writeln!(self.say, "{what}").expect("it listens");
        let mut answer = String::new();
        self.hear.read_line(&mut answer).expect("it answers");
        answer.trim_end().to_owned()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // The program may have ended with its input already, so errors are ignored.
        drop(self.program.kill());
        drop(self.program.wait());
    }
}
