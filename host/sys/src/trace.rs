//! Stops a thread at the end of its current system call, before its program continues, see ptrace(2).

use std::io;
use std::marker::PhantomData;
use std::ptr;

/// `PTRACE_EVENT_STOP`: the stop after an interrupt.
const EVENT_STOP: i32 = 128;

/// The kind of a request in the C library's declaration of ptrace(2).
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// A traced thread that will stop at the end of its current system call.
///
/// Tracing belongs to one thread of the tracer, so this value cannot be sent to another one. That thread must
/// have no other children.
#[derive(Debug)]
pub struct Seized {
    thread: i32,
    here: PhantomData<*const ()>,
}

/// A stopped thread. It continues when this is dropped.
#[derive(Debug)]
pub struct Stopped {
    thread: i32,
    here: PhantomData<*const ()>,
    /// True if the thread has executed a new program in that call. No code of it has run yet.
    pub has_executed: bool,
}

impl Seized {
    /// Makes a thread stop before its program continues.
    ///
    /// # Errors
    /// `EPERM` when the thread may not be traced, `ESRCH` when it has ended.
    pub fn seize(thread: i32) -> io::Result<Self> {
        request(libc::PTRACE_SEIZE, thread, libc::PTRACE_O_TRACEEXEC)?;
        let seized = Self { thread, here: PhantomData };
        match request(libc::PTRACE_INTERRUPT, thread, 0) {
            Ok(()) => Ok(seized),
            Err(error) => {
                // The thread is dying, and its end also ends the tracing.
                drop(seized.wait());
                Err(error)
            }
        }
    }

    /// Returns the id that the thread had.
    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread
    }

    /// Waits until the thread stops. Returns `None` if it has ended.
    ///
    /// # Errors
    /// None are known.
    pub fn wait(self) -> io::Result<Option<Stopped>> {
        loop {
            let (thread, status) = match next_status() {
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
                next => next?,
            };
            if !libc::WIFSTOPPED(status) {
                return Ok(None);
            }
            // If another thread of the process executed a program, it now has the id of the first thread.
            let stopped = |has_executed| Stopped { thread, here: PhantomData, has_executed };
            match status >> 16 {
                libc::PTRACE_EVENT_EXEC => return Ok(Some(stopped(true))),
                EVENT_STOP => return Ok(Some(stopped(false))),
                // A signal arrived first. Deliver it.
                _ => request(libc::PTRACE_CONT, thread, libc::WSTOPSIG(status))?,
            }
        }
    }
}

impl Stopped {
    /// Returns the id of the thread. After it executed a program that is the pid of its process.
    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // This fails when the thread was killed. Its parent is notified only after the tracer has waited for
        // it.
        while request(libc::PTRACE_DETACH, self.thread, 0).is_err() {
            match next_status() {
                Ok((_, status)) if libc::WIFSTOPPED(status) => {}
                Ok(_) | Err(_) => break,
            }
        }
    }
}

/// Waits for the next status change of the thread traced by this one.
fn next_status() -> io::Result<(i32, i32)> {
    loop {
        let mut status = 0;
        let options = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the status is writable and outlives the call.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, options) };
        if thread >= 0 {
            return Ok((thread, status));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

fn request(request: Request, thread: i32, data: i32) -> io::Result<()> {
    let data = usize::try_from(data).map_err(|_negative| io::ErrorKind::InvalidInput)?;
    // SAFETY: these requests take a number and no address, and change nothing in this process.
    let answer = unsafe {
        libc::ptrace(
            request,
            thread,
            ptr::null_mut::<libc::c_void>(),
            ptr::without_provenance_mut::<libc::c_void>(data),
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_thread_stops_where_it_is_and_goes_on() {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (mut input, mut output) =
            (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        // Before its first answer the child may still be executing the program, which is another kind of
        // stop.
        let mut echo = [0];
        input.write_all(b"a").and_then(|()| output.read_exact(&mut echo)).expect("answers");
        let thread = i32::try_from(child.id()).expect("small");
        let stopped = Seized::seize(thread).expect("seized").wait().expect("waits").expect("lives");
        assert!(!stopped.has_executed && stopped.thread() == thread);
        input.write_all(b"b").expect("written");
        drop(stopped);
        output.read_exact(&mut echo).expect("goes on");
        drop(input);
        assert!(child.wait().expect("ends").success());
        assert!(Seized::seize(thread).is_err());
    }
}
