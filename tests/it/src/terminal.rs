//! A terminal for one run of `portcullis`, with simulated keys.

use std::io::{Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context as _, Result};

use crate::print::kill_group;
use crate::{Deadline, Scene, tools};

/// `portcullis` with a controlling terminal; it is killed when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    /// Starts `portcullis` with `arguments` in the scene's project, as the scene's user.
    ///
    /// # Errors
    ///
    /// When the binary or `script(1)` is missing.
    pub fn start(scene: &Scene, arguments: &[&str]) -> Result<Self> {
        Self::start_through(scene, &[], arguments)
    }

    /// Starts it through a program that executes its last arguments.
    ///
    /// # Errors
    ///
    /// As for [`Self::start`].
    pub fn start_through(scene: &Scene, words: &[&str], arguments: &[&str]) -> Result<Self> {
        use std::os::unix::process::CommandExt as _;
        // `script` creates the terminal; its shell gets these words as its own, so that no quoting is needed. If these
        // tests run in the background they ignore SIGINT; the programs of a terminal must not.
        const AS_GIVEN: &str = "exec env --default-signal=INT,QUIT $PORTCULLIS_IT_LINE";
        let program = tools::portcullis(scene.user())?.display().to_string();
        let line: Vec<&str> = [words, &[program.as_str()], arguments].concat();
        anyhow::ensure!(!line.iter().any(|word| word.contains(char::is_whitespace)), "words without blanks");
        let mut command: Command = scene.user().command("/usr/bin/script".as_ref());
        scene.enter(&mut command);
        command.env("PORTCULLIS_IT_LINE", line.join(" ")).env("SHELL", "/bin/sh");
        command.args(["--quiet", "--return", "--flush", "--command", AS_GIVEN, "/dev/null"]);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let keys = child.stdin.take().context("a piped input")?;
        let output = pieces_of(child.stdout.take().context("a piped output")?);
        Ok(Self { child, keys, output, shown: String::new() })
    }

    /// Waits until the terminal has shown `wanted`.
    ///
    /// # Errors
    ///
    /// If it does not in time; the error contains the output.
    pub fn wait_for(&mut self, wanted: &str) -> Result<()> {
        let deadline = Deadline::start();
        while !self.shown.contains(wanted) {
            let piece = self.output.recv_timeout(deadline.left());
            let piece = piece.with_context(|| format!("no `{wanted}` on the terminal:\n{}", self.shown))?;
            self.shown.push_str(&String::from_utf8_lossy(&piece));
        }
        Ok(())
    }

    /// Returns all output of the terminal so far.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Types `keys`; `\r` is Enter, `\x03` is Ctrl-C.
    ///
    /// # Errors
    ///
    /// If the terminal no longer exists.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes())?;
        self.keys.flush().context("typing")
    }

    /// Waits for the end; returns the exit code, `128 + n` for a signal, and all output.
    ///
    /// # Errors
    ///
    /// If it does not end in time.
    pub fn end(mut self) -> Result<(i32, String)> {
        let status = Deadline::start().until("the end of portcullis", || Ok(self.child.try_wait()?))?;
        while let Ok(piece) = self.output.recv() {
            self.shown.push_str(&String::from_utf8_lossy(&piece));
        }
        Ok((status.code().context("`script` was killed")?, std::mem::take(&mut self.shown)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

fn pieces_of(mut output: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut piece) {
            if sender.send(piece.get(..length).unwrap_or_default().to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
