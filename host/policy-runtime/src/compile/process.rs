//! The host's side of the compiler process.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::compile::job::{Artifact, Job};
use crate::compile::wire::{Order, receive_answer, send, send_bytes};
use crate::error::LoadError;
use crate::limits::{CompileLimit, CompileLimits, Limits};

/// Number of bytes read from the process's stderr when it fails.
const LAST_WORDS: usize = 4 << 10;
/// The text that Rust's runtime prints before it aborts on a failed allocation.
const NO_MEMORY: &str = "memory allocation of";

/// First argument of a compiler process. The program then calls [`compiler_main`](crate::compiler_main), and does
/// nothing else.
pub const COMPILER_ARGUMENT: &str = "__compiler";

/// A running compiler process for one component. Dropping it kills the process.
pub(crate) struct CompilerProcess {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
    limits: CompileLimits,
}

impl CompilerProcess {
    /// Starts the process and sends it the component and the job.
    pub(super) fn start(
        program: &Path,
        limits: Limits,
        component: &[u8],
        job: &Job,
    ) -> Result<Self, LoadError> {
        let mut process =
            Self::spawn(program, limits.compile).map_err(|error| not_started(program, &error))?;
        let deadline = process.deadline();
        let order = Order::new(limits, job.clone());
        let handed_over = process.hand_over(&order, component, deadline);
        handed_over.map_err(|error| process.end(&error))?;
        Ok(process)
    }

    fn spawn(program: &Path, limits: CompileLimits) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0("portcullis")
            .arg(COMPILER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let process = Self { child, input, output, errors, limits };
        for pipe in [process.input.as_fd(), process.output.as_fd(), process.errors.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(process)
    }

    fn hand_over(&mut self, order: &Order, component: &[u8], deadline: Instant) -> io::Result<()> {
        let mut to = Timed { pipe: &mut self.input, deadline };
        send(&mut to, order)?;
        send_bytes(&mut to, component)
    }

    /// Waits for the machine code.
    pub(super) fn answer(mut self) -> Result<Artifact, LoadError> {
        let deadline = self.deadline();
        match receive_answer(&mut Timed { pipe: &mut self.output, deadline }) {
            Ok(answer) => answer,
            Err(error) => Err(self.end(&error)),
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.limits.time
    }

    /// Ends the process after `error` and returns the reason why it failed.
    fn end(&mut self, error: &io::Error) -> LoadError {
        if error.kind() == io::ErrorKind::TimedOut {
            self.kill();
            return LoadError::CompileLimit { limit: CompileLimit::Time(self.limits.time) };
        }
        // A closed pipe means that the process ended. Any other error is the host's own fault or a broken
        // message.
        if !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe) {
            self.kill();
            return failed(error);
        }
        match self.child.wait() {
            Ok(status) => self.explain(status),
            Err(error) => failed(&error),
        }
    }

    fn explain(&mut self, status: ExitStatus) -> LoadError {
        let signal = |signal: Signal| status.signal() == Some(signal.as_raw());
        if signal(Signal::XCPU) {
            return LoadError::CompileLimit { limit: CompileLimit::ProcessorTime(self.limits.cpu) };
        }
        if self.last_words().contains(NO_MEMORY) {
            return LoadError::CompileLimit { limit: CompileLimit::Memory(self.limits.memory) };
        }
        let detail = match status.signal() {
            Some(signal) => format!("was ended by signal {signal}"),
            None => format!("ended with exit code {}", status.code().unwrap_or_default()),
        };
        LoadError::Compiler { detail }
    }

    fn last_words(&mut self) -> String {
        let mut said = vec![0; LAST_WORDS];
        let length = self.errors.read(&mut said).unwrap_or_default();
        said.truncate(length);
        String::from_utf8_lossy(&said).into_owned()
    }

    fn kill(&mut self) {
        // The process may have exited already.
        let _unless_gone = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Drop for CompilerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn not_started(program: &Path, error: &io::Error) -> LoadError {
    let program = program.display();
    LoadError::Compiler {
        detail: format!("`{program}` cannot be started: {error}; install Portcullis again"),
    }
}

fn failed(error: &io::Error) -> LoadError {
    LoadError::Compiler { detail: format!("failed: {error}") }
}

/// A pipe with a deadline for reads and writes.
struct Timed<'a, P> {
    pipe: &'a mut P,
    deadline: Instant,
}

impl<P> Timed<'_, P> {
    /// Waits until the pipe is ready for `wanted`.
    fn wait(pipe: BorrowedFd<'_>, wanted: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::from_borrowed_fd(pipe, wanted)], Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<P: Read + AsFd> Read for Timed<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Self::wait(self.pipe.as_fd(), PollFlags::IN, self.deadline)?;
                }
                read => return read,
            }
        }
    }
}

impl<P: Write + AsFd> Write for Timed<'_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Self::wait(self.pipe.as_fd(), PollFlags::OUT, self.deadline)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
